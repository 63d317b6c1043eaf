"""Cached joined lists: always up to date, and within their budget of bytes."""

from __future__ import annotations

from weakref import ref

import pytest

from hq.memory.cache import Cache
from hq.memory.joined_lists import PLAIN, EncodedList, JoinedList, ListCacheBudget, ServiceListCache
from hq.memory.query import Query
from hqpb.v1 import service_pb2 as pb
from tests.support.cache_entries import Feed, entry, mark, spec_value, status_value

OF_S = Query(pb.InstanceFilter(service_id=["s"]))
READY_OF_S = Query(pb.InstanceFilter(service_id=["s"], readiness=pb.READINESS_FILTER_READY))


def two() -> Feed:
    feed = Feed()
    for uid, instance_id in enumerate(("a", "b")):
        feed.on(instance_id, spec=spec_value(instance_id, uid=uid), status=status_value(mark(heard_ms=1_000)))
    return feed


def listed(cache: Cache, query: Query = OF_S) -> pb.FindInstancesResponse:
    listing = cache.listing(query)
    return pb.FindInstancesResponse.FromString(joined(listing) if listing else b"")


def joined(listing: JoinedList) -> bytes:
    return listing.forms[PLAIN].answer("a source", lambda: b"")


def put(shelf: ListCacheBudget, home: ServiceListCache, size_bytes: int, key: object = None) -> JoinedList:
    return shelf.place(home, key).keep([entry("a")], [b"x" * size_bytes])


def test_a_list_is_joined_once_while_nothing_changes() -> None:
    cache = two().cache
    first = cache.listing(OF_S)
    assert first is not None
    assert cache.listing(OF_S) is first
    assert cache.listing(READY_OF_S) is not first
    assert [entry.traits.id for entry in first.entries] == ["a", "b"]


def test_a_heartbeat_is_seen_in_the_list() -> None:
    cache = two().cache
    assert listed(cache).instances[1].status.heartbeat["r"].ToMilliseconds() == 1_000
    b = cache.get("b")
    assert b is not None
    b.heartbeat(0, 9_000, "hearer")
    assert listed(cache).instances[1].status.heartbeat["r"].ToMilliseconds() == 9_000


def test_whatever_changes_is_seen_in_the_list() -> None:
    feed = two()
    changes: list[tuple[dict[str, bytes | None], list[str], list[str]]] = [
        ({"status": status_value(mark(ready=False, sequence=2))}, ["a", "b"], ["b"]),
        ({"status": status_value(mark(ready=True, sequence=3))}, ["a", "b"], ["a", "b"]),
        ({"spec": spec_value("a", service="s-1")}, ["b"], ["b"]),
        ({"spec": spec_value("a", text="back")}, ["a", "b"], ["a", "b"]),
        ({"spec": None, "status": None}, ["b"], ["b"]),
    ]
    for change, everything, ready in changes:
        feed(**change)
        assert [instance.meta.id for instance in listed(feed.cache).instances] == everything
        assert [instance.meta.id for instance in listed(feed.cache, READY_OF_S).instances] == ready
        assert all(e.frame() in joined(f) for f in [feed.cache.listing(OF_S)] if f for e in f.entries)
    feed.on("b", spec=None, status=None)
    assert feed.cache.listing(OF_S) is None
    assert not feed.cache._indexes._homes


@pytest.mark.parametrize(
    "wanted",
    [
        pb.InstanceFilter(),
        pb.InstanceFilter(service_id=["s", "s-1"]),
        pb.InstanceFilter(service_id=["s"], node_name=["n"]),
        pb.InstanceFilter(service_id=["unknown"]),
        pb.InstanceFilter(readiness=pb.READINESS_FILTER_READY),
    ],
)
def test_only_lists_of_one_service_are_kept(wanted: pb.InstanceFilter) -> None:
    assert two().cache.listing(Query(wanted)) is None


def test_a_long_list_is_not_joined_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hq.memory.index._LISTED", 1)
    assert two().cache.listing(OF_S) is None


def test_a_page_is_kept_until_its_service_changes() -> None:
    cache = two().cache
    place, b = cache.place(OF_S, "page"), cache.get("b")
    assert place is not None
    assert b is not None
    page = place.keep([b], [b.frame()], "more")
    assert cache.page(OF_S, "page") is page
    assert cache.page(READY_OF_S, "page") is cache.page(OF_S, "another") is None
    b.heartbeat(0, 9_000, "hearer")
    assert cache.page(OF_S, "page") is None


