"""When each instance was last heard from, and which have been silent for too long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cms.ledger.instances import Instance, InstanceKey

TICK_S: Final = 0.1
PATIENCE: Final = 1.5  # report intervals


class Hearing:
    """Times of last reports. HQ says how long ago they were; an instance that it does not list was not heard from."""

    def __init__(self, patience_s: float) -> None:
        """`patience_s`: an instance silent for this long is not counted on; at most a tick too early."""
        self.patience_s = patience_s
        self._at: dict[InstanceKey, float] = {}
        self._tick_of: dict[InstanceKey, int] = {}  # of instances heard from recently
        self._recent: dict[int, set[InstanceKey]] = {}
        self._work_ended: dict[str, float] = {}  # by host
        self._own_work_ended: dict[InstanceKey, float] = {}
        self._suspended: set[InstanceKey] = set()

    def record_report(self, key: InstanceKey, at: float, interval_s: float = 0.0) -> bool:
        """Note that a report was received at this time or later. Returns whether that is news.

        `interval_s`: the instance's own report interval, if it has one. With a longer one it may be silent for longer;
        with a shorter one HQ notices its silence first.
        """
        if at <= self._at.get(key, float("-inf")):
            return False
        self._forget_tick(key)
        self._at[key] = at
        longer_s = max(0.0, PATIENCE * interval_s - self.patience_s)
        tick = self._tick_of[key] = int((at + longer_s) / TICK_S)
        self._recent.setdefault(tick, set()).add(key)
        return True

    def suspend(self, key: InstanceKey, is_suspended: bool) -> bool:
        """Note whether HQ has suspended the instance's node. Returns whether that is news."""
        if is_suspended == (key in self._suspended):
            return False
        self._suspended ^= {key}
        return True

    def forget(self, key: InstanceKey) -> None:
        """Forget it: it is gone, its id has a new instance, or HQ has another history."""
        self._forget_tick(key)
        self._suspended.discard(key)
        self._at.pop(key, None)

    def too_old(self, now: float) -> Iterator[InstanceKey]:
        """Instances whose last heartbeat has just become too old. Each is returned once."""
        latest = (now - self.patience_s) / TICK_S
        for tick in sorted(tick for tick in self._recent if tick < latest):
            for key in self._recent.pop(tick):
                del self._tick_of[key]
                yield key

    def work_ended(self, hosts: tuple[str, ...], instances: tuple[InstanceKey, ...], at: float) -> None:
        """Note that work on these ended: reports from before `at` prove nothing about them."""
        self._work_ended.update(dict.fromkeys(hosts, at))
        self._own_work_ended.update(dict.fromkeys(instances, at))

    def doubt(self, instance: Instance) -> str:
        """Why a ready instance cannot be counted on; empty: it can."""
        doubt = self._doubt(instance)
        if doubt and instance.key in self._suspended:
            return "ready, but its node is suspended in HQ, which does not watch for silence there (`hqctl resume`)"
        return doubt

    def _doubt(self, instance: Instance) -> str:
        at = self._at.get(instance.key)
        ended = max(
            self._work_ended.get(instance.host, float("-inf")),
            self._own_work_ended.get(instance.key, float("-inf")),
        )
        if at is None:
            return "ready, but HQ has not said when its agent last reported"
        if at <= ended:
            return "ready, but its agent has not reported since work on it ended"
        if instance.key not in self._tick_of:
            return f"ready, but its agent has been silent for over {self.patience_s:.0f} s"
        return ""

    def _forget_tick(self, key: InstanceKey) -> None:
        tick = self._tick_of.pop(key, None)
        if tick is not None:
            keys = self._recent[tick]
            keys.discard(key)
            if not keys:
                del self._recent[tick]
