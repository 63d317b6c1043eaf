"""The step of a service: its state after an event. Pure, and total over all reachable states.

Each function returns the service afterwards; the actions to run follow from it (`Service.running`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nanny.automaton.service import ManagedService, SnapshotState
from nanny.automaton.states import ACTIONS, LIVE, NEVER_STORED, TOWARDS, Current, SnapshotEvent, Target
from nanny.automaton.table import ABSENT, TABLE, State, Table

TAKES_INSTANCE_ORDERS = frozenset({Current.PREPARED, Current.ACTIVE, Current.BROKEN, Current.DEACTIVATE_PENDING})
"""In these states every instance has the revision, and no work is under way that would wipe the order."""

Passed = Callable[[str, State, SnapshotEvent, State], None]
"""Told of every row that is used: snapshot, state, event, state afterwards."""


def _ignore_transition(snapshot: str, before: State, event: SnapshotEvent, after: State) -> None:
    return None


class SnapshotAutomaton:
    """The automaton over a table.

    Args:
        table: different from TABLE in tests only.
        passed: called with every row used, in order: for history, and for exhaustive searches.
    """

    def __init__(self, table: Table = TABLE, passed: Passed = _ignore_transition) -> None:
        self._table = table
        self._passed = passed

    def add_snapshot(self, service: ManagedService, snapshot: str) -> ManagedService:
        """Make a new snapshot HEAD."""
        return replace(service, head=snapshot)

    def set_target(
        self, service: ManagedService, snapshot: str, target: Target, *, fill: bool = False
    ) -> ManagedService:
        """Set a target by an order, which must not be refused (see `refusal`)."""
        return self._apply_target(replace(service, rolling_back=False), snapshot, target, fill=fill)

    def end_action(self, service: ManagedService, snapshot: str, number: int, outcome: SnapshotEvent) -> ManagedService:
        """End an action as DONE, FAILED or CANCELLED. The number of a different action changes nothing."""
        state = service.tuples.get(snapshot)
        if state is None or state.action != number or state.current not in ACTIONS:
            return service
        was = state.current
        service = self._apply_event(service, snapshot, outcome)
        if outcome is SnapshotEvent.DONE:
            return self._on_done(service, snapshot, was)
        return (
            self._roll_back(service, snapshot)
            if outcome is SnapshotEvent.FAILED and was is Current.ACTIVATING
            else service
        )

    def promote_step(self, service: ManagedService, snapshot: str, number: int) -> ManagedService:
        """Promote a step of the snapshot's roll-out, which must be under way (see `step_refusal`)."""
        service = self._apply_event(service, snapshot, SnapshotEvent.PROMOTED)
        return service.with_tuple(snapshot, replace(service.tuples[snapshot], promoted=number))

    def abort_rollout(self, service: ManagedService, snapshot: str) -> ManagedService:
        """Fail the snapshot's roll-out, which must be under way: a person says so."""
        return self._roll_back(self._apply_event(service, snapshot, SnapshotEvent.ABORTED), snapshot)

    def stop_service(self, service: ManagedService) -> ManagedService:
        """Switch everything off. The target ACTIVE becomes PREPARED."""
        if active := service.wanted_active():
            service = self._with_target(service, active, Target.PREPARED)
        service = replace(service, last_active="", rolling_back=False)
        for snapshot, state in service.tuples.items():
            if state.current in LIVE or state.overrides:
                service = self._apply_event(service, snapshot, SnapshotEvent.STOPPED)
                service = self._begin_next_action(service, snapshot)
            elif snapshot == active:
                service = self._begin_next_action(service, snapshot)
        return service

    def override_instance_target(self, service: ManagedService, snapshot: str) -> ManagedService:
        """Give one instance a target of its own. The snapshot's state does not change."""
        state = service.tuples[snapshot]
        if state.overrides:
            return service
        number = service.numbered + 1
        return replace(service, numbered=number).with_tuple(snapshot, replace(state, overrides=number))

    def _apply_target(
        self, service: ManagedService, snapshot: str, target: Target, *, fill: bool = False
    ) -> ManagedService:
        if target is Target.ACTIVE:
            return self._activate(service, snapshot)
        again = fill and not _fill_of(service, snapshot)
        service = self._with_target(service, snapshot, target, fill=fill)
        state = service.tuples.get(snapshot)
        if again and target is Target.CREATED and state is not None and state.current is Current.CREATED:
            return self._apply_event(service, snapshot, SnapshotEvent.AGAIN)
        return self._begin_next_action(service, snapshot)

    def _activate(self, service: ManagedService, snapshot: str) -> ManagedService:
        if service.head_on_activation:
            service = replace(service, head=snapshot)
        state = service.tuples.get(snapshot)
        is_active = state is not None and state.current is Current.ACTIVE
        if is_active and not any(other.overrides for other in service.tuples.values()):
            return self._apply_event(service, snapshot, SnapshotEvent.TO_ACTIVE)
        for other, other_state in service.tuples.items():
            if other != snapshot:
                service = self._replace_active(service, other, other_state)
        service = self._with_target(service, snapshot, Target.ACTIVE)
        service = service.with_tuple(snapshot, replace(service.tuples[snapshot], overrides=0))
        return (
            self._apply_event(service, snapshot, SnapshotEvent.AGAIN)
            if is_active
            else self._begin_next_action(service, snapshot)
        )

    def _replace_active(self, service: ManagedService, other: str, state: SnapshotState) -> ManagedService:
        """Have the snapshot `other` make way for the one that is ordered ACTIVE."""
        target = Target.PREPARED if state.target is Target.ACTIVE else state.target
        service = service.with_tuple(other, replace(state, target=target, overrides=0))
        return self._apply_event(service, other, SnapshotEvent.REPLACED) if state.current in LIVE else service

    def _on_done(self, service: ManagedService, snapshot: str, was: Current) -> ManagedService:
        if snapshot not in service.tuples:
            gone = service.last_active == snapshot
            return replace(service, last_active="") if gone else service
        if was is not Current.ACTIVATING:
            return self._begin_next_action(service, snapshot)
        service = replace(service, last_active=snapshot, rolling_back=False)
        for other, state in service.tuples.items():
            if state.current is Current.DEACTIVATE_PENDING:
                service = self._apply_event(service, other, SnapshotEvent.RELEASED)
                service = self._begin_next_action(service, other)
        return service

    def _roll_back(self, service: ManagedService, snapshot: str) -> ManagedService:
        """Roll back after a failure, once per order, if the policy says so and there is something to go back to."""
        back = service.last_active
        if not service.rolls_back or service.rolling_back or back == snapshot or back not in service.tuples:
            return replace(service, rolling_back=False)
        return replace(self._apply_target(service, back, Target.ACTIVE), rolling_back=True)

    def _with_target(
        self, service: ManagedService, snapshot: str, target: Target, *, fill: bool = False
    ) -> ManagedService:
        state = service.tuples.get(snapshot)
        if state is not None:
            return service.with_tuple(snapshot, replace(state, target=target, fill=state.fill or fill))
        return self._apply_event(service, snapshot, TOWARDS[target], new=(target, fill))

    def _begin_next_action(self, service: ManagedService, snapshot: str) -> ManagedService:
        """Begin the next action that the target requires, unless it is already running."""
        state = service.tuples.get(snapshot)
        if state is None:
            return service
        event = TOWARDS[state.target]
        if state.current not in ACTIONS:
            return self._apply_event(service, snapshot, event)
        broken_off = self._table[state.current, SnapshotEvent.CANCELLED]
        if self._table[broken_off, event] is state.current:
            return service
        return self._apply_event(self._apply_event(service, snapshot, SnapshotEvent.CANCELLED), snapshot, event)

    def _apply_event(
        self, service: ManagedService, snapshot: str, event: SnapshotEvent, *, new: tuple[Target, bool] | None = None
    ) -> ManagedService:
        """Apply one row, and those that follow from it within the step."""
        state = service.tuples.get(snapshot)
        before: State = state.current if state is not None else ABSENT
        after = self._table[before, event]
        self._passed(snapshot, before, event, after)
        if after is before:
            return service
        if after is ABSENT:
            return service.with_tuple(snapshot, None)
        if state is None:
            assert new is not None
            state = SnapshotState(after, *new)
        service = _enter_state(service, snapshot, state, after)
        if after in NEVER_STORED:
            last = SnapshotEvent.DONE if after is Current.DESTROYED else SnapshotEvent.CANCELLED
            return self._apply_event(service, snapshot, last)
        return service


