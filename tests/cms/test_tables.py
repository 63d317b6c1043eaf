"""The tables of the ledger, searched through: every state and event, every amount."""

from __future__ import annotations

import math
from itertools import product

import pytest

from cms.ledger.actions import ACTIONS, actions_since
from cms.ledger.states import HOLDING, STATUS, TABLE, NoSuchStep, State, TaskEvent, after
from cms.ledger.tasks import Task
from control.amounts import Amount, floor_for


def reachable() -> set[State]:
    """From where tasks begin: waiting, or granted if the work was under way."""
    found, new = set[State](), {State.WAITING, State.GRANTED}
    while new:
        found |= new
        new = {after for (before, _), after in TABLE.items() if before in found} - found
    return found


def test_every_state_is_reached_and_every_one_can_end() -> None:
    assert reachable() == set(State)
    assert all(TABLE[state, TaskEvent.END] is State.ENDED for state in State if state is not State.ENDED)


def test_nothing_comes_after_the_end() -> None:
    for event in TaskEvent:
        with pytest.raises(NoSuchStep):
            after(State.ENDED, event)


def test_only_a_grant_an_offer_or_a_confirmation_leads_to_an_ok() -> None:
    gains = {event for (before, event), now in TABLE.items() if now in HOLDING and before not in HOLDING}
    assert gains == {TaskEvent.GRANT, TaskEvent.OFFER}
    assert {before for (before, event) in TABLE if event is TaskEvent.CONFIRM} <= HOLDING


def test_a_final_ok_is_never_taken_back() -> None:
    assert {now for (before, _), now in TABLE.items() if before is State.GRANTED} == {State.GRANTED, State.ENDED}


def test_polling_neither_grants_nor_withdraws() -> None:
    for (before, event), now in TABLE.items():
        if event is TaskEvent.POLL:
            assert (now in HOLDING) == (before in HOLDING)


def test_every_state_has_its_word_on_the_wire() -> None:
    assert STATUS.keys() == set(State) - {State.ENDED}
    assert {state for state, word in STATUS.items() if word == "ok"} == HOLDING


def test_a_task_keeps_its_place_through_all_that_happens_to_it() -> None:
    for (before, event), now in TABLE.items():
        task = Task("t", 7, "reboot", ("h",), state=before).after_event(event, 5.0)
        assert (task.order, task.state) == (7, now)
        assert (task.overdue_at < float("inf")) == (now in HOLDING and before is not now)


def test_versions_of_the_wire_only_add_actions() -> None:
    for minor in range(4):
        assert actions_since(minor) <= actions_since(minor + 1)
    assert "roll-out" not in actions_since(4)
    assert {"change-memory", "repair-bmc", "repair-overheat", "repair-capping"} <= actions_since(0)
    assert not ACTIONS["prepare"].disrupts


@pytest.mark.parametrize("total", range(25))
def test_shares_round_to_the_safe_side(total: int) -> None:
    for percent in range(101):
        share = Amount(percent, is_percent=True)
        assert floor_for(total, min_ready=share) == math.ceil(total * percent / 100)
        allowed = total - floor_for(total, max_unavailable=share)
        exact = total * percent / 100
        assert allowed <= max(exact, min(1, total))
        assert allowed >= min(1, total) * (percent > 0)


def test_an_amount_without_a_per_cent_sign_is_a_number_of_instances() -> None:
    for total, amount in product(range(6), range(6)):
        assert floor_for(total, min_ready=Amount(amount)) == amount
        assert floor_for(total, max_unavailable=Amount(amount)) == max(0, total - amount)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "101%", "10 %", "%", "many", "0x1", "\u0661", "1" * 20])
def test_what_is_no_amount_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"valid amount|over 100%"):
        Amount.parse(text)


def test_amounts_are_read_as_they_are_written() -> None:
    for text in ("0", "7", "0%", "25%", "100%"):
        assert str(Amount.parse(text)) == text
