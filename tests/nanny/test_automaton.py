"""What holds in every state that a service of three snapshots can reach."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from nanny.automaton.service import ManagedService
from nanny.automaton.service_state import ServiceState, service_state
from nanny.automaton.states import ACTIONS, LIVE, NEVER_STORED, Current, SnapshotEvent, Target
from nanny.automaton.step import SnapshotAutomaton
from nanny.automaton.table import ABSENT
from tests.nanny.search import ARRIVED, Search, is_at_rest, is_live, rows

C = Current
ONLY_WITH_FLAGS = {
    (C.ACTIVE, SnapshotEvent.AGAIN),
    (C.CREATED, SnapshotEvent.AGAIN),
    (C.PREPARED, SnapshotEvent.STOPPED),
    (C.ACTIVATING, SnapshotEvent.PROMOTED),
}


@pytest.fixture(scope="module", params=["three snapshots", "two, with flags"])
def search(request: pytest.FixtureRequest) -> Search:
    return Search(("a", "b"), flags=True).run() if "flags" in request.param else Search().run()


def _words(service: ManagedService) -> str:
    return ", ".join(f"{one}: {state.current}->{state.target}" for one, state in service.tuples.items())


@pytest.mark.long
def test_every_row_of_the_table_is_reached_and_every_state_of_the_seed(search: Search) -> None:
    wanted = rows() if search.flags else rows() - ONLY_WITH_FLAGS
    print(f"{len(search.states)} services, {len(search.edges)} of {len(wanted)} rows, {len(search.shown)} of 15 states")
    assert search.edges == wanted
    assert search.shown == set(Current)


@pytest.mark.long
def test_internal_states_are_never_stored(search: Search) -> None:
    for service in search.states:
        assert not {state.current for state in service.tuples.values()} & NEVER_STORED, _words(service)


def test_at_most_one_snapshot_is_active_one_activating_and_one_wanted_active(search: Search) -> None:
    for service in search.states:
        counts = Counter(state.current for state in service.tuples.values())
        assert counts[C.ACTIVE] <= 1, _words(service)
        assert counts[C.ACTIVATING] <= 1, _words(service)
        assert sum(state.target is Target.ACTIVE for state in service.tuples.values()) <= 1, _words(service)
        assert not (counts[C.ACTIVE] and counts[C.ACTIVATING]), _words(service)


def test_only_the_snapshot_wanted_active_is_active_or_activating(search: Search) -> None:
    for service in search.states:
        for state in service.tuples.values():
            if state.current in (C.ACTIVE, C.ACTIVATING):
                assert state.target is Target.ACTIVE, _words(service)


def test_live_snapshots_are_left_alone_until_the_one_ordered_active_is_active(search: Search) -> None:
    for service in search.states:
        wanted = service.wanted_active()
        if wanted and service.tuples[wanted].current is not C.ACTIVE:
            others = [state.current for one, state in service.tuples.items() if one != wanted]
            assert not [one for one in others if one in LIVE and one is not C.DEACTIVATE_PENDING], _words(service)


def test_a_snapshot_is_pending_only_while_another_one_is_ordered_active_and_is_not_yet(search: Search) -> None:
    for service in search.states:
        if any(state.current is C.DEACTIVATE_PENDING for state in service.tuples.values()):
            wanted = service.wanted_active()
            assert wanted, _words(service)
            assert service.tuples[wanted].current is not C.ACTIVE, _words(service)


@pytest.mark.long
def test_when_actions_succeed_every_order_ends_with_its_target(search: Search) -> None:
    for service in search.states:
        for order in search.orders(service):
            if order.target is not None:
                for end in search.ends(order.after):
                    _ends_at(service, order.what, end, order.snapshot, order.target)


def _ends_at(before: ManagedService, what: str, end: ManagedService, snapshot: str, target: Target) -> None:
    def story() -> str:
        return f"{_words(before)} / {what} / {_words(end)}"

    state = end.tuples.get(snapshot)
    if state is not None and state.current is C.DEACTIVATE_PENDING:
        # The one resting exception: another snapshot is ordered ACTIVE and failed; what serves is not touched.
        wanted = end.wanted_active()
        assert end.tuples[wanted].current in (C.BROKEN, C.PARTIALLY_PREPARED, C.PARTIALLY_CREATED), story()
        assert wanted != snapshot, story()
    elif target is Target.DESTROYED:
        assert state is None, story()
    else:
        assert state is not None, story()
        assert state.current is ARRIVED[target], story()


def test_an_activation_leaves_nothing_pending_when_actions_succeed(search: Search) -> None:
    for service in search.states:
        for order in search.orders(service):
            if order.target is Target.ACTIVE:
                assert all(is_at_rest(end) for end in search.ends(order.after)), _words(service)


def test_an_order_always_sets_a_stuck_snapshot_going_again(search: Search) -> None:
    """A snapshot that rests where a failure left it goes on at its next order, unless it waits for another one."""
    stuck = {C.PARTIALLY_CREATED, C.PARTIALLY_PREPARED, C.BROKEN}
    for service in search.states:
        for order in search.orders(service):
            if order.target is not None and order.snapshot in service.tuples:
                state = order.after.tuples[order.snapshot]
                if service.tuples[order.snapshot].current in stuck:
                    assert state.current in ACTIONS, f"{_words(service)} / {order.what}"


def test_promotions_and_aborts_are_for_the_roll_out_under_way_alone(search: Search) -> None:
    """A promotion changes nothing else and ends with the roll-out; an aborted one stops or is rolled back, once."""
    for service in search.states:
        for state in service.tuples.values():
            assert state.current is C.ACTIVATING or not state.promoted, _words(service)
        for order in search.orders(service):
            if order.what == "promote":
                tuples = dict(order.after.tuples)
                assert tuples[order.snapshot].promoted > service.tuples[order.snapshot].promoted
                tuples[order.snapshot] = service.tuples[order.snapshot]
                assert replace(order.after, tuples=tuples) == service
            if order.what == "abort":
                back = service.last_active
                goes_back = service.rolls_back and back != order.snapshot and back in service.tuples
                assert order.after.rolling_back == goes_back, _words(service)
                assert order.after.tuples[order.snapshot].current in (C.BROKEN, C.DEACTIVATE_PENDING)
                for end in search.ends(order.after):
                    wanted = end.tuples[back if goes_back else order.snapshot].current
                    assert wanted is (C.ACTIVE if goes_back else C.BROKEN), f"{_words(service)} / {_words(end)}"


def test_stop_is_offered_unless_nothing_is_live_and_leads_to_offline(search: Search) -> None:
    for service in search.states:
        if stop := next((order for order in search.orders(service) if order.what == "stop"), None):
            for end in search.ends(stop.after):
                assert not is_live(end), f"{_words(service)} / {_words(end)}"
                assert service_state(end) is ServiceState.OFFLINE
        else:
            assert service_state(service) in (ServiceState.OFFLINE, ServiceState.PREPARING, ServiceState.UPDATING)


def test_pausing_changes_no_step_and_starts_nothing(search: Search) -> None:
    for service in search.states[::5]:
        paused = replace(service, paused=True)
        assert not list(paused.running())
        for order, paused_order in zip(search.orders(service), search.orders_of(paused), strict=True):
            assert replace(paused_order.after, paused=False) == order.after


def test_a_stale_outcome_changes_nothing(search: Search) -> None:
    step = SnapshotAutomaton()
    for service in search.states:
        for snapshot, state in service.tuples.items():
            for outcome in (SnapshotEvent.DONE, SnapshotEvent.FAILED, SnapshotEvent.CANCELLED):
                assert step.end_action(service, snapshot, state.action + 1000, outcome) == service


def test_absent_is_no_state() -> None:
    assert ABSENT is None
