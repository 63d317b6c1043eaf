"""Bugs that were put in are found: by the search over the table, or by the model of roll-outs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from nanny.automaton.states import Current, SnapshotEvent
from nanny.automaton.table import TABLE, State
from nanny.rollout import batches, failures, plan
from tests.nanny import test_automaton as promises
from tests.nanny import test_rollout as model
from tests.nanny.search import Search

C, E = Current, SnapshotEvent
WRONG_ROWS: dict[str, tuple[tuple[State, SnapshotEvent], State]] = {
    "the active one goes on while another is activated": ((C.ACTIVE, E.REPLACED), C.ACTIVE),
    "clearing up goes on under a roll-out": ((C.DEACTIVATING, E.REPLACED), C.DEACTIVATING),
    "what waited is never released": ((C.DEACTIVATE_PENDING, E.RELEASED), C.DEACTIVATE_PENDING),
    "a broken prepare is not finished by the next order": (
        (C.PARTIALLY_PREPARED, E.TO_PREPARED),
        C.PARTIALLY_PREPARED,
    ),
    "stop forgets what is pending": ((C.DEACTIVATE_PENDING, E.STOPPED), C.DEACTIVATE_PENDING),
}
PROMISES: list[Callable[[Search], None]] = [
    promises.test_at_most_one_snapshot_is_active_one_activating_and_one_wanted_active,
    promises.test_live_snapshots_are_left_alone_until_the_one_ordered_active_is_active,
    promises.test_a_snapshot_is_pending_only_while_another_one_is_ordered_active_and_is_not_yet,
    promises.test_when_actions_succeed_every_order_ends_with_its_target,
    promises.test_an_order_always_sets_a_stuck_snapshot_going_again,
    promises.test_stop_is_offered_unless_nothing_is_live_and_leads_to_offline,
]


@pytest.mark.parametrize("bug", WRONG_ROWS)
def test_the_search_finds_a_wrong_row(bug: str) -> None:
    row, after = WRONG_ROWS[bug]
    try:
        search = Search(("a", "b"), {**TABLE, row: after}).run()
    except (KeyError, RecursionError):
        return  # it came to a state from which there is no way
    assert any(_breaks(promise, search) for promise in PROMISES), f"nobody found: {bug}"


def _breaks(promise: Callable[[Search], None], search: Search) -> bool:
    try:
        promise(search)
    except (AssertionError, KeyError, RecursionError):
        return True
    return False


def test_the_model_finds_a_first_batch_that_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    right = failures.find_excess
    monkeypatch.setattr(
        plan,
        "find_excess",
        lambda policy, stages, progress, late=(): right(policy, stages, replace(progress, proven=True), late),
    )
    with pytest.raises(AssertionError):
        model.test_a_bad_revision_costs_one_batch_in_any_service()


def test_the_model_finds_that_room_does_not_count_instances_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        batches, "batch_room", lambda policy, stages, progress: policy.unavailable(sum(map(len, stages.values())))
    )
    monkeypatch.setattr(plan, "_due", lambda *_: [])
    with pytest.raises(AssertionError):
        model.test_no_world_brings_a_roll_out_below_its_floor_or_to_a_standstill(4, 0, 1)


def test_the_model_finds_a_batch_larger_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = batches.batch_room
    monkeypatch.setattr(batches, "batch_room", lambda *told: right(*told) + 1)
    with pytest.raises(AssertionError):
        model.test_no_world_brings_a_roll_out_below_its_floor_or_to_a_standstill(4, 0, 1)
