"""What discovery makes of a watch, item by item."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hqclient.discovery.endpoint import Key, KnownInstance
from hqclient.discovery.roster import Origin, Roster
from hqclient.watch_items import Bookmark, Interrupted, Resync, SnapshotPart, WatchItem
from hqpb.v1 import service_pb2 as pb
from tests.support.watch_items import (
    AWAY,
    changes,
    fed,
    gone,
    ids,
    kept,
    left,
    part,
    put,
    shown,
    synced,
)


@pytest.mark.parametrize(
    ("items", "expected", "steps"),
    [
        ([part("a"), part("b"), synced()], ["a", "b"], [["+a", "+b"]]),
        ([part("a")], [], []),
        ([synced()], [], []),
        ([part("a"), synced(), changes(put("b", 2))], ["a", "b"], [["+a"], ["+b"]]),
        ([part("a"), synced(), changes(gone("a", 2))], [], [["+a"], ["-a"]]),
        ([part("a"), synced(), changes(left("a", 2))], [], [["+a"], ["-a"]]),
        ([part("a"), synced(), changes(put("a", 2, ready=False))], [], [["+a"], ["-a"]]),
        ([part("a"), synced(), changes(put("a", 2, tag="x"))], ["a"], [["+a"], ["~a"]]),
        ([part("a"), synced(), changes(put("a", 2))], ["a"], [["+a"]]),
        ([part("a"), synced(), changes(put("b", 2), put("b", 3, tag="x"))], ["a", "b"], [["+a"], ["+b"], ["~b"]]),
        ([part("a"), synced(), changes(put("b", 2), gone("a", 2))], ["b"], [["+a"], ["-a", "+b"]]),
        ([part("a"), synced(), AWAY], ["a"], [["+a"]]),
        ([part("a"), synced(), Resync("lost")], ["a"], [["+a"]]),
        ([part("a"), synced(), Resync("lost"), part("b")], ["a"], [["+a"]]),
        ([part("a"), synced(), Resync("lost"), part("b"), synced()], ["b"], [["+a"], ["-a", "+b"]]),
        ([part("a"), synced(), Resync("lost"), part("a"), synced()], ["a"], [["+a"], []]),
        ([part("a"), Resync("cut"), part("b"), synced()], ["b"], [["+b"]]),
        ([part("a"), synced(), AWAY, synced(), changes(put("b", 2))], ["a", "b"], [["+a"], ["+b"]]),
    ],
)
def test_the_list_after_a_series_of_watch_items(
    items: list[WatchItem], expected: list[str], steps: list[list[str]]
) -> None:
    roster, deltas = fed(*items)
    assert ids(roster) == expected
    assert [sorted(step) for step in shown(deltas)] == [sorted(step) for step in steps]


def test_an_unsynced_snapshot_is_never_shown_as_an_empty_list() -> None:
    roster, _ = fed(part("a", "b"), synced(), Resync("lost"))
    assert ids(roster) == ["a", "b"]
    assert (roster.origin, roster.is_whole) == (Origin.KEPT, False)


def test_a_resync_is_shown_as_such_even_if_nothing_differs() -> None:
    roster, deltas = fed(part("a"), synced(), Resync("history too short"), part("a"), synced())
    assert deltas[1].resync == "history too short"
    assert roster.resyncs == 1


def test_a_first_snapshot_that_is_cut_off_is_no_resync() -> None:
    roster, deltas = fed(part("a"), Resync("cut"), part("a"), synced())
    assert (roster.resyncs, deltas[0].resync) == (0, "")


def test_a_list_knows_its_age_and_where_it_is_from() -> None:
    roster = Roster()
    assert (roster.origin, roster.age_s(100)) == (Origin.NONE, math.inf)
    fed(part("a"), synced(), roster=roster, now=100)
    assert (roster.origin, roster.age_s(103)) == (Origin.LIVE, 3)
    fed(AWAY, roster=roster, now=105)
    assert (roster.origin, roster.age_s(160)) == (Origin.KEPT, 60)


def test_a_replica_that_is_behind_makes_the_list_older() -> None:
    behind = pb.Source(stale=True)
    behind.staleness.FromSeconds(20)
    roster, _ = fed(part("a"), synced(), Bookmark("t", (behind,)), now=100)
    assert (roster.age_s(101), roster.source_is_stale) == (21, True)


def test_a_resumed_watch_is_fresh_only_when_what_was_missed_has_come() -> None:
    roster, _ = fed(part("a"), synced(), AWAY, now=100)
    fed(synced(), roster=roster, now=200)
    assert (roster.origin, roster.age_s(200)) == (Origin.KEPT, 100)
    fed(Bookmark("t", ()), roster=roster, now=201)
    assert (roster.origin, roster.age_s(201)) == (Origin.LIVE, 0)


def test_a_bookmark_during_a_new_snapshot_does_not_make_the_old_list_young() -> None:
    roster, _ = fed(part("a"), synced(), Resync("lost"), now=100)
    fed(Bookmark("t", ()), roster=roster, now=200)
    assert roster.age_s(200) == 100


def test_a_saved_list_is_marked_until_hq_has_spoken() -> None:
    roster = Roster()
    roster.restore([kept("a")], as_of=40, resumable=False, epochs={})
    assert (ids(roster), roster.origin, roster.age_s(100)) == (["a"], Origin.SAVED, 60)
    _, deltas = fed(AWAY, part("b"), synced(), roster=roster)
    assert (shown(deltas), roster.origin) == ([["-a", "+b"]], Origin.LIVE)


def test_a_saved_list_resumes_at_its_token() -> None:
    roster = Roster()
    roster.restore([kept("a")], as_of=40, resumable=True, epochs={})
    _, deltas = fed(synced(), changes(put("b", 9)), roster=roster)
    assert (shown(deltas), ids(roster), roster.resyncs) == ([["+b"]], ["a", "b"], 0)


def test_changes_that_hq_collapsed_are_marked_so() -> None:
    _, deltas = fed(part("a"), synced(), changes(put("a", 5), put("b", 6), collapsed=True))
    assert [d.collapsed for d in deltas] == [False, True, False]


names = st.sampled_from("abcd")
version = st.integers(1, 3)
items = st.one_of(
    st.lists(names, max_size=3).map(lambda found: part(*found)),
    st.just(synced()),
    st.lists(
        st.one_of(
            st.builds(put, names, version, tag=st.sampled_from(["", "x"]), ready=st.booleans()),
            st.builds(gone, names, version),
            st.builds(left, names, version),
        ),
        max_size=4,
    ).map(lambda events: changes(*events)),
    st.just(Bookmark("t", ())),
    st.just(Resync("lost")),
    st.just(AWAY),
)


@settings(deadline=None)
@given(st.lists(items, max_size=25))
def test_the_steps_shown_always_add_up_to_the_list(story: list[WatchItem]) -> None:
    roster = Roster()
    added_up: dict[Key, KnownInstance] = {}
    for item in story:
        size, known = len(roster.instances), roster.is_known
        for delta in roster.apply(item, 1.0):
            for key, (before, after) in delta.changes.items():
                assert added_up.get(key) == before != after
                added_up.pop(key, None)
                if after is not None:
                    added_up[key] = after
        assert added_up == roster.instances
        if isinstance(item, SnapshotPart | Resync | Interrupted | Bookmark):
            assert (len(roster.instances), roster.is_known) == (size, known), f"{item} may not move the list"
