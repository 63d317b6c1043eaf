"""Whether and when a container that ended is started again."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hqclient.backoff import backoff_limit_s
from hqpb.v1 import instance_pb2
from hqpb.v1.instance_pb2 import RestartPolicy
from instancectl.processes.child import ProcessExit


@dataclass(frozen=True, slots=True)
class RestartSettings:
    """The back-off of restarts, in seconds.

    Attributes:
        first_backoff_s: wait after the first failure; it doubles with each.
        max_backoff_s: upper limit of that.
        stable_s: after a run of this length the wait starts again from the first.
    """

    first_backoff_s: float = 0.5
    max_backoff_s: float = 60.0
    stable_s: float = 60.0


class Restarts:
    """The restarts of one container."""

    def __init__(self, policy: RestartPolicy, settings: RestartSettings, rng: random.Random) -> None:
        self._policy = policy
        self._settings = settings
        self._rng = rng
        self._failures = 0

    def after(self, end: ProcessExit | None, ran_for_s: float, *, has_fault: bool = False) -> float | None:
        """Seconds to wait before the next start; None: no restart. A failed start (no `end`) is always retried.

        Args:
            has_fault: it was stopped because it hung or did not start, so an exit code of 0 is no success.
        """
        if end is not None and not self._starts_again(end, has_fault):
            return None
        if ran_for_s >= self._settings.stable_s:
            self._failures = 0
        self._failures += 1
        limit_s = backoff_limit_s(self._failures, self._settings.first_backoff_s, self._settings.max_backoff_s)
        # Half of it is jitter, so that instances that fail together do not come back together.
        return limit_s * self._rng.uniform(0.5, 1.0)

    def _starts_again(self, end: ProcessExit, has_fault: bool) -> bool:
        if self._policy == instance_pb2.RESTART_POLICY_NEVER:
            return False
        return self._policy != instance_pb2.RESTART_POLICY_ON_FAILURE or has_fault or not end.succeeded
