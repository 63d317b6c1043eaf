"""The cache: what it knows of heartbeats, who waits for it, and which version it is at."""

from __future__ import annotations

import asyncio

import pytest

from hq.memory.cache import Cache
from hq.memory.query import Query
from hq.memory.record import Pool, decode_traits
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotLoaded
from store.port import Batch, Record
from tests.support.cache_entries import KEYS, Feed, mark, spec_value, status_value

# --- heartbeats ---------------------------------------------------------------------------------------------------


def test_a_heartbeat_shows_at_once_and_its_time_never_goes_back() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark("r", heard_ms=1_000), mark("r-1", heard_ms=2_000)))
    entry = feed.cache.get("a")
    assert entry is not None
    versions = entry.version, entry.status_version
    for heartbeat_ms, shown_ms in ((5_000, 5_000), (4_000, 5_000), (6_000, 6_000)):
        entry.heartbeat(0, heartbeat_ms, "hearer")
        status = entry.instance().status
        assert status.heartbeat["r"].ToMilliseconds() == shown_ms
        assert status.heartbeat["r-1"].ToMilliseconds() == 2_000
        assert status.last_heartbeat_time.ToMilliseconds() == shown_ms
    assert (entry.version, entry.status_version) == versions == (1, 1)


def test_heartbeats_survive_rewrites_of_the_same_report() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark(heard_ms=1_000)))
    entry = feed.cache.get("a")
    assert entry is not None
    entry.heartbeat(0, 5_000, "hearer")
    feed(spec=spec_value("a", text="changed"))
    feed(status=status_value(mark(heard_ms=1_000)))
    after = feed.cache.get("a")
    assert after is not None
    assert (after.marks[0].heard_ms, after.marks[0].heard_by) == (5_000, "hearer")
    assert after.instance().status.last_heartbeat_time.ToMilliseconds() == 5_000


def test_a_new_report_or_a_later_record_overrules_remembered_heartbeats() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark(heard_ms=1_000)))
    first = feed.cache.get("a")
    assert first is not None
    first.heartbeat(0, 5_000, "hearer")
    feed(status=status_value(mark(heard_ms=9_000)))
    second = feed.cache.get("a")
    assert second is not None
    assert (second.marks[0].heard_ms, second.marks[0].heard_by) == (9_000, "writer")
    feed(status=status_value(mark(sequence=2, heard_ms=7_000)))
    third = feed.cache.get("a")
    assert third is not None
    assert third.marks[0].heard_ms == 7_000


def test_a_recreated_instance_has_no_heartbeats_of_its_predecessor() -> None:
    feed = Feed()
    feed(spec=spec_value("a", uid=1), status=status_value(mark(heard_ms=1_000)))
    entry = feed.cache.get("a")
    assert entry is not None
    entry.heartbeat(0, 5_000, "hearer")
    feed(spec=spec_value("a", uid=2), status=status_value(mark(heard_ms=1_000)))
    after = feed.cache.get("a")
    assert after is not None
    assert after.marks[0].heard_ms == 1_000
    assert feed.cache.by_uid(1) is None
    assert feed.cache.by_uid(2) is after


# --- waiting --------------------------------------------------------------------------------------------------------


async def test_waiting_ends_when_the_version_is_there() -> None:
    cache = Cache(KEYS)
    cache.advance(5)
    await cache.wait_for(5)
    waiting = [asyncio.create_task(cache.wait_for(version)) for version in (9, 7, 8)]
    await asyncio.sleep(0)
    cache.advance(8)
    await asyncio.sleep(0)
    assert [task.done() for task in waiting] == [False, True, True]
    cache.apply(Batch(9, []))
    await asyncio.gather(*waiting)


async def test_waiting_ends_with_an_error_when_the_store_is_replaced() -> None:
    cache = Cache(KEYS)
    waiting = asyncio.create_task(cache.wait_for(5))
    await asyncio.sleep(0)
    cache.reset()
    with pytest.raises(NotLoaded):
        await waiting
    assert (cache.version, cache.epoch) == (0, "")


async def test_nobody_fills_memory_by_waiting_for_versions_that_never_come() -> None:
    cache = Cache(KEYS)
    for _ in range(1_000):
        waiting = asyncio.create_task(cache.wait_for(1 << 60))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert len(cache._waiters._heap) < 10


async def test_waiters_that_give_up_do_not_disturb_the_others() -> None:
    cache = Cache(KEYS)
    waiting = [asyncio.create_task(cache.wait_for(version)) for version in range(1, 20)]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()
    await asyncio.gather(*waiting[::2], return_exceptions=True)
    cache.advance(10)
    await asyncio.sleep(0)
    assert [task.done() for task in waiting[1::2]] == [version <= 10 for version in range(2, 20, 2)]
    cache.advance(20)
    await asyncio.gather(*waiting[1::2])
    assert len(cache._waiters) == 0


# --- versions and listings ------------------------------------------------------------------------------------------


def test_a_listing_is_complete_when_the_cache_is_advanced_to_it() -> None:
    cache = Cache(KEYS)
    cache.load([Record(KEYS.spec("a"), spec_value("a"), 3, 4), Record(KEYS.spec("b"), spec_value("b", uid=2), 5, 5)])
    cache.load([Record(KEYS.status("a"), status_value(mark()), 3, 6), Record(KEYS.status("z"), status_value(), 7, 7)])
    cache.advance(9)
    a = cache.get("a")
    assert a is not None
    assert (a.version, a.status_version, a.spec_created) == (4, 6, 3)
    assert cache.get("b") is not None
    assert cache.get("z") is None
    assert cache.stored_versions("z") == (0, 7)
    assert set(cache.keys()) == {KEYS.spec("a"), KEYS.status("a"), KEYS.spec("b"), KEYS.status("z")}


def test_the_version_never_goes_back() -> None:
    cache = Cache(KEYS)
    cache.advance(5)
    cache.advance(3)
    assert cache.version == 5


def test_a_cluster_filter_is_right_whether_there_is_one_cluster_or_more() -> None:
    feed = Feed()
    feed.on("a", spec=spec_value("a", uid=1))
    wanted, other = Query(pb.InstanceFilter(cluster=["c"])), Query(pb.InstanceFilter(cluster=["d"]))
    assert [e.traits.id for portion in feed.cache.matching(wanted) for e in portion] == ["a"]
    assert [e.traits.id for portion in feed.cache.matching(other) for e in portion] == []


def test_equal_labels_are_kept_once_and_unique_ones_leave_nothing_else() -> None:
    pool: Pool = {}
    found = []
    for number, name in enumerate(("same", "same", "same", "own-1", "own-2")):
        meta = model.InstanceMeta(id=f"i-{number}", labels={"engine": "jvm", "name": name})
        record = storage_pb2.SpecRecord(meta=meta.SerializeToString())
        found.append(decode_traits(meta.id, record, pool).labels)
    assert found[1] is found[2]
    assert all(labels[0] is found[0][0] and labels[1][0] is found[0][1][0] for labels in found)
    assert [dict(labels)["name"] for labels in found] == ["same", "same", "same", "own-1", "own-2"]
    assert found[3] not in pool
    assert found[4] not in pool
