"""The table of one snapshot: (current state, event) -> current state. What is not in it cannot happen.

Orders are never handled in a working state: the step first looks up where an aborted action leaves the snapshot
(CANCELLED), and where the target leads from there. If that is the action that already runs, it continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from nanny.automaton.states import Current, SnapshotEvent

_C, _E = Current, SnapshotEvent
ABSENT: Final = None
"""A snapshot without a tuple."""

State = Current | None
Table = Mapping[tuple[State, SnapshotEvent], State]


def _outcomes() -> Iterator[tuple[tuple[State, SnapshotEvent], State]]:
    """How work ends."""
    for working, done, left in (
        (_C.GENERATING, _C.CREATED, _C.PARTIALLY_CREATED),
        (_C.PREPARING, _C.PREPARED, _C.PARTIALLY_PREPARED),
        (_C.ACTIVATING, _C.ACTIVE, _C.BROKEN),
        (_C.DEACTIVATING, _C.PREPARED, _C.BROKEN),
        (_C.REMOVING, _C.CREATED, _C.PARTIALLY_PREPARED),
        (_C.DESTROYING, _C.DESTROYED, _C.PARTIALLY_CREATED),
    ):
        yield (working, _E.DONE), done
        yield (working, _E.FAILED), left
        yield (working, _E.CANCELLED), left


def _ways() -> Iterator[tuple[tuple[State, SnapshotEvent], State]]:
    """Where a resting snapshot goes next, by its target; to itself: it has arrived, or must not be changed."""
    for resting, destroyed, created, prepared, active in (
        (_C.PARTIALLY_CREATED, _C.DESTROYING, _C.GENERATING, _C.GENERATING, _C.GENERATING),
        (_C.CREATED, _C.DESTROYING, _C.CREATED, _C.PREPARING, _C.PREPARING),
        (_C.PARTIALLY_PREPARED, _C.REMOVING, _C.REMOVING, _C.PREPARING, _C.PREPARING),
        (_C.PREPARED, _C.REMOVING, _C.REMOVING, _C.PREPARED, _C.ACTIVATING),
        (_C.BROKEN, _C.DEACTIVATING, _C.DEACTIVATING, _C.DEACTIVATING, _C.ACTIVATING),
        (_C.DEACTIVATE_PENDING, *[_C.DEACTIVATE_PENDING] * 3, _C.ACTIVATING),
    ):
        yield (resting, _E.TO_DESTROYED), destroyed
        yield (resting, _E.TO_CREATED), created
        yield (resting, _E.TO_PREPARED), prepared
        yield (resting, _E.TO_ACTIVE), active


TABLE: Final[Table] = {
    **dict(_outcomes()),
    **dict(_ways()),
    (ABSENT, _E.TO_CREATED): _C.GENERATING,
    (ABSENT, _E.TO_PREPARED): _C.GENERATING,
    (ABSENT, _E.TO_ACTIVE): _C.GENERATING,
    # A snapshot with target ACTIVE accepts no lower one, so the other three ways do not exist.
    (_C.ACTIVE, _E.TO_ACTIVE): _C.ACTIVE,
    # Ordered again although it has arrived: instances have targets of their own, or the fill flag is new.
    (_C.ACTIVE, _E.AGAIN): _C.ACTIVATING,
    (_C.CREATED, _E.AGAIN): _C.GENERATING,
    # Another snapshot is ordered ACTIVE: what is live waits for it, untouched.
    (_C.ACTIVE, _E.REPLACED): _C.DEACTIVATE_PENDING,
    (_C.BROKEN, _E.REPLACED): _C.DEACTIVATE_PENDING,
    (_C.DEACTIVATING, _E.REPLACED): _C.DEACTIVATE_PENDING,
    (_C.DEACTIVATE_PENDING, _E.REPLACED): _C.DEACTIVATE_PENDING,
    (_C.ACTIVATING, _E.REPLACED): _C.ACTIVATION_MUST_BE_CANCELLED,
    (_C.ACTIVATION_MUST_BE_CANCELLED, _E.CANCELLED): _C.DEACTIVATE_PENDING,
    # The other's roll-out is done: the snapshot that waited for it may still run in part, and is switched off.
    (_C.DEACTIVATE_PENDING, _E.RELEASED): _C.BROKEN,
    # Stop: whatever may run, even by an order for one instance, is switched off.
    (_C.ACTIVE, _E.STOPPED): _C.BROKEN,
    (_C.ACTIVATING, _E.STOPPED): _C.BROKEN,
    (_C.BROKEN, _E.STOPPED): _C.BROKEN,
    (_C.DEACTIVATING, _E.STOPPED): _C.DEACTIVATING,
    (_C.DEACTIVATE_PENDING, _E.STOPPED): _C.BROKEN,
    (_C.PREPARED, _E.STOPPED): _C.BROKEN,
    # People promote a step, or say that the roll-out has failed.
    (_C.ACTIVATING, _E.PROMOTED): _C.ACTIVATING,
    (_C.ACTIVATING, _E.ABORTED): _C.BROKEN,
    (_C.DESTROYED, _E.DONE): ABSENT,
}
