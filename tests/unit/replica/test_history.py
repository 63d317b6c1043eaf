"""The window of events that watches can go on from: whole versions, bounded by bytes, exact about its edge."""

from __future__ import annotations

from hq.memory.entry import Event
from hq.memory.history import History, VersionEvents, WatchedEvent
from hqpb.v1 import service_pb2 as pb
from tests.support.cache_entries import entry


def step(version: int, text: str = "", count: int = 1, *, collapsed: bool = False) -> VersionEvents:
    events = [WatchedEvent(Event(version, None, entry(f"i-{n}", version, text))) for n in range(count)]
    return VersionEvents(version, events, collapsed)


def filled(*versions: int, max_bytes: int = 1 << 20) -> History:
    history = History(max_bytes)
    history.reset(1)
    for version in versions:
        history.add(step(version))
    return history


def versions_since(history: History, version: int, size_bytes: int = 1 << 20) -> list[int] | None:
    steps = history.since(version, size_bytes)
    return None if steps is None else [s.version for s in steps]


def test_all_versions_after_a_given_one_come_in_order() -> None:
    history = filled(3, 4, 9)
    assert versions_since(history, 1) == [3, 4, 9]
    assert versions_since(history, 3) == [4, 9]
    assert versions_since(history, 5) == [9]
    assert versions_since(history, 9) == []


def test_a_watch_can_resume_from_exactly_the_edge_of_the_window() -> None:
    history = filled(*range(2, 40), max_bytes=5_000)
    edge = history.complete_after
    assert 20 < edge < 38
    assert versions_since(history, edge) == list(range(edge + 1, 40))
    assert versions_since(history, edge - 1) is None


def test_history_stays_within_its_bytes_but_always_has_the_newest_version() -> None:
    history = History(20_000)
    for version in range(2, 500):
        history.add(step(version, text="x" * 1_000))
        assert sum(e.size_bytes() for s in history._steps for e in s.events) <= 20_000
        assert len(history._steps) < 60
    history.add(step(500, text="x" * 50_000))
    assert (len(history), versions_since(history, 499)) == (1, [500])


def test_history_before_a_listing_is_unknown() -> None:
    history = filled(2, 3)
    history.reset(10)
    assert versions_since(history, 9) is None
    assert versions_since(history, 10) == []


def test_a_watch_cannot_resume_from_inside_a_collapsed_difference() -> None:
    history = filled(2, 3)
    history.add(step(10, collapsed=True))
    for version in (2, 3, 9):
        assert versions_since(history, version) is None
    assert versions_since(history, 10) == []
    history.add(step(11))
    assert versions_since(history, 10) == [11]


def test_a_portion_is_about_as_large_as_asked_for_and_never_empty() -> None:
    history = filled(*range(2, 40))
    portion = versions_since(history, 1, 3_000)
    assert portion is not None
    assert 3 <= len(portion) <= 5
    assert versions_since(history, 1, 1) == [2]


def test_a_removal_is_encoded_once_and_names_the_removed_uid() -> None:
    gone = WatchedEvent(Event(7, entry("a"), None))
    left = WatchedEvent(Event(8, entry("a"), entry("a", 8)))
    assert gone.encoded_removal() is gone.encoded_removal()
    (delete,) = pb.WatchInstancesResponse.FromString(gone.encoded_removal()).events
    assert (delete.version, delete.delete) == (7, pb.InstanceRef(id="a", uid=1, cluster="c"))
    (leaving,) = pb.WatchInstancesResponse.FromString(left.encoded_removal()).events
    assert (leaving.version, leaving.left) == (8, pb.InstanceRef(id="a", uid=1, cluster="c"))
    (put,) = pb.WatchInstancesResponse.FromString(left.put).events
    assert put.put == entry("a", 8).instance()