def test_a_page_during_which_its_service_changed_is_not_kept() -> None:
    cache = two().cache
    place, b = cache.place(OF_S, "page"), cache.get("b")
    assert place is not None
    assert b is not None
    b.heartbeat(0, 9_000, "hearer")
    assert place.keep([b], [b.frame()]).size_bytes
    assert cache.page(OF_S, "page") is None


def test_cached_lists_stay_within_the_budget_of_bytes() -> None:
    shelf, homes = ListCacheBudget(30_000), [ServiceListCache() for _ in range(100)]
    for home in homes:
        for key in (None, True):
            put(shelf, home, 1_000, key)
    kept = [listing for home in homes for key in (None, True) if (listing := home.get(key))]
    assert 10 <= len(kept) <= 30
    assert homes[-1].get(True) is kept[-1]
    assert len(shelf._kept) == len(kept)


def test_all_forms_of_a_list_count_towards_the_budget() -> None:
    shelf, first, second, home = ListCacheBudget(10_000), ServiceListCache(), ServiceListCache(), ServiceListCache()
    put(shelf, first, 3_400)
    put(shelf, second, 3_400)
    listing = put(shelf, home, 1_000)
    assert first.get(None) is not None
    listing.add("json", EncodedList([b"x" * 1_500]))
    assert (first.get(None), home.get(None), [*listing.forms]) == (None, listing, [PLAIN, "json"])
    assert second.get(None) is not None
    listing.add("too large", EncodedList([b"x" * 3_000]))
    assert [*listing.forms] == [PLAIN, "json"]


def test_a_list_that_is_asked_for_outlives_those_that_are_not() -> None:
    shelf, home = ListCacheBudget(10_000), ServiceListCache()
    asked = put(shelf, home, 1_000)
    for number in range(100):
        asked.form(PLAIN)
        put(shelf, home, 1_000, number)
    assert home.get(None) is asked
    for number in range(100):
        put(shelf, home, 1_000, number)
    assert home.get(None) is None


def test_a_list_larger_than_half_the_budget_is_not_cached() -> None:
    shelf, home = ListCacheBudget(10_000), ServiceListCache()
    assert put(shelf, home, 6_000).entries
    assert home.get(None) is None
    assert shelf._bytes == 0


def test_an_invalidated_list_is_freed() -> None:
    shelf, home = ListCacheBudget(100_000), ServiceListCache()
    old = put(shelf, home, 1_000)
    seen = ref(old)
    del old
    assert seen() is not None
    home.invalidate()
    assert seen() is None


def test_an_invalidated_list_takes_no_more_forms() -> None:
    shelf, home = ListCacheBudget(100_000), ServiceListCache()
    old = put(shelf, home, 1_000)
    home.invalidate()
    old.add("json", EncodedList([b"x"]))
    assert [*old.forms] == [PLAIN]


def test_bookkeeping_of_invalidated_lists_does_not_grow_behind_a_kept_list() -> None:
    shelf, still, changing = ListCacheBudget(1 << 30), ServiceListCache(), ServiceListCache()
    put(shelf, still, 1_000)
    for _ in range(10_000):
        put(shelf, changing, 1_000)
        changing.invalidate()
    assert still.get(None) is not None
    assert len(shelf._kept) <= 66
    assert shelf._bytes <= 66 * 1_600


def test_sweeping_invalidated_lists_keeps_all_valid_ones() -> None:
    shelf, homes, changing = ListCacheBudget(1 << 30), [ServiceListCache() for _ in range(500)], ServiceListCache()
    for home in homes:
        put(shelf, home, 1)
        put(shelf, changing, 1)
    assert all(home.get(None) for home in homes)
    assert len(shelf._kept) <= 2 * len(homes) + 1


def test_replacing_a_list_survives_the_eviction_of_the_old_one() -> None:
    shelf, home = ListCacheBudget(4_000), ServiceListCache()
    put(shelf, home, 1_000)
    home.invalidate()
    newer = put(shelf, home, 1_000)
    put(shelf, ServiceListCache(), 1_400)
    assert home.get(None) is newer
