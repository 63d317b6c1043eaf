"""A service as the automaton sees it: its tuples and settings. Immutable, compared by value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from nanny.automaton.states import ACTIONS, Action, Current, Target


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The tuple of one snapshot: its current state, its target, and what goes with them.

    Attributes:
        fill: its revisions are already in HQ as CREATED (the flag `fill_pods_configuration`).
        overrides: number of the set of single-instance orders in force; 0: there is none.
        action: number of the running action; 0: none. Outcomes with other numbers are ignored.
        promoted: steps of its roll-out up to this number are promoted.
    """

    current: Current
    target: Target
    fill: bool = False
    overrides: int = 0
    action: int = 0
    promoted: int = 0


@dataclass(frozen=True, slots=True)
class RunningAction:
    """An action that should be under way."""

    snapshot: str
    action: Action
    number: int


@dataclass(frozen=True, slots=True)
class ManagedService:
    """Everything that the next step depends on.

    Attributes:
        tuples: by snapshot id.
        head: the snapshot that edits are made on; empty: there is none yet.
        paused: no action begins, and a running one touches no further instance.
        last_active: the snapshot that reached ACTIVE last; empty: none since the service was stopped.
        rolling_back: the current order is the policy's own roll-back, which is not rolled back again.
        numbered: the last number assigned to an action or a set of instance orders.
        head_on_activation: `set_snapshot_as_current_upon_activation`.
        rolls_back: what a failed roll-out does: True: roll back once; False: stop and show.
    """

    tuples: Mapping[str, SnapshotState] = field(default_factory=dict)
    head: str = ""
    paused: bool = False
    last_active: str = ""
    rolling_back: bool = False
    numbered: int = 0
    head_on_activation: bool = False
    rolls_back: bool = False

    def running(self) -> Iterator[RunningAction]:
        """The actions that should be under way; none while the service is paused."""
        for snapshot, state in self.tuples.items():
            if not self.paused and state.current in ACTIONS:
                yield RunningAction(snapshot, ACTIONS[state.current], state.action)

    def wanted_active(self) -> str:
        """The snapshot whose target is ACTIVE; empty: none."""
        return next((one for one, state in self.tuples.items() if state.target is Target.ACTIVE), "")

    def with_tuple(self, snapshot: str, state: SnapshotState | None) -> ManagedService:
        """The same with one tuple changed or removed."""
        tuples = dict(self.tuples)
        if state is None:
            tuples.pop(snapshot, None)
        else:
            tuples[snapshot] = state
        return replace(self, tuples=tuples)
