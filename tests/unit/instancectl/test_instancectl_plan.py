"""What instancectl does next, as a table."""

from __future__ import annotations

from instancectl.wanted.desired import RevisionContentKey
from instancectl.wanted.plan import (
    Actual,
    GiveUpRevision,
    PrepareRevision,
    RemoveRevision,
    RunRevision,
    StopRevision,
    Wanted,
    plan,
)

OLD, NEW = RevisionContentKey("r1", "a" * 64), RevisionContentKey("r2", "b" * 64)
NEW_FILES = RevisionContentKey("r1", "c" * 64)


def actual(*installed: RevisionContentKey, running: RevisionContentKey | None = None, **others: object) -> Actual:
    """The actual state; revisions that are installed are present, too."""
    have = frozenset(installed)
    return Actual(installed=have, present=have, running=running, **others)  # type: ignore[arg-type]


def test_wanted_revisions_that_are_missing_are_prepared_in_order() -> None:
    assert plan(Wanted((NEW, OLD), NEW), Actual()) == [PrepareRevision(NEW), PrepareRevision(OLD)]


def test_revisions_being_prepared_or_resting_are_left_alone() -> None:
    busy = Actual(preparing=frozenset({OLD}), resting=frozenset({NEW}), present=frozenset({OLD, NEW}))
    assert plan(Wanted((OLD, NEW), NEW), busy) == []


def test_the_installed_revision_wanted_ready_runs() -> None:
    assert plan(Wanted((OLD, NEW), NEW), actual(OLD, NEW)) == [RunRevision(NEW)]


def test_nothing_runs_that_is_only_wanted_installed() -> None:
    assert plan(Wanted((OLD,), None), actual(OLD)) == []


def test_the_old_revision_runs_on_while_its_successor_is_prepared() -> None:
    assert plan(Wanted((NEW, OLD), NEW), actual(OLD, running=OLD)) == [PrepareRevision(NEW)]


def test_the_old_revision_runs_on_if_its_successor_cannot_be_installed() -> None:
    rests = actual(OLD, running=OLD, resting=frozenset({NEW}))
    assert plan(Wanted((NEW, OLD), NEW), rests) == []


def test_the_old_revision_stops_when_its_successor_is_installed() -> None:
    assert plan(Wanted((NEW, OLD), NEW), actual(OLD, NEW, running=OLD)) == [StopRevision(OLD)]


def test_two_revisions_never_run_at_once() -> None:
    leaving = actual(OLD, NEW, running=OLD, stopping=True)
    assert plan(Wanted((NEW, OLD), NEW), leaving) == []


def test_a_revision_with_new_files_runs_with_the_old_ones_until_they_are_installed() -> None:
    wanted = Wanted((NEW_FILES,), NEW_FILES)
    assert plan(wanted, actual(OLD, running=OLD)) == [PrepareRevision(NEW_FILES)]
    assert plan(wanted, actual(OLD, NEW_FILES, running=OLD)) == [StopRevision(OLD)]
    assert plan(wanted, actual(OLD, NEW_FILES)) == [RunRevision(NEW_FILES), RemoveRevision(OLD)]


def test_a_dropped_revision_is_stopped_at_once_and_removed_when_it_has_ended() -> None:
    wanted = Wanted((NEW,), NEW)
    assert plan(wanted, actual(OLD, running=OLD)) == [StopRevision(OLD), PrepareRevision(NEW)]
    assert plan(wanted, actual(OLD, NEW)) == [RunRevision(NEW), RemoveRevision(OLD)]


def test_a_running_revision_is_never_removed() -> None:
    assert plan(Wanted(), actual(OLD, running=OLD, stopping=True)) == []


def test_the_running_revision_stops_when_none_is_wanted_ready() -> None:
    assert plan(Wanted((OLD,), None), actual(OLD, running=OLD)) == [StopRevision(OLD)]


def test_the_preparation_of_an_unwanted_revision_ends_before_its_removal() -> None:
    busy = Actual(preparing=frozenset({OLD}), present=frozenset({OLD}))
    assert plan(Wanted(), busy) == [GiveUpRevision(OLD)]
    assert plan(Wanted(), Actual(present=frozenset({OLD}))) == [RemoveRevision(OLD)]
