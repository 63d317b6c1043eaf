"""Lists that are kept joined: always what is true now, and within their bytes."""

from __future__ import annotations

from weakref import ref

import pytest

from hq.memory.cache import Cache
from hq.memory.joined_lists import Home, JoinedList, Shelf
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
    return pb.FindInstancesResponse.FromString(listing.frames if listing else b"")


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
        assert all(e.frame() in f.frames for f in [feed.cache.listing(OF_S)] if f for e in f.entries)
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


def test_a_long_list_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hq.memory.index._LISTED", 1)
    assert two().cache.listing(OF_S) is None


def test_what_is_kept_stays_within_its_bytes() -> None:
    shelf, homes = Shelf(100_000), [Home() for _ in range(100)]
    for home in homes:
        for key in (None, True):
            shelf.keep(home, key, JoinedList([entry("a")], b"x" * 1_000))
    kept = [listing for home in homes for key in (None, True) if (listing := home.get(key))]
    assert 10 <= len(kept) <= 20
    assert homes[-1].get(True) is kept[-1]
    assert len(shelf._kept) == len(kept)


def test_a_void_list_is_held_by_nobody() -> None:
    shelf, home = Shelf(100_000), Home()
    old = JoinedList([], b"x" * 1_000)
    shelf.keep(home, None, old)
    seen = ref(old)
    del old
    assert seen() is not None
    home.void()
    assert seen() is None


def test_what_is_noted_of_void_lists_does_not_pile_up_behind_a_list_that_stays() -> None:
    shelf, still, changing = Shelf(1 << 30), Home(), Home()
    shelf.keep(still, None, JoinedList([], b"x" * 1_000))
    for _ in range(10_000):
        shelf.keep(changing, None, JoinedList([], b"x" * 1_000))
        changing.void()
    assert still.get(None) is not None
    assert len(shelf._kept) <= 65
    assert shelf._bytes <= 65 * 6_500


def test_lists_that_are_true_are_all_kept_while_void_ones_are_swept_away() -> None:
    shelf, homes, changing = Shelf(1 << 30), [Home() for _ in range(500)], Home()
    for home in homes:
        shelf.keep(home, None, JoinedList([], b"x"))
        shelf.keep(changing, None, JoinedList([], b"x"))
    assert all(home.get(None) for home in homes)
    assert len(shelf._kept) <= 2 * len(homes)


def test_what_took_the_place_of_an_old_list_does_not_go_with_it() -> None:
    shelf, home = Shelf(20_000), Home()
    shelf.keep(home, None, JoinedList([], b"x" * 1_000))
    home.void()
    newer = JoinedList([], b"x" * 1_000)
    shelf.keep(home, None, newer)
    shelf.keep(Home(), None, JoinedList([], b"x" * 1_500))
    assert home.get(None) is newer
