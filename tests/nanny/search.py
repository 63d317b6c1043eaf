"""Every state that a service with a few snapshots can reach, by every order and every outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nanny.automaton.service import ManagedService, SnapshotState
from nanny.automaton.states import ACTIONS, LIVE, Current, SnapshotEvent, Target
from nanny.automaton.step import SnapshotAutomaton, instance_refusal, refusal, step_refusal
from nanny.automaton.table import TABLE, State, Table

PROMOTED = 2
"""The number of the step that people promote."""
OUTCOMES = (SnapshotEvent.DONE, SnapshotEvent.FAILED, SnapshotEvent.CANCELLED)
ARRIVED = {Target.CREATED: Current.CREATED, Target.PREPARED: Current.PREPARED, Target.ACTIVE: Current.ACTIVE}


def is_live(service: ManagedService) -> bool:
    """Whether some instance may be running."""
    return any(state.current in LIVE or state.overrides for state in service.tuples.values())


def is_at_rest(service: ManagedService) -> bool:
    """Whether no action is running, and no snapshot waits for another one."""
    return all(
        state.current not in ACTIONS and state.current is not Current.DEACTIVATE_PENDING
        for state in service.tuples.values()
    )


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that may happen."""

    what: str
    snapshot: str = ""
    target: Target | None = None
    after: ManagedService = field(default_factory=ManagedService)


class Search:
    """Walks breadth first from the empty service; `states` and `edges` are what was reached.

    States that differ only in numbers, or in which snapshot is which, are one. `flags`: with the fill flag, with
    orders for single instances and with promotions, which multiply the states: for two snapshots.
    """

    def __init__(
        self, snapshots: Sequence[str] = ("a", "b", "c"), table: Table = TABLE, *, flags: bool = False
    ) -> None:
        self.snapshots = snapshots
        self.flags = flags
        self.edges: set[tuple[State, SnapshotEvent]] = set()
        self.shown: set[Current] = set()
        self._step = SnapshotAutomaton(table, self._passed)
        self.states: list[ManagedService] = []
        self._ends: dict[tuple[object, ...], list[ManagedService]] = {}
        self._ordered: dict[int, list[Move]] = {}

    def _passed(self, _snapshot: str, before: State, event: SnapshotEvent, after: State) -> None:
        self.edges.add((before, event))
        self.shown |= {state for state in (before, after) if state is not None}

    def run(self) -> Search:
        for rolls_back in (False, True):
            self._from(ManagedService(rolls_back=rolls_back))
        return self

    def _from(self, start: ManagedService) -> None:
        seen = {_key(start)}
        waiting = deque([start])
        while waiting:
            service = waiting.popleft()
            self.states.append(service)
            for move in self.moves(service):
                key = _key(move.after)
                if key not in seen:
                    seen.add(key)
                    waiting.append(move.after)

    def moves(self, service: ManagedService) -> Iterator[Move]:
        yield from self.orders(service)
        yield from self.outcomes(service, OUTCOMES)

    def orders(self, service: ManagedService) -> list[Move]:
        """Everything that people may order; remembered, as every promise asks for it."""
        if id(service) not in self._ordered:
            self._ordered[id(service)] = list(self.orders_of(service))
        return self._ordered[id(service)]

    def orders_of(self, service: ManagedService) -> Iterator[Move]:
        for snapshot in self._known(service):
            for target in Target:
                if not refusal(service, snapshot, target):
                    after = self._step.set_target(service, snapshot, target)
                    yield Move(f"{target} {snapshot}", snapshot, target, after)
            if self.flags and not refusal(service, snapshot, Target.CREATED):
                after = self._step.set_target(service, snapshot, Target.CREATED, fill=True)
                yield Move(f"CREATED {snapshot} filled", snapshot, Target.CREATED, after)
            if self.flags and not instance_refusal(service, snapshot):
                yield Move(f"instance of {snapshot}", after=self._step.override_instance_target(service, snapshot))
            yield from self._words_about(service, snapshot)
        if is_live(service):
            yield Move("stop", after=self._step.stop_service(service))

    def _words_about(self, service: ManagedService, snapshot: str) -> Iterator[Move]:
        """What people may say of its roll-out."""
        if step_refusal(service, snapshot):
            return
        yield Move("abort", snapshot, after=self._step.abort_rollout(service, snapshot))
        if self.flags and not service.tuples[snapshot].promoted:
            yield Move("promote", snapshot, after=self._step.promote_step(service, snapshot, PROMOTED))

    def outcomes(self, service: ManagedService, outcomes: Sequence[SnapshotEvent]) -> Iterator[Move]:
        for running in service.running():
            for outcome in outcomes:
                after = self._step.end_action(service, running.snapshot, running.number, outcome)
                yield Move(f"{outcome} {running.snapshot}", after=after)

    def _known(self, service: ManagedService) -> list[str]:
        """Snapshots with a state, and one without: another one without would be no different."""
        absent = [one for one in self.snapshots if one not in service.tuples][:1]
        return [*service.tuples, *absent]

    def ends(self, service: ManagedService) -> list[ManagedService]:
        """Where it may come to rest when every action succeeds, in whatever order they end. Fails on a circle."""
        key = _exact(service)
        if key not in self._ends:
            nexts = [move.after for move in self.outcomes(service, (SnapshotEvent.DONE,))]
            ends = [end for after in nexts for end in self.ends(after)] if nexts else [service]
            self._ends[key] = list({_exact(end): end for end in ends}.values())
        return self._ends[key]


def _exact(service: ManagedService) -> tuple[object, ...]:
    """Equal for services that differ only in numbers."""
    named = sorted((one, *_fields(state)) for one, state in service.tuples.items())
    return (*named, service.last_active, service.rolling_back, service.rolls_back)


def _key(service: ManagedService) -> tuple[object, ...]:
    """Equal for services that differ only in the names of their snapshots."""
    marked = sorted((*_fields(state), one == service.last_active) for one, state in service.tuples.items())
    absent = bool(service.last_active) and service.last_active not in service.tuples
    return (*marked, absent, service.rolling_back, service.rolls_back)


def _fields(state: SnapshotState) -> tuple[object, ...]:
    return state.current, state.target, state.fill, bool(state.overrides), state.promoted


def rows(table: Mapping[tuple[State, SnapshotEvent], State] = TABLE) -> set[tuple[State, SnapshotEvent]]:
    return set(table)