def refusal(service: ManagedService, snapshot: str, target: Target) -> str:
    """Why an order is refused in this state; empty: it is not."""
    if service.wanted_active() == snapshot and target is not Target.ACTIVE:
        return (
            f"snapshot {snapshot} has the target ACTIVE: to change that, activate another snapshot or stop the service"
        )
    if target is Target.DESTROYED and snapshot not in service.tuples:
        return f"snapshot {snapshot} has no state: there is nothing to destroy"
    return ""


def instance_refusal(service: ManagedService, snapshot: str) -> str:
    """Why an order for one instance is refused in this state; empty: it is not."""
    state = service.tuples.get(snapshot)
    if state is None or state.current not in TAKES_INSTANCE_ORDERS:
        now = state.current if state is not None else "not in HQ"
        allowed = ", ".join(sorted(TAKES_INSTANCE_ORDERS - {Current.DEACTIVATE_PENDING}))
        return f"snapshot {snapshot} is {now}; a target for one instance can be set only while it is {allowed}"
    return ""


def step_refusal(service: ManagedService, snapshot: str) -> str:
    """Why the snapshot's roll-out cannot be promoted or aborted; empty: it can."""
    state = service.tuples.get(snapshot)
    if state is None or state.current is not Current.ACTIVATING:
        return f"snapshot {snapshot} is {state.current if state is not None else 'not in HQ'}: no roll-out is under way"
    if service.rolling_back:
        return f"snapshot {snapshot} is rolled back to: order another snapshot to go elsewhere"
    return ""


def _fill_of(service: ManagedService, snapshot: str) -> bool:
    state = service.tuples.get(snapshot)
    return state is not None and state.fill


def _enter_state(service: ManagedService, snapshot: str, state: SnapshotState, after: Current) -> ManagedService:
    """Entering a working state assigns a number and cancels orders for single instances."""
    if after not in ACTIONS:
        return service.with_tuple(snapshot, replace(state, current=after, action=0, promoted=0))
    number = service.numbered + 1
    service = replace(service, numbered=number)
    return service.with_tuple(snapshot, replace(state, current=after, action=number, overrides=0, promoted=0))
