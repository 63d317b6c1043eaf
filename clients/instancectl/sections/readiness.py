"""From single checks to readiness: thresholds and times. Decisions only, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from hqpb.v1.instance_pb2 import ReadinessCheck

DEFAULT_PERIOD_S = 10.0
DEFAULT_TIMEOUT_S = 1.0
DEFAULT_FAILURES = 3
DEFAULT_SUCCESSES = 1
_MIN_PERIOD_S = 0.05


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When to check, in seconds, and how many results in a row count."""

    initial_delay_s: float
    period_s: float
    timeout_s: float
    failures: int
    successes: int


def rhythm(check: ReadinessCheck) -> Rhythm:
    """What a check asks for, with the defaults of the model."""
    return Rhythm(
        check.initial_delay.ToTimedelta().total_seconds(),
        max(_MIN_PERIOD_S, check.period.ToTimedelta().total_seconds() or DEFAULT_PERIOD_S),
        check.timeout.ToTimedelta().total_seconds() or DEFAULT_TIMEOUT_S,
        check.failure_threshold or DEFAULT_FAILURES,
        check.success_threshold or DEFAULT_SUCCESSES,
    )


class Readiness:
    """Whether a running section is ready, given the results of its checks."""

    def __init__(self, rhythm: Rhythm) -> None:
        self._rhythm = rhythm
        self._in_a_row = 0
        self._last: bool | None = None
        self.is_ready = False

    def checked(self, passed: bool) -> bool:
        """Take a result; return whether readiness changed."""
        self._in_a_row = self._in_a_row + 1 if passed is self._last else 1
        self._last = passed
        needed = self._rhythm.successes if passed else self._rhythm.failures
        if passed is self.is_ready or self._in_a_row < needed:
            return False
        self.is_ready = passed
        return True
