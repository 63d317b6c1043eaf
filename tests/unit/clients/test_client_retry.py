"""Whether and when a client sends a call again."""

from __future__ import annotations

import random

import grpc
import pytest

from hqclient.errors import HqApiError, not_connected
from hqclient.retry import Retries, RetryBudget, RetrySettings, Safety, blames_endpoint, may_repeat

Code = grpc.StatusCode
READ, WRITE = Safety.REPEATABLE, Safety.UNLESS_STORED
SETTINGS = RetrySettings(first_backoff_s=0.1, max_backoff_s=1.0)


def from_hq(code: Code, reason: str, retry_delay_s: float | None = None) -> HqApiError:
    return HqApiError(code, "…", reason=reason, retry_delay_s=retry_delay_s, from_hq=True)


def from_grpc(code: Code) -> HqApiError:
    return HqApiError(code, "…")


STORE_AWAY = from_hq(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 1.0)
STORE_FULL = from_hq(Code.RESOURCE_EXHAUSTED, "STORE_FULL", 3.0)
LEAVING = from_hq(Code.UNAVAILABLE, "SHUTTING_DOWN", 1.0)
CUT = from_grpc(Code.UNAVAILABLE)
STOPPED = from_grpc(Code.CANCELLED)
LATE = from_grpc(Code.DEADLINE_EXCEEDED)
UNSURE = from_hq(Code.DEADLINE_EXCEEDED, "OUTCOME_UNKNOWN")
REFUSED = not_connected("a", "refused")


def retries(safety: Safety, settings: RetrySettings = SETTINGS, budget: RetryBudget | None = None) -> Retries:
    return Retries(settings, budget or RetryBudget(0.1, 10), safety, random.Random(1))


@pytest.mark.parametrize(
    ("error", "read_again", "write_again"),
    [
        (STORE_AWAY, True, True),
        (STORE_FULL, True, True),
        (REFUSED, True, True),
        (CUT, True, False),
        (LATE, True, False),
        (STOPPED, True, False),
        (UNSURE, True, False),
        (LEAVING, True, False),
        (from_hq(Code.RESOURCE_EXHAUSTED, "TOO_LARGE"), False, False),
        (from_hq(Code.INVALID_ARGUMENT, "INVALID_REQUEST"), False, False),
        (from_hq(Code.ABORTED, "VERSION_CONFLICT"), False, False),
        (from_hq(Code.NOT_FOUND, "NOT_FOUND"), False, False),
        (from_hq(Code.FAILED_PRECONDITION, "FENCED"), False, False),
        (from_grpc(Code.RESOURCE_EXHAUSTED), False, False),
        (from_grpc(Code.PERMISSION_DENIED), False, False),
    ],
    ids=lambda value: repr(value),
)
def test_only_safe_calls_are_sent_again(error: HqApiError, read_again: bool, write_again: bool) -> None:
    assert may_repeat(error, READ) is read_again
    assert may_repeat(error, WRITE) is write_again


def test_the_next_replica_is_asked_at_once() -> None:
    assert retries(READ).after(CUT, remaining_s=5, other_left=True) == 0.0


def test_an_overloaded_replica_is_left_at_once_and_a_full_store_is_waited_for() -> None:
    busy = from_hq(Code.RESOURCE_EXHAUSTED, "OVERLOADED", 2.0)
    assert retries(READ).after(busy, remaining_s=5, other_left=True) == 0.0
    waited = retries(READ).after(busy, remaining_s=5, other_left=False)
    assert waited is not None
    assert waited >= 2.0
    full = retries(READ).after(STORE_FULL, remaining_s=5, other_left=True)
    assert full is not None
    assert full >= 3.0


def test_between_rounds_there_is_a_wait_below_a_growing_limit() -> None:
    these = retries(READ)
    for limit_s in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        delay_s = these.after(CUT, remaining_s=60, other_left=False)
        assert delay_s is not None
        assert 0 <= delay_s <= limit_s


def test_a_new_round_asks_every_replica_again() -> None:
    these = retries(READ)
    these.tried.update({"a", "b"})
    these.after(CUT, remaining_s=5, other_left=False)
    assert these.tried == set()


def test_the_wait_that_hq_asks_for_is_kept_with_jitter() -> None:
    waits = {retries(WRITE).after(STORE_AWAY, remaining_s=60, other_left=False)}
    waits |= {
        Retries(SETTINGS, RetryBudget(0.1, 10), WRITE, random.Random(n)).after(
            STORE_AWAY, remaining_s=60, other_left=False
        )
        for n in range(20)
    }
    assert all(wait_s is not None and 1.0 <= wait_s <= 1.2 for wait_s in waits)
    assert len(waits) > 10


def test_a_full_store_is_waited_for_even_if_another_replica_is_left() -> None:
    delay_s = retries(WRITE).after(STORE_FULL, remaining_s=60, other_left=True)
    assert delay_s is not None
    assert delay_s >= 3.0


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    assert retries(READ).after(STORE_FULL, remaining_s=2.9, other_left=False) is None
    assert retries(READ).after(CUT, remaining_s=0.0, other_left=True) is None
    in_a_hurry = retries(READ, settings=RetrySettings(first_backoff_s=1e-6))
    assert in_a_hurry.after(REFUSED, remaining_s=0.04, other_left=False) is None  # it would only say "not in time"
    assert in_a_hurry.after(REFUSED, remaining_s=0.04, other_left=True) == 0.0


def test_rounds_can_be_limited() -> None:
    these = retries(READ, RetrySettings(max_rounds=2))
    assert these.after(REFUSED, remaining_s=5, other_left=False) is not None
    assert these.after(REFUSED, remaining_s=5, other_left=True) is not None
    assert these.after(REFUSED, remaining_s=5, other_left=False) is None


def test_an_empty_budget_ends_retries_until_calls_have_filled_it_again() -> None:
    budget = RetryBudget(ratio=0.5, reserve=2)
    assert [retries(READ, budget=budget).after(CUT, remaining_s=5, other_left=True) for _ in range(4)] == [
        0.0,
        0.0,
        0.0,  # three calls brought in half a retry each
        None,
    ]
    retries(READ, budget=budget)
    retries(READ, budget=budget)
    assert budget.spend()


def test_a_try_that_was_never_sent_costs_no_budget() -> None:
    budget = RetryBudget(ratio=0.0, reserve=0.0)
    assert retries(WRITE, budget=budget).after(REFUSED, remaining_s=5, other_left=True) == 0.0
    assert retries(READ, budget=budget).after(CUT, remaining_s=5, other_left=True) is None


@pytest.mark.parametrize(
    ("error", "waited_s", "blamed"),
    [
        (REFUSED, 0.0, True),
        (CUT, 0.0, True),
        (LATE, 5.0, True),
        (LATE, 0.01, False),
        (from_hq(Code.UNAVAILABLE, "NOT_LOADED", 1.0), 0.0, True),
        (LEAVING, 0.0, True),
        (STORE_AWAY, 5.0, False),
        (from_hq(Code.NOT_FOUND, "NOT_FOUND"), 0.0, False),
    ],
    ids=lambda value: repr(value),
)
def test_a_replica_is_set_aside_only_for_its_own_trouble(error: HqApiError, waited_s: float, blamed: bool) -> None:
    assert blames_endpoint(error, waited_s) is blamed
