"""The watching call, case by case: how it begins, how it breaks, how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest, ShuttingDown, StoreUnavailable
from tests.support.still import Still
from tests.support.world import World, spec_of

ALL = pb.InstanceFilter()
OF_S = pb.InstanceFilter(service_id=["s"])
SNAPSHOT, SYNCED = pb.WATCH_KIND_SNAPSHOT, pb.WATCH_KIND_SYNCED
EVENTS, BOOKMARK, RESYNC = pb.WATCH_KIND_EVENTS, pb.WATCH_KIND_BOOKMARK, pb.WATCH_KIND_RESYNC
Stream = AsyncGenerator[pb.WatchInstancesResponse, None]


class Scene:
    """A world, and a replica that is told of its changes."""

    def __init__(self, **settings: Any) -> None:
        self.world = World()
        self.still = Still(**settings)
        self.put("a")
        self.still.list(self.world.records(), self.world.version)

    def put(self, *ids: str, service: str = "s", text: str = "") -> None:
        puts: dict[bytes, bytes | None] = {}
        for instance_id in ids:
            self.world.uids.setdefault(instance_id, self.world.next())
            labels = {"text": text} if text else {}
            puts[self.world.keys.spec(instance_id)] = spec_of(self.world, instance_id, service, "n", labels, 1)
        batch = self.world.change(puts)
        if self.still.replica.loaded.is_set():
            self.still.apply(batch)

    def watch(self, token: str = "", wanted: pb.InstanceFilter = ALL) -> Stream:
        return self.still.watch(wanted, token)


async def synced(stream: Stream) -> pb.WatchInstancesResponse:
    while (message := await anext(stream)).kind != SYNCED:
        assert message.kind == SNAPSHOT
    return message


async def some(stream: Stream, count: int) -> list[pb.WatchInstancesResponse]:
    return [await anext(stream) for _ in range(count)]


async def test_it_begins_with_what_there_is() -> None:
    scene = Scene()
    stream = scene.watch()
    first, second = await some(stream, 2)
    assert (first.kind, [event.put.meta.id for event in first.events], first.resume_token) == (SNAPSHOT, ["a"], "")
    assert (second.kind, second.sources[0].version) == (SYNCED, scene.world.version)
    assert second.resume_token
    await stream.aclose()


async def test_what_changes_during_the_snapshot_follows_it() -> None:
    scene = Scene()
    stream = scene.watch()
    first = await anext(stream)
    scene.put("a", "b")
    rest = await some(stream, 2)
    assert [message.kind for message in (first, *rest)] == [SNAPSHOT, SYNCED, EVENTS]
    assert first.events[0].put.meta.version < rest[1].events[0].put.meta.version
    assert [event.put.meta.id for event in rest[1].events] == ["a", "b"]
    await stream.aclose()


async def test_many_versions_come_in_one_message() -> None:
    scene = Scene()
    stream = scene.watch()
    await synced(stream)
    for _ in range(50):
        scene.put("a")
    message = await anext(stream)
    assert len(message.events) == 50
    assert message.sources[0].version == scene.world.version
    await stream.aclose()


async def test_a_resumed_watch_gets_what_it_missed_and_then_a_bookmark() -> None:
    scene = Scene()
    stream = scene.watch()
    token = (await synced(stream)).resume_token
    await stream.aclose()
    for instance_id in ("b", "c", "a"):
        scene.put(instance_id)
    stream = scene.watch(token)
    messages = await some(stream, 3)
    assert [message.kind for message in messages] == [SYNCED, EVENTS, BOOKMARK]
    assert messages[0].resume_token == token
    assert [event.put.meta.id for event in messages[1].events] == ["b", "c", "a"]
    await stream.aclose()


async def test_a_token_of_the_future_waits_for_it() -> None:
    scene = Scene()
    stream = scene.watch()
    ahead = Still()
    ahead.list(scene.world.records(), scene.world.version)
    scene.world.uids["b"] = 5
    batch = scene.world.change({scene.world.keys.spec("b"): spec_of(scene.world, "b", "s", "n", {}, 1)})
    ahead.apply(batch)
    at_the_other = ahead.watch(ALL)
    token = (await synced(at_the_other)).resume_token
    scene.still.held_back.append(batch)
    stream = scene.watch(token)
    assert [message.kind for message in await some(stream, 2)] == [SYNCED, BOOKMARK]
    await stream.aclose()
    await at_the_other.aclose()


async def resync_of(stream: Stream) -> str:
    """The reason, once it is said; afterwards there is a fresh snapshot."""
    while (message := await anext(stream)).kind != RESYNC:
        assert message.kind != SNAPSHOT
    assert not message.resume_token
    await synced(stream)
    await stream.aclose()
    return message.reason


async def test_a_token_that_stays_ahead_is_of_a_past_that_is_gone() -> None:
    scene = Scene()
    scene.put("b")
    token = (await synced(scene.watch())).resume_token
    behind = Still()
    behind.list(World().records(), 2)
    assert "ahead" in await resync_of(behind.watch(ALL, token))


async def test_a_token_older_than_the_history_is_told_so() -> None:
    scene = Scene(history_bytes=2_000)
    token = (await synced(scene.watch())).resume_token
    for _ in range(10):
        scene.put("a")
    assert "history in memory" in await resync_of(scene.watch(token))


async def test_a_token_of_another_epoch_is_told_so() -> None:
    scene = Scene()
    token = (await synced(scene.watch())).resume_token
    scene.still.replica.cache.epoch = "another"
    assert "epoch" in await resync_of(scene.watch(token))
    assert scene.still.replica.fanout.resyncs == 1


async def test_a_reader_that_does_not_read_is_cut_off() -> None:
    scene = Scene(watch_buffer_bytes=3_000)
    stream = scene.watch()
    await synced(stream)
    for _ in range(20):
        scene.put("a", text="x" * 500)
    assert "fell behind" in await resync_of(stream)


async def test_a_reader_that_stops_in_its_snapshot_is_cut_off_and_keeps_nothing_alive() -> None:
    scene = Scene(watch_buffer_bytes=3_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watches._MESSAGE_BYTES", 10)
        scene.put(*(f"i-{number}" for number in range(20)))
        stream = scene.watch()
        await anext(stream)
        (watcher,) = scene.still.replica.fanout._watchers()
        for _ in range(20):
            scene.put("a", text="x" * 500)
        assert next(watcher.snapshot, None) is None
        assert (await anext(stream)).kind == RESYNC
    await stream.aclose()


async def test_a_slow_reader_of_the_past_finds_its_piece_gone() -> None:
    scene = Scene(history_bytes=20_000)
    token = (await synced(scene.watch())).resume_token
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watches._MESSAGE_BYTES", 10)
        for _ in range(10):
            scene.put("a")
        stream = scene.watch(token)
        assert [message.kind for message in await some(stream, 3)] == [SYNCED, EVENTS, EVENTS]
        for _ in range(100):
            scene.put("a")
        assert "behind the history" in await resync_of(stream)


@pytest.mark.parametrize("reading", ["the snapshot", "the past", "the present"])
async def test_when_the_store_is_replaced_everyone_is_told(reading: str) -> None:
    scene = Scene()
    token = (await synced(scene.watch())).resume_token
    scene.put("a")
    scene.put("a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watches._MESSAGE_BYTES", 10)
        stream = scene.watch(token if reading == "the past" else "")
        await some(stream, 3 if reading == "the present" else 1)
        another = World()
        another.change({another.keys.epoch: storage_pb2.EpochRecord(epoch="epoch-2").SerializeToString()})
        scene.still.list(another.records(), scene.world.version + 5)
        assert "another one" in await resync_of(stream)


async def test_a_watch_waits_while_the_new_store_is_read() -> None:
    scene = Scene()
    stream = scene.watch()
    await synced(stream)
    scene.still.replica.reset()
    assert (await anext(stream)).kind == RESYNC
    next_one = asyncio.ensure_future(anext(stream))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not next_one.done()
    scene.still.list(scene.world.records(), scene.world.version)
    assert (await next_one).kind == SNAPSHOT
    await stream.aclose()


async def test_a_difference_is_marked_and_stands_alone() -> None:
    scene = Scene()
    stream = scene.watch()
    await synced(stream)
    cache = scene.still.replica.cache
    scene.put("b")
    known, version = set(cache.keys()) | {scene.world.keys.epoch}, cache.version
    scene.world.change({scene.world.keys.spec("b"): None})
    scene.world.change({scene.world.keys.spec("a"): spec_of(scene.world, "a", "s", "n", {}, 1)})
    scene.still.apply(scene.world.difference(known, version), collapsed=True)
    scene.put("a")
    plain, collapsed, later = await some(stream, 3)
    assert [message.collapsed for message in (plain, collapsed, later)] == [False, True, False]
    assert {str(event.WhichOneof("change")) for event in collapsed.events} == {"put", "delete"}
    assert {event.version for event in collapsed.events} == {collapsed.sources[0].version}
    await stream.aclose()


async def test_what_leaves_the_filter_is_told_as_left() -> None:
    scene = Scene()
    stream = scene.watch(wanted=OF_S)
    await synced(stream)
    scene.put("a", service="another")
    (event,) = (await anext(stream)).events
    assert (event.WhichOneof("change"), event.left.id, event.left.uid) == ("left", "a", scene.world.uids["a"])
    await stream.aclose()


async def test_a_version_that_is_too_large_for_a_message_has_its_token_at_its_end() -> None:
    scene = Scene()
    stream = scene.watch()
    await synced(stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hq.registry.watches._MESSAGE_BYTES", 150)
        scene.put("a")
        scene.put(*(f"i-{number}" for number in range(9)))
        messages = await some(stream, 2)
        while not messages[-1].resume_token:
            messages.append(await anext(stream))
    assert bool(messages[0].resume_token)
    assert [bool(message.resume_token) for message in messages[1:]] == [False] * (len(messages) - 2) + [True]
    assert sum(len(message.events) for message in messages[1:]) == 9
    assert len(messages) > 3
    await stream.aclose()


async def test_a_shutdown_ends_it_with_a_token_to_go_on_with() -> None:
    scene = Scene()
    stream = scene.watch()
    await synced(stream)
    scene.still.replica.fanout.close()
    last = await anext(stream)
    assert (last.kind, bool(last.resume_token)) == (BOOKMARK, True)
    with pytest.raises(ShuttingDown):
        await anext(stream)
    with pytest.raises(ShuttingDown):
        await anext(scene.watch())


async def test_if_the_store_cannot_be_asked_about_a_token_that_is_ahead_nothing_is_claimed() -> None:
    scene = Scene()
    scene.put("b")
    token = (await synced(scene.watch())).resume_token
    behind = Still()
    behind.list(World().records(), 2)

    async def away(*, hurry: bool = True) -> int:
        raise StoreUnavailable("the store is away")

    behind.replica.fence.passed = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await anext(behind.watch(ALL, token))


async def test_the_filter_is_that_of_the_token() -> None:
    scene = Scene()
    token = (await synced(scene.watch())).resume_token
    with pytest.raises(InvalidRequest, match="another filter"):
        await anext(scene.watch(token, OF_S))


async def test_a_reader_that_leaves_leaves_nothing_behind() -> None:
    scene = Scene()
    for count in (1, 2, 3):
        stream = scene.watch()
        await some(stream, count)
        await stream.aclose()
    assert len(scene.still.replica.fanout) == 0
