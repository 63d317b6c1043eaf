"""The cache: who waits for it, what it does with records that nobody should have written, what it knows of beats."""

from __future__ import annotations

import asyncio

import pytest

from hq.cache import Cache
from hq.query import Query
from hq.store.port import Batch, Change, Record
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotLoaded
from tests.support.entries import KEYS, Feed, mark, spec_value, status_value

RUBBISH = b"\xff\xff\xff"


def named(cache: Cache, instance_id: str = "a") -> object:
    entry = cache.get(instance_id)
    assert entry is not None
    return entry.instance()


# --- records that cannot be decoded ---------------------------------------------------------------------------------


def test_the_last_good_state_is_served_and_marked() -> None:
    feed = Feed()
    feed(spec=spec_value("a", text="good"), status=status_value(mark()))
    good = feed.cache.get("a")
    assert feed(spec=RUBBISH) == []
    assert feed(status=RUBBISH) == []
    assert feed.cache.get("a") is good
    assert feed.cache.quarantine.shown_older() == ("a",)
    assert [(q.kind, q.version, q.served_from_older) for q in feed.cache.quarantine.all()] == [
        ("spec", 2, True),
        ("status", 3, True),
    ]


def test_what_was_never_good_is_not_shown() -> None:
    feed = Feed()
    assert feed(spec=RUBBISH, status=status_value(mark())) == []
    assert feed.cache.get("a") is None
    assert feed.cache.quarantine.shown_older() == ()
    assert not feed.cache.quarantine.all()[0].served_from_older


def test_a_status_waits_for_its_spec_to_become_readable() -> None:
    feed = Feed()
    feed(spec=RUBBISH, status=status_value(mark()))
    feed(spec=spec_value("a"))
    entry = feed.cache.get("a")
    assert entry is not None
    assert entry.traits.ready
    assert entry.status_version == 1


def test_a_good_status_is_taken_in_beside_a_bad_spec() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark(ready=False)))
    feed(spec=RUBBISH, status=status_value(mark(ready=True)))
    entry = feed.cache.get("a")
    assert entry is not None
    assert (entry.version, entry.status_version) == (1, 2)
    assert entry.traits.ready
    assert feed.cache.stored_versions("a") == (2, 2)


@pytest.mark.parametrize("remedy", [None, spec_value("a", text="new")], ids=["delete", "overwrite"])
def test_a_delete_or_a_good_overwrite_ends_the_quarantine(remedy: bytes | None) -> None:
    feed = Feed()
    feed(spec=spec_value("a"))
    feed(spec=RUBBISH)
    feed(spec=remedy)
    assert not feed.cache.quarantine.all()
    assert feed.cache.quarantine.shown_older() == ()
    assert (feed.cache.get("a") is None) == (remedy is None)


def test_an_instance_that_appears_beside_a_bad_status_is_marked() -> None:
    feed = Feed()
    feed(status=RUBBISH)
    assert feed.cache.quarantine.shown_older() == ()
    feed(spec=spec_value("a"))
    assert feed.cache.quarantine.shown_older() == ("a",)
    feed(spec=None)
    assert feed.cache.quarantine.shown_older() == ()


@pytest.mark.parametrize(
    "value",
    [
        RUBBISH,
        spec_value("another"),
        b"\x1a\x03" + RUBBISH,  # meta
        b"\x22\x03" + RUBBISH,  # spec
        b"\x1a\x04\x0a\x02\xc3\x28",  # meta.id is no UTF-8
    ],
)
def test_any_rubbish_in_a_spec_is_set_aside(value: bytes) -> None:
    feed = Feed()
    feed(spec=spec_value("a"))
    feed(spec=value)
    assert [q.kind for q in feed.cache.quarantine.all()] == ["spec"]


def test_marks_of_any_content_are_served() -> None:
    strange = mark("\u00fc", heard_ms=1 << 62)
    before_1970 = mark("r", heard_ms=-5)
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(strange, before_1970))
    entry = feed.cache.get("a")
    assert entry is not None
    assert entry.instance().status.heartbeat["\u00fc"].ToJsonString().startswith("9999-12-31")


def test_two_instances_that_share_a_uid_come_and_go() -> None:
    feed = Feed()
    for instance_id in ("a", "b"):
        feed.on(instance_id, spec=spec_value(instance_id, uid=0))
    feed.on("b", spec=None)
    feed.on("a", spec=None)
    assert len(feed.cache) == 0
    assert feed.cache.by_uid(0) is None


def test_keys_that_are_no_text_are_no_instances() -> None:
    cache = Cache(KEYS)
    cache.load([Record(KEYS.prefix + b"spec/\xff", spec_value("a"), 1, 1)])
    cache.apply(Batch(2, [Change(KEYS.prefix + b"what/is/this", b"", 2, 2), Change(KEYS.prefix, b"", 2, 2)]))
    assert len(cache) == 0


# --- beats ----------------------------------------------------------------------------------------------------------


def test_a_beat_is_seen_at_once_and_time_never_goes_back() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark("r", heard_ms=1_000), mark("r-1", heard_ms=2_000)))
    entry = feed.cache.get("a")
    assert entry is not None
    versions = entry.version, entry.status_version
    for beat_ms, shown_ms in ((5_000, 5_000), (4_000, 5_000), (6_000, 6_000)):
        entry.beat(0, beat_ms, "hearer")
        status = entry.instance().status
        assert status.heartbeat["r"].ToMilliseconds() == shown_ms
        assert status.heartbeat["r-1"].ToMilliseconds() == 2_000
        assert status.last_heartbeat_time.ToMilliseconds() == shown_ms
    assert (entry.version, entry.status_version) == versions == (1, 1)


def test_beats_are_remembered_over_rewrites_of_the_same_report() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark(heard_ms=1_000)))
    entry = feed.cache.get("a")
    assert entry is not None
    entry.beat(0, 5_000, "hearer")
    feed(spec=spec_value("a", text="changed"))
    feed(status=status_value(mark(heard_ms=1_000)))
    after = feed.cache.get("a")
    assert after is not None
    assert (after.marks[0].heard_ms, after.marks[0].heard_by) == (5_000, "hearer")
    assert after.instance().status.last_heartbeat_time.ToMilliseconds() == 5_000


def test_a_new_report_or_a_later_record_overrules_remembered_beats() -> None:
    feed = Feed()
    feed(spec=spec_value("a"), status=status_value(mark(heard_ms=1_000)))
    first = feed.cache.get("a")
    assert first is not None
    first.beat(0, 5_000, "hearer")
    feed(status=status_value(mark(heard_ms=9_000)))
    second = feed.cache.get("a")
    assert second is not None
    assert (second.marks[0].heard_ms, second.marks[0].heard_by) == (9_000, "writer")
    feed(status=status_value(mark(sequence=2, heard_ms=7_000)))
    third = feed.cache.get("a")
    assert third is not None
    assert third.marks[0].heard_ms == 7_000


def test_another_life_of_an_id_remembers_no_beats() -> None:
    feed = Feed()
    feed(spec=spec_value("a", uid=1), status=status_value(mark(heard_ms=1_000)))
    entry = feed.cache.get("a")
    assert entry is not None
    entry.beat(0, 5_000, "hearer")
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


async def test_waiting_is_sound_when_some_give_up_and_others_do_not() -> None:
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
