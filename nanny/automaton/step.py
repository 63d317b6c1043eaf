"""The step of a service: its state after an event. Pure, and total over all reachable states.

Each function returns the service afterwards; the actions to run follow from it (`Service.running`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from nanny.automaton.service import Service, SnapshotState
from nanny.automaton.states import ACTIONS, LIVE, NEVER_STORED, TOWARDS, Current, Event, Target
from nanny.automaton.table import ABSENT, TABLE, State, Table

TAKES_INSTANCE_ORDERS = frozenset({Current.PREPARED, Current.ACTIVE, Current.BROKEN, Current.DEACTIVATE_PENDING})
"""Every instance has the revision, and nothing that is under way would wipe the order."""

Passed = Callable[[str, State, Event, State], None]
"""Told of every row that is used: snapshot, state, event, state afterwards."""


def _unheard(snapshot: str, before: State, event: Event, after: State) -> None:
    return None


class Step:
    """The automaton over a table.

    Args:
        table: different from TABLE in tests only.
        passed: called with every row used, in order: for history, and for exhaustive searches.
    """

    def __init__(self, table: Table = TABLE, passed: Passed = _unheard) -> None:
        self._table = table
        self._passed = passed

    def added(self, service: Service, snapshot: str) -> Service:
        """A new snapshot was added: it is HEAD."""
        return replace(service, head=snapshot)

    def paused(self, service: Service) -> Service:
        return replace(service, paused=True)

    def resumed(self, service: Service) -> Service:
        return replace(service, paused=False)

    def ordered(self, service: Service, snapshot: str, target: Target, *, fill: bool = False) -> Service:
        """Somebody set a target. The order must not be refused (see `refusal`)."""
        return self._ordered(replace(service, rolling_back=False), snapshot, target, fill=fill)

    def ended(self, service: Service, snapshot: str, number: int, outcome: Event) -> Service:
        """An action ended: DONE, FAILED or CANCELLED. The number of a different action changes nothing."""
        state = service.tuples.get(snapshot)
        if state is None or state.action != number or state.current not in ACTIONS:
            return service
        was = state.current
        service = self._moved(service, snapshot, outcome)
        if outcome is Event.DONE:
            return self._done(service, snapshot, was)
        return self._failed(service, snapshot) if outcome is Event.FAILED and was is Current.ACTIVATING else service

    def stopped(self, service: Service) -> Service:
        """Switch everything off. What is wanted ACTIVE is wanted PREPARED."""
        if active := service.wanted_active():
            service = self._retargeted(service, active, Target.PREPARED)
        service = replace(service, last_active="", rolling_back=False)
        for snapshot, state in service.tuples.items():
            if state.current in LIVE or state.overrides:
                service = self._moved(service, snapshot, Event.STOPPED)
                service = self._towards(service, snapshot)
            elif snapshot == active:
                service = self._towards(service, snapshot)
        return service

    def instance_ordered(self, service: Service, snapshot: str) -> Service:
        """One instance gets its own target. The snapshot's state does not change."""
        state = service.tuples[snapshot]
        if state.overrides:
            return service
        number = service.numbered + 1
        return replace(service, numbered=number).with_tuple(snapshot, replace(state, overrides=number))

    def _ordered(self, service: Service, snapshot: str, target: Target, *, fill: bool = False) -> Service:
        if target is Target.ACTIVE:
            return self._activated(service, snapshot)
        again = fill and not _fill_of(service, snapshot)
        service = self._retargeted(service, snapshot, target, fill=fill)
        state = service.tuples.get(snapshot)
        if again and target is Target.CREATED and state is not None and state.current is Current.CREATED:
            return self._moved(service, snapshot, Event.AGAIN)
        return self._towards(service, snapshot)

    def _activated(self, service: Service, snapshot: str) -> Service:
        if service.head_on_activation:
            service = replace(service, head=snapshot)
        state = service.tuples.get(snapshot)
        is_active = state is not None and state.current is Current.ACTIVE
        if is_active and not any(other.overrides for other in service.tuples.values()):
            return self._moved(service, snapshot, Event.TO_ACTIVE)
        for other, other_state in service.tuples.items():
            if other != snapshot:
                service = self._replaced(service, other, other_state)
        service = self._retargeted(service, snapshot, Target.ACTIVE)
        service = service.with_tuple(snapshot, replace(service.tuples[snapshot], overrides=0))
        return self._moved(service, snapshot, Event.AGAIN) if is_active else self._towards(service, snapshot)

    def _replaced(self, service: Service, other: str, state: SnapshotState) -> Service:
        """Another snapshot is ordered ACTIVE."""
        target = Target.PREPARED if state.target is Target.ACTIVE else state.target
        service = service.with_tuple(other, replace(state, target=target, overrides=0))
        return self._moved(service, other, Event.REPLACED) if state.current in LIVE else service

    def _done(self, service: Service, snapshot: str, was: Current) -> Service:
        if snapshot not in service.tuples:
            gone = service.last_active == snapshot
            return replace(service, last_active="") if gone else service
        if was is not Current.ACTIVATING:
            return self._towards(service, snapshot)
        service = replace(service, last_active=snapshot, rolling_back=False)
        for other, state in service.tuples.items():
            if state.current is Current.DEACTIVATE_PENDING:
                service = self._moved(service, other, Event.RELEASED)
                service = self._towards(service, other)
        return service

    def _failed(self, service: Service, snapshot: str) -> Service:
        """A roll-out failed: roll back once per order, if the policy says so and there is something to go back to."""
        back = service.last_active
        if not service.rolls_back or service.rolling_back or back == snapshot or back not in service.tuples:
            return replace(service, rolling_back=False)
        return replace(self._ordered(service, back, Target.ACTIVE), rolling_back=True)

    def _retargeted(self, service: Service, snapshot: str, target: Target, *, fill: bool = False) -> Service:
        state = service.tuples.get(snapshot)
        if state is not None:
            return service.with_tuple(snapshot, replace(state, target=target, fill=state.fill or fill))
        return self._moved(service, snapshot, TOWARDS[target], new=(target, fill))

    def _towards(self, service: Service, snapshot: str) -> Service:
        """Begin the next action that the target requires, unless it is already running."""
        state = service.tuples.get(snapshot)
        if state is None:
            return service
        event = TOWARDS[state.target]
        if state.current not in ACTIONS:
            return self._moved(service, snapshot, event)
        broken_off = self._table[state.current, Event.CANCELLED]
        if self._table[broken_off, event] is state.current:
            return service
        return self._moved(self._moved(service, snapshot, Event.CANCELLED), snapshot, event)

    def _moved(
        self, service: Service, snapshot: str, event: Event, *, new: tuple[Target, bool] | None = None
    ) -> Service:
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
        service = _entered(service, snapshot, state, after)
        if after in NEVER_STORED:
            last = Event.DONE if after is Current.DESTROYED else Event.CANCELLED
            return self._moved(service, snapshot, last)
        return service


