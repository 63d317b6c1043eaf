"""Plans the next steps, from what is wanted and what is there. Pure: no I/O, no time.

The rules, in words:
- every wanted revision is prepared, the one wanted READY first in the list;
- the running revision continues until its successor is installed: a roll-out costs a restart, not a download;
- it ends at once if it is dropped, or if nothing is wanted READY;
- what is not wanted, or wanted CREATED only, and does not run is removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from instancectl.wanted.desired import RevisionContentKey


@dataclass(frozen=True, slots=True)
class Wanted:
    """All keys that the node shall hold, in order, and the one to run."""

    keys: tuple[RevisionContentKey, ...] = ()
    ready: RevisionContentKey | None = None


@dataclass(frozen=True, slots=True)
class Actual:
    """The state on disk and of processes.

    Attributes:
        installed: prepared with success.
        preparing: being prepared.
        resting: failed, and not yet due again.
        present: has files.
        running: runs, or is being stopped.
        stopping: `running` is being stopped.
    """

    installed: frozenset[RevisionContentKey] = frozenset()
    preparing: frozenset[RevisionContentKey] = frozenset()
    resting: frozenset[RevisionContentKey] = frozenset()
    present: frozenset[RevisionContentKey] = frozenset()
    running: RevisionContentKey | None = None
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class PrepareRevision:
    key: RevisionContentKey


@dataclass(frozen=True, slots=True)
class GiveUpRevision:
    """Give up preparing."""

    key: RevisionContentKey


@dataclass(frozen=True, slots=True)
class RunRevision:
    key: RevisionContentKey


@dataclass(frozen=True, slots=True)
class StopRevision:
    key: RevisionContentKey


@dataclass(frozen=True, slots=True)
class RemoveRevision:
    key: RevisionContentKey


Action = PrepareRevision | GiveUpRevision | RunRevision | StopRevision | RemoveRevision


def plan(wanted: Wanted, actual: Actual) -> list[Action]:
    """Actions that may begin now, all at once. Plan again when one of them is done."""
    return [
        *_given_up(wanted, actual),
        *_stops(wanted, actual),
        *_preparations(wanted, actual),
        *_runs(wanted, actual),
        *_removals(wanted, actual),
    ]


def _preparations(wanted: Wanted, actual: Actual) -> Iterable[Action]:
    settled = actual.installed | actual.preparing | actual.resting
    return (PrepareRevision(key) for key in wanted.keys if key not in settled)


def _given_up(wanted: Wanted, actual: Actual) -> Iterable[Action]:
    return (GiveUpRevision(key) for key in sorted(actual.preparing - set(wanted.keys)))


def _stops(wanted: Wanted, actual: Actual) -> Iterable[Action]:
    if actual.running is not None and not actual.stopping and _must_end(actual.running, wanted, actual):
        yield StopRevision(actual.running)


def _must_end(running: RevisionContentKey, wanted: Wanted, actual: Actual) -> bool:
    if wanted.ready == running:
        return False
    is_dropped = running.id not in {key.id for key in wanted.keys}
    return wanted.ready is None or is_dropped or wanted.ready in actual.installed


def _runs(wanted: Wanted, actual: Actual) -> Iterable[Action]:
    if actual.running is None and wanted.ready is not None and wanted.ready in actual.installed:
        yield RunRevision(wanted.ready)


def _removals(wanted: Wanted, actual: Actual) -> Iterable[Action]:
    in_use = {*wanted.keys, *actual.preparing, *([actual.running] if actual.running else [])}
    return (RemoveRevision(key) for key in sorted(actual.present - in_use))
