"""The watching call, case by case: how it begins, how it breaks, how it ends."""

from __future__ import annotations

import pytest

from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest, ShuttingDown, StoreUnavailable
from tests.support.stepped_replica import SteppedReplica
from tests.support.store_histories import World, spec_of
from tests.support.watch_setup import ALL, BOOKMARK, EVENTS, SNAPSHOT, SYNCED, Scene, some, synced

OF_S = pb.InstanceFilter(service_id=["s"])


async def test_a_watch_begins_with_a_snapshot() -> None:
    scene = Scene()
    stream = scene.watch()
    first, second = await some(stream, 2)
    assert (first.kind, [event.put.meta.id for event in first.events], first.resume_token) == (SNAPSHOT, ["a"], "")
    assert (second.kind, second.sources[0].version) == (SYNCED, scene.world.version)
    assert second.resume_token
    await stream.aclose()


async def test_changes_during_the_snapshot_follow_it() -> None:
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


async def test_a_watch_with_a_newer_token_waits_for_its_version() -> None:
    scene = Scene()
    stream = scene.watch()
    ahead = SteppedReplica()
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


async def test_a_collapsed_difference_is_marked_and_stands_alone() -> None:
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


async def test_an_instance_that_leaves_the_filter_is_reported_as_left() -> None:
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
        patch.setattr("hq.registry.watch_messages.MESSAGE_BYTES", 150)
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


async def test_a_shutdown_ends_a_watch_with_a_token_to_resume_from() -> None:
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


async def test_a_newer_token_is_not_called_lost_while_the_store_is_away() -> None:
    scene = Scene()
    scene.put("b")
    token = (await synced(scene.watch())).resume_token
    behind = SteppedReplica()
    behind.list(World().records(), 2)

    async def away() -> int:
        raise StoreUnavailable("the store is away")

    behind.replica.fence.wait_for_fence = away  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await anext(behind.watch(ALL, token))


async def test_a_token_is_refused_with_another_filter() -> None:
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
