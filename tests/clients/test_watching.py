"""The watch against real sockets: cuts, fail-over, resync."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import grpc
import pytest

from hqclient import watch
from hqclient.client import Client, HqApiError
from hqclient.watch import Watch
from hqclient.watch_items import Bookmark, Changes, Interrupted, Resync, Shown, SnapshotPart, Synced, WatchItem
from hqpb.v1 import service_pb2 as pb
from tests.clients.conftest import SETTINGS, by_preference
from tests.clients.deeds import refuse
from tests.clients.fake_hq import FakeReplica, instance, say

Code = grpc.StatusCode
Replicas = list[FakeReplica]


def snapshot(*ids: str) -> pb.WatchInstancesResponse:
    events = [pb.WatchEvent(version=1, put=instance(i)) for i in ids]
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SNAPSHOT, events=events)


def synced(token: str) -> pb.WatchInstancesResponse:
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, resume_token=token)


def bookmark(token: str) -> pb.WatchInstancesResponse:
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, resume_token=token)


def changed(instance_id: str, token: str) -> pb.WatchInstancesResponse:
    event = pb.WatchEvent(version=2, put=instance(instance_id))
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_EVENTS, events=[event], resume_token=token)


async def shown_until(items: Watch, last: Callable[[WatchItem], bool]) -> list[WatchItem]:
    shown: list[WatchItem] = []
    async with asyncio.timeout(30):
        async for item in items:
            shown.append(item)
            if last(item):
                break
    return shown


def kinds(items: list[WatchItem]) -> list[type]:
    return [type(item) for item in items]


def is_change_of(instance_id: str) -> Callable[[WatchItem], bool]:
    return lambda item: isinstance(item, Changes) and item.events[0].put.meta.id == instance_id


async def test_a_watch_shows_the_snapshot_then_changes(client: Client, replicas: Replicas) -> None:
    replicas[0].watches.append(say(snapshot("a"), snapshot("b"), synced("t1"), changed("c", "t2")))
    async with client.watch() as items:
        shown = await shown_until(items, is_change_of("c"))
        assert items.resume_token == "t2"
    assert kinds(shown) == [SnapshotPart, SnapshotPart, Synced, Changes]


async def test_a_watch_goes_on_at_another_replica_where_it_was_cut(client: Client, replicas: Replicas) -> None:
    replicas[0].watches.append(say(snapshot("a"), synced("t1"), changed("b", "t2"), then="cut"))
    replicas[1].watches.append(say(synced("t2"), changed("c", "t3")))
    async with client.watch(pb.InstanceFilter(service_id=["web"])) as items:
        shown = await shown_until(items, is_change_of("c"))
    assert kinds(shown) == [SnapshotPart, Synced, Changes, Interrupted, Synced, Changes]
    resumed = replicas[1].requests["WatchInstances"][0]
    assert resumed.resume_token == "t2"
    assert list(resumed.filter.service_id) == ["web"]


async def test_a_snapshot_that_was_cut_is_taken_back_and_shown_anew(client: Client, replicas: Replicas) -> None:
    replicas[0].watches.append(say(snapshot("a"), then="cut"))
    replicas[1].watches.append(say(snapshot("a", "b"), synced("t1")))
    async with client.watch() as items:
        shown = await shown_until(items, lambda item: isinstance(item, Synced))
    assert kinds(shown) == [SnapshotPart, Resync, Interrupted, SnapshotPart, Synced]


async def test_a_stream_that_ends_cleanly_is_resumed_too(client: Client, replicas: Replicas) -> None:
    replicas[0].watches.append(say(snapshot("a"), synced("t1"), then="end"))
    replicas[1].watches.append(say(synced("t1"), changed("b", "t2")))
    async with client.watch() as items:
        shown = await shown_until(items, is_change_of("b"))
    assert kinds(shown) == [SnapshotPart, Synced, Interrupted, Synced, Changes]


async def test_a_resync_by_the_server_is_shown_as_such(client: Client, replicas: Replicas) -> None:
    resync = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_RESYNC, reason="too slow")
    replicas[0].watches.append(say(synced("t5"), resync, snapshot("a"), synced("t9")))
    async with client.watch(resume_token="t4") as items:
        shown = await shown_until(items, lambda item: item == Synced("t9", ()))
    assert shown[1] == Resync("too slow")
    assert kinds(shown) == [Synced, Resync, SnapshotPart, Synced]


async def test_a_token_of_a_past_epoch_starts_over_and_says_so(client: Client, replicas: Replicas) -> None:
    replicas[0].order("WatchInstances", refuse(Code.FAILED_PRECONDITION, "EPOCH_CHANGED"))
    for replica in replicas:
        replica.watches.append(say(snapshot("a"), synced("t1")))
    async with client.watch(resume_token="old") as items:
        shown = await shown_until(items, lambda item: isinstance(item, Synced))
    assert kinds(shown) == [Resync, Interrupted, SnapshotPart, Synced]


async def test_a_replica_that_dies_does_not_end_the_watch(client: Client, replicas: Replicas) -> None:
    replicas[0].watches.append(say(snapshot("a"), synced("t1")))
    replicas[1].watches.append(say(synced("t1"), changed("b", "t2")))
    async with client.watch() as items:
        await shown_until(items, lambda item: isinstance(item, Synced))
        await replicas[0].stop()
        shown = await shown_until(items, is_change_of("b"))
    assert kinds(shown) == [Interrupted, Synced, Changes]


async def test_a_watch_waits_while_all_replicas_are_gone(client: Client, replicas: Replicas) -> None:
    for replica in replicas:
        await replica.stop()
        replica.watches.append(say(snapshot("a"), synced("t1")))
    interruptions = 0
    async with client.watch() as items, asyncio.timeout(30):
        async for item in items:
            interruptions += isinstance(item, Interrupted)
            if interruptions == 4:
                await replicas[1].restart()
                interruptions += 1
            if isinstance(item, Synced):
                break
    assert interruptions >= 5


@pytest.mark.long
async def test_a_stream_without_bookmarks_is_given_up_for_another(replicas: Replicas) -> None:
    impatient = replace(SETTINGS, watch=replace(SETTINGS.watch, silence_limit_s=2.0))
    async with Client([r.address for r in replicas], settings=impatient) as client:
        by_preference(client, replicas)
        replicas[0].watches.append(say(snapshot("a"), synced("t1")))  # then silent for longer than the limit
        replicas[1].watches.append(say(synced("t1"), bookmark("t2")))
        async with client.watch() as items:
            shown = await shown_until(items, lambda item: isinstance(item, Bookmark))
    interrupted = [item for item in shown if isinstance(item, Interrupted)]
    assert "not even a bookmark" in str(interrupted[0].error)


async def test_a_watch_that_can_never_succeed_ends_with_the_error(client: Client, replicas: Replicas) -> None:
    replicas[0].order("WatchInstances", refuse(Code.INVALID_ARGUMENT, "INVALID_REQUEST"))
    with pytest.raises(HqApiError, match="refused by the test"):
        await anext(client.watch())


async def test_a_watch_ends_with_its_client(client: Client, replicas: Replicas) -> None:
    replicas[0].watches.append(say(snapshot("a"), synced("t1")))
    items = client.watch()
    await shown_until(items, lambda item: isinstance(item, Synced))
    waiting = asyncio.create_task(shown_until(items, lambda item: False))
    await asyncio.sleep(0)
    await client.close()
    assert kinds(await waiting) in ([], [Interrupted])


async def test_a_watch_starts_over_now_and_then_which_mends_what_was_lost(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_RENEWAL_SHARE", 0)  # a snapshot takes no time here, but some
    resumed, anew = say(snapshot("a", "ghost"), synced("t1"), bookmark("t1")), say(snapshot("a", "lost"), synced("t2"))
    for replica in replicas:
        replica.watches += [resumed, anew]
    settings = replace(SETTINGS, watch=replace(SETTINGS.watch, renew_s=0.0))
    addresses = [replica.address for replica in replicas[:1]]
    async with Client(addresses, settings=settings) as client, client.watch() as items:
        shown = Shown()
        async with asyncio.timeout(30):
            async for item in items:
                shown.apply_item(item)
                if isinstance(item, Synced) and item.resume_token == "t2":
                    break
    assert {name for _, name in shown.instances} == {"a", "lost"}
    assert [request.resume_token for request in replicas[0].requests["WatchInstances"]][:2] == ["", ""]
