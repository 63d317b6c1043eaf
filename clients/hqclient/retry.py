"""Whether and when to send a call again. Decisions only, no I/O."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass

import grpc

from hqclient.backoff import backoff_limit_s
from hqclient.errors import UNSURE_REASONS, HqApiError

BLAMABLE_WAIT_S = 1.0
# A try after a wait gets at least this: with less it cannot connect, and "not in time" would hide the error of the try
# before it.
LEAST_TRY_S = 0.05
# A server that shuts down cancels the calls in progress. (A caller's own cancellation never becomes an HqApiError.)
_SERVER_GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
# Sent with a write whose first try may have been stored: what others have deleted since is not recreated.
REPEATED = ("x-hq-repeated", "1")


class Safety(enum.Enum):
    """Whether a call may be sent twice."""

    REPEATABLE = "a read, a report, a creation with request_id: idempotent"
    UNLESS_STORED = "any other write: again only if the first surely stored nothing"


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How insistent a client is.

    Attributes:
        first_backoff_s: upper limit of the first wait; it doubles with each round.
        max_backoff_s: upper limit of all waits.
        budget_ratio: retries per call in the long run: in an outage, retries add at most this share of load.
        budget_reserve: retries that may be spent at once, whatever the ratio.
        max_rounds: give up after asking every replica so many times; None: only the deadline ends it.
    """

    first_backoff_s: float = 0.05
    max_backoff_s: float = 2.0
    budget_ratio: float = 0.2
    budget_reserve: float = 10.0
    max_rounds: int | None = None


class RetryBudget:
    """A token bucket shared by all calls of a client: each call adds a fraction, each retry takes one token."""

    def __init__(self, ratio: float, reserve: float, at_first: float | None = None) -> None:
        """`reserve`: its capacity, and its initial content unless `at_first` is given."""
        self._ratio = ratio
        self._reserve = reserve
        self._tokens = reserve if at_first is None else at_first

    def __repr__(self) -> str:
        return f"RetryBudget({self._tokens:.1f} of {self._reserve:.1f})"

    def record_call(self) -> None:
        """A call began."""
        self._tokens = min(self._reserve, self._tokens + self._ratio)

    def spend(self) -> bool:
        """Take one retry; False: the bucket is empty, do not retry."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


def may_repeat(error: HqApiError, safety: Safety) -> bool:
    """Whether the same request may be sent again, and that may help."""
    if error.nothing_stored:
        return True
    if safety is Safety.UNLESS_STORED:
        return False
    if error.from_hq:
        return error.reason in UNSURE_REASONS
    return error.code in (*_SERVER_GONE, grpc.StatusCode.DEADLINE_EXCEEDED)


def elsewhere_may_help(error: HqApiError) -> bool:
    """Whether another replica may succeed at once: the trouble is the replica's, not the installation's."""
    return error.code is not grpc.StatusCode.RESOURCE_EXHAUSTED or error.reason == "OVERLOADED"


def blames_endpoint(error: HqApiError, waited_s: float) -> bool:
    """Whether the replica cannot be reached or serves nobody, so other calls should avoid it too."""
    if error.from_hq:
        return error.reason in ("NOT_LOADED", "SHUTTING_DOWN")
    if error.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return waited_s >= BLAMABLE_WAIT_S  # less says more about the caller's haste than about the replica
    return error.code in _SERVER_GONE


class Retries:
    """The retries of one call.

    Asking every replica once is a round. Within a round the next replica is asked at once; between rounds,
    and when the whole installation is short of something, there is a wait with full jitter that respects
    HQ's RetryInfo.
    """

    def __init__(self, settings: RetrySettings, budget: RetryBudget, safety: Safety, rng: random.Random) -> None:
        self._settings = settings
        self._budget = budget
        self._safety = safety
        self._rng = rng
        self._rounds = 0
        self.tried: set[str] = set()  # addresses asked in this round
        budget.record_call()

    @property
    def is_first_round(self) -> bool:
        """Whether some replica may not have been asked yet."""
        return self._rounds == 0

    def after(self, error: HqApiError, *, remaining_s: float, other_left: bool) -> float | None:
        """Seconds to wait before the next try; None: do not retry, the error stands.

        Args:
            error: the error of the last try.
            remaining_s: time until the deadline of the whole call.
            other_left: a replica was not asked in this round yet.
        """
        if not may_repeat(error, self._safety):
            return None
        delay_s = 0.0 if other_left and elsewhere_may_help(error) else self._next_round(error)
        if delay_s is None or delay_s + (LEAST_TRY_S if delay_s else 0.0) >= remaining_s:
            return None
        # A try that was never sent put no load on the server.
        return delay_s if not error.sent or self._budget.spend() else None

    def _next_round(self, error: HqApiError) -> float | None:
        self._rounds += 1
        self.tried.clear()
        if self._settings.max_rounds is not None and self._rounds >= self._settings.max_rounds:
            return None
        return self._wait_s(error.retry_delay_s or 0.0)

    def _wait_s(self, asked_s: float) -> float:
        settings = self._settings
        limit_s = backoff_limit_s(self._rounds, settings.first_backoff_s, settings.max_backoff_s)
        jittered = self._rng.random() * limit_s
        # HQ gives everybody the same delay: spread the retries over an extra fifth of it.
        return max(jittered, asked_s * (1.0 + 0.2 * self._rng.random()))
