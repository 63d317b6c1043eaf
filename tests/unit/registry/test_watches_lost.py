"""Watches whose continuity is lost say so and start over."""

from __future__ import annotations

import asyncio

import pytest

from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2 as pb
from serving.errors import ShuttingDown
from tests.support.stepped_replica import SteppedReplica
from tests.support.store_histories import World
from tests.support.watch_setup import ALL, EVENTS, RESYNC, SNAPSHOT, SYNCED, Scene, Stream, some, synced


async def resync_of(stream: Stream) -> str:
    """Read up to the resync and the fresh snapshot after it; return the reason."""
    while (message := await anext(stream)).kind != RESYNC:
        assert message.kind != SNAPSHOT
    assert not message.resume_token
    await synced(stream)
    await stream.aclose()
    return message.reason


async def test_a_token_newer_than_the_store_starts_over() -> None:
    scene = Scene()
    scene.put("b")
    token = (await synced(scene.watch())).resume_token
    behind = SteppedReplica()
    behind.list(World().records(), 2)
    assert "newer than the store" in await resync_of(behind.watch(ALL, token))


async def test_a_watch_with_a_token_older_than_the_history_starts_over() -> None:
    scene = Scene(history_bytes=2_000)
    token = (await synced(scene.watch())).resume_token
    for _ in range(10):
        scene.put("a")
    assert "history in memory" in await resync_of(scene.watch(token))


async def test_a_watch_with_a_token_of_another_epoch_starts_over() -> None:
    scene = Scene()
    token = (await synced(scene.watch())).resume_token
    scene.still.replica.cache.epoch = "another"
    assert "epoch" in await resync_of(scene.watch(token))
    assert scene.still.replica.fanout.resyncs == 1


async def test_a_reader_that_does_not_read_is_cut_off() -> None:
    scene = Scene(watch_buffer_bytes=16 * 3_000)
    stream = scene.watch()
    await synced(stream)
    for _ in range(20):
        scene.put("a", text="x" * 500)
    assert "is behind by" in await resync_of(stream)


async def test_a_reader_that_stops_in_its_snapshot_is_cut_off_and_keeps_nothing_alive() -> None:
    scene = Scene(watch_buffer_bytes=16 * 3_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 10)
        scene.put(*(f"i-{number}" for number in range(20)))
        stream = scene.watch()
        await anext(stream)
        (watcher,) = scene.still.replica.fanout._watchers()
        for _ in range(20):
            scene.put("a", text="x" * 500)
        assert next(watcher.snapshot, None) is None
        assert (await anext(stream)).kind == RESYNC
    await stream.aclose()


async def test_a_slow_reader_of_the_history_is_resynced_when_its_part_is_gone() -> None:
    scene = Scene(history_bytes=20_000)
    token = (await synced(scene.watch())).resume_token
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 10)
        for _ in range(10):
            scene.put("a")
        stream = scene.watch(token)
        assert [message.kind for message in await some(stream, 3)] == [SYNCED, EVENTS, EVENTS]
        for _ in range(100):
            scene.put("a")
        assert "older than the history" in await resync_of(stream)


@pytest.mark.parametrize("reading", ["the snapshot", "the past", "the present"])
async def test_when_the_store_is_replaced_every_watch_starts_over(reading: str) -> None:
    scene = Scene()
    token = (await synced(scene.watch())).resume_token
    scene.put("a")
    scene.put("a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 10)
        stream = scene.watch(token if reading == "the past" else "")
        await some(stream, 3 if reading == "the present" else 1)
        another = World()
        another.change({another.keys.epoch: storage_pb2.EpochRecord(epoch="epoch-2").SerializeToString()})
        scene.still.list(another.records(), scene.world.version + 5)
        assert "new history" in await resync_of(stream)


async def test_old_events_are_never_sent_under_a_new_epoch() -> None:
    """Between parts of a large version, a token of the new epoch would skip what the restore changed."""
    scene = Scene()
    token = (await synced(scene.watch())).resume_token
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 10)
        scene.put("a", "b", "c")
        stream = scene.watch(token)
        assert [message.kind for message in await some(stream, 2)] == [SYNCED, EVENTS]
        another = World()
        another.change({another.keys.epoch: storage_pb2.EpochRecord(epoch="epoch-2").SerializeToString()})
        scene.still.list(another.records(), scene.world.version + 5)
        assert (await anext(stream)).kind == RESYNC
        await stream.aclose()


async def waiting_for_everything(scene: Scene) -> tuple[Stream, asyncio.Task[pb.WatchInstancesResponse]]:
    """A watch after its resync, and its next message, which has to wait until the store is read again."""
    stream = scene.watch()
    await synced(stream)
    scene.still.replica.events.reset()
    assert (await anext(stream)).kind == RESYNC
    next_one = asyncio.ensure_future(anext(stream))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not next_one.done()
    return stream, next_one


async def test_a_watch_waits_while_the_new_store_is_read() -> None:
    scene = Scene()
    stream, next_one = await waiting_for_everything(scene)
    scene.still.list(scene.world.records(), scene.world.version)
    assert (await next_one).kind == SNAPSHOT
    await stream.aclose()


async def test_a_shutdown_ends_a_watch_that_waits_for_everything_to_be_read_again() -> None:
    scene = Scene()
    _, next_one = await waiting_for_everything(scene)
    scene.still.replica.fanout.close()
    with pytest.raises(ShuttingDown):
        await asyncio.wait_for(next_one, 10)
