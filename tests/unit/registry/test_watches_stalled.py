"""Watches whose readers have stopped hold the message under way and little else."""

from __future__ import annotations

import gc
from typing import TypeVar

import pytest

from hq.memory.entry import Entry
from hq.memory.history import WatchedEvent
from hq.memory.watcher import Delivery
from tests.support.watch_setup import EVENTS, RESYNC, SNAPSHOT, SYNCED, Scene, some, synced

T = TypeVar("T")
NAMES = [f"i-{number:03}" for number in range(100)]


@pytest.fixture
def small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make messages so small that every snapshot takes a hundred of them."""
    monkeypatch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 10)


def alive(kind: type[T]) -> set[int]:
    gc.collect()
    return {id(each) for each in gc.get_objects() if type(each) is kind}


@pytest.mark.usefixtures("small_messages")
async def test_new_watches_that_stall_keep_no_more_old_instances_alive_than_the_history_has_changes() -> None:
    before = alive(Entry)
    scene = Scene(history_bytes=100_000)
    scene.put(*NAMES)
    history, streams = scene.still.replica.history, []
    for _ in range(30):  # each begins among others
        stream = scene.watch()
        assert (await anext(stream)).kind == SNAPSHOT
        streams.append(stream)
        scene.put(*NAMES)
    kept = sum(len(step.events) for step in history.since(history.complete_after, 1 << 30) or ())
    assert 100 <= kept <= 300
    # What there is now, what the history's events replaced, and what is between the two.
    assert len(alive(Entry) - before) <= len(NAMES) + 1 + kept + len(NAMES)
    told = [await anext(stream) for stream in streams]
    assert [message.kind for message in told[:20]] == [RESYNC] * 20
    assert "snapshot is older than the history" in told[0].reason
    assert told[-1].kind == SNAPSHOT
    for stream in streams:
        await stream.aclose()


async def test_a_watch_cut_off_in_its_snapshot_gets_a_new_one() -> None:
    scene = Scene(history_bytes=1_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 10)
        scene.put(*NAMES)
        stream = scene.watch()
        await anext(stream)
        for _ in range(3):
            scene.put("a")
        assert (await anext(stream)).kind == RESYNC
        await synced(stream)
    scene.put("a")
    while (message := await anext(stream)).kind != EVENTS:
        pass
    assert len(message.events) == 1
    await stream.aclose()


async def test_a_message_that_waits_for_its_reader_keeps_no_queued_event_alive() -> None:
    scene = Scene()
    before = alive(Delivery)
    streams = [scene.watch() for _ in range(5)]
    for stream in streams:
        await synced(stream)
    for _ in range(10):
        scene.put("a")
    assert len(alive(Delivery) - before) == 10
    for stream in streams:
        assert len((await anext(stream)).events) == 10
    assert not alive(Delivery) - before
    assert scene.still.replica.fanout.backlog.size_bytes == 0
    for stream in streams:
        await stream.aclose()


async def test_a_message_from_the_history_keeps_no_history_alive() -> None:
    scene = Scene(history_bytes=5_000)
    token = (await synced(scene.watch())).resume_token
    before = alive(WatchedEvent)
    for _ in range(4):
        scene.put("a")
    stream = scene.watch(token)
    assert [message.kind for message in await some(stream, 2)] == [SYNCED, EVENTS]
    for _ in range(100):
        scene.put("a")
    assert len(alive(WatchedEvent) - before) <= 10
    assert (await anext(stream)).kind == RESYNC
    await stream.aclose()
