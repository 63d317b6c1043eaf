"""Instances that crash again and again, and report it: agents' own back-off and reports, event by event."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from hq.sizing.simulator import EventQueue, ServingLine

_PLAYED = 2_500
CALL_S = 10.0  # a report that is not acknowledged by then is sent again
_FIRST_RESTART_S, _MAX_RESTART_S = 0.5, 60.0
_RUNS_S = 2.0  # until it crashes
_BEGIN_S = 60.0  # a roll-out comes to all within a minute
_RETRY_S = (1.0, 10.0)
_ABANDONED = 0.1  # of a report's work, if the agent has given up before its turn


class CrashLoopingInstances:
    """Each runs, crashes, waits ever longer and runs again; its agent reports both, with one call at a time.

    What changes while a call is on its way is reported by the next one, as it is then: agents do not queue the past.
    Not more than some thousands are played; each stands for `weight` instances.

    `change_s`: work of the replica that is sent a report; `followed_s`: of each other replica.
    Attributes: `reports`: acknowledged in each second; `failed`: calls that took too long; `longest_s`: from a change
    until it was acknowledged.
    """

    def __init__(
        self,
        queue: EventQueue,
        replicas: Sequence[ServingLine],
        count: int,
        change_s: float,
        followed_s: float,
        rng: random.Random,
    ) -> None:
        self.weight = max(1, -(-count // _PLAYED))
        self._count = round(count / self.weight)
        self.reports: Counter[int] = Counter()
        self.failed = 0
        self.longest_s = 0.0
        self._queue, self._replicas, self._rng = queue, replicas, rng
        self._change_s, self._followed_s = change_s * self.weight, followed_s * self.weight

    def begin(self) -> None:
        """Let all start the new revision, one after the other."""
        for _ in range(self._count):
            instance = _CrashingInstance(self)
            self._queue.after(self._rng.uniform(0.0, _BEGIN_S), instance.run)

    def send(self, instance: _CrashingInstance) -> None:
        """Report its state to any replica; all others follow."""
        replica = self._rng.choice(self._replicas)
        if replica.wait_s() > CALL_S:
            self.failed += self.weight
            replica.add(_ABANDONED * self._change_s)
            self._queue.after(CALL_S + self._rng.uniform(*_RETRY_S), instance.send_again)
            return
        done = replica.add(self._change_s)
        for other in self._replicas:
            if other is not replica:
                other.add(self._followed_s)
        self.reports[int(done)] += self.weight
        self._queue.at(done, instance.on_acknowledged)

    def acknowledge(self, changed_at: float) -> None:
        self.longest_s = max(self.longest_s, self._queue.now - changed_at)

    def restart_after(self, instance: _CrashingInstance, crashes: int) -> None:
        limit_s = min(_MAX_RESTART_S, _FIRST_RESTART_S * 2.0 ** min(crashes, 30))
        self._queue.after(limit_s * self._rng.uniform(0.5, 1.0), instance.run)

    def crash_after(self, instance: _CrashingInstance) -> None:
        self._queue.after(_RUNS_S, instance.crash)

    def now(self) -> float:
        return self._queue.now


class _CrashingInstance:
    """`_unreported_since`: when the oldest change happened that no call has carried yet."""

    __slots__ = ("_all", "_crashes", "_sent_since", "_unreported_since")

    def __init__(self, instances: CrashLoopingInstances) -> None:
        self._all = instances
        self._crashes = 0
        self._sent_since: float | None = None
        self._unreported_since: float | None = None

    def run(self) -> None:
        self._change()
        self._all.crash_after(self)

    def crash(self) -> None:
        self._change()
        self._all.restart_after(self, self._crashes)
        self._crashes += 1

    def on_acknowledged(self) -> None:
        assert self._sent_since is not None
        self._all.acknowledge(self._sent_since)
        self._sent_since = None
        if self._unreported_since is not None:
            self._send()

    def send_again(self) -> None:
        """Send again, with what changed meanwhile."""
        self._all.send(self)

    def _change(self) -> None:
        if self._unreported_since is None:
            self._unreported_since = self._all.now()
        if self._sent_since is None:
            self._send()

    def _send(self) -> None:
        self._sent_since, self._unreported_since = self._unreported_since, None
        self._all.send(self)
