"""Complete revisions out of fragments."""

from __future__ import annotations

from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from store.port import KeyChange
from store.unfragment import Unfragment


def changes(*revisions: int) -> list[KeyChange]:
    return [KeyChange(b"%d" % n, b"x", revision, revision) for n, revision in enumerate(revisions)]


def test_a_whole_message_is_passed_on() -> None:
    whole = Unfragment(0).take(changes(1, 2, 2), more_follows=False)
    assert whole is not None
    assert (whole.revision, whole.changes) == (2, changes(1, 2, 2))


def test_the_last_revision_of_a_fragment_waits_until_it_is_complete() -> None:
    unfragment = Unfragment(0)
    first = unfragment.take(changes(1, 2), more_follows=True)
    assert first is not None
    assert first.revision == 1
    last = unfragment.take(changes(2, 3), more_follows=False)
    assert last is not None
    assert (last.revision, [c.revision for c in last.changes]) == (3, [2, 2, 3])


def test_a_revision_over_many_fragments_comes_once() -> None:
    unfragment = Unfragment(0)
    assert [unfragment.take(changes(7), more_follows=True) for _ in range(5)] == [None] * 5
    whole = unfragment.take([], more_follows=False)
    assert whole is not None
    assert len(whole.changes) == 5


def test_changes_applied_already_are_dropped() -> None:
    unfragment = Unfragment(5)
    assert unfragment.take(changes(3, 4, 5), more_follows=False) is None
    news = unfragment.take(changes(5, 6), more_follows=False)
    assert news is not None
    assert [c.revision for c in news.changes] == [6]
    assert unfragment.take(changes(4, 6), more_follows=False) is None


def test_a_message_without_events_yields_nothing() -> None:
    assert Unfragment(0).take([], more_follows=False) is None


@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), st.data())
def test_however_it_is_split_every_revision_comes_once_and_whole(sizes: list[int], data: st.DataObject) -> None:
    revisions = [revision for revision, size in enumerate(sizes, 1) for _ in range(size)]
    everything = changes(*revisions)
    unfragment = Unfragment(0)
    told: list[KeyChange] = []
    while everything:
        taken = data.draw(st.integers(1, len(everything)))
        now, everything = everything[:taken], everything[taken:]
        batch = unfragment.take(now, more_follows=bool(everything))
        if batch is not None:
            for revision, group in groupby(batch.changes, key=lambda change: change.revision):
                assert len(list(group)) == sizes[revision - 1]
            told += batch.changes
    assert [c.revision for c in told] == revisions