def refusal(service: Service, snapshot: str, target: Target) -> str:
    """Why an order is refused in this state; empty: it is not."""
    if service.wanted_active() == snapshot and target is not Target.ACTIVE:
        return (
            f"snapshot {snapshot} has the target ACTIVE: to change that, activate another snapshot or stop the service"
        )
    if target is Target.DESTROYED and snapshot not in service.tuples:
        return f"snapshot {snapshot} has no state: there is nothing to destroy"
    return ""


def instance_refusal(service: Service, snapshot: str) -> str:
    """Why an order for one instance is refused in this state; empty: it is not."""
    state = service.tuples.get(snapshot)
    if state is None or state.current not in TAKES_INSTANCE_ORDERS:
        now = state.current if state is not None else "not in HQ"
        allowed = ", ".join(sorted(TAKES_INSTANCE_ORDERS - {Current.DEACTIVATE_PENDING}))
        return f"snapshot {snapshot} is {now}; a target for one instance can be set only while it is {allowed}"
    return ""


def _fill_of(service: Service, snapshot: str) -> bool:
    state = service.tuples.get(snapshot)
    return state is not None and state.fill


def _entered(service: Service, snapshot: str, state: SnapshotState, after: Current) -> Service:
    """Entering a working state assigns a number and cancels orders for single instances."""
    if after not in ACTIONS:
        return service.with_tuple(snapshot, replace(state, current=after, action=0))
    number = service.numbered + 1
    service = replace(service, numbered=number)
    return service.with_tuple(snapshot, replace(state, current=after, action=number, overrides=0))
