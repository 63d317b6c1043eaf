"""Liveness as one part: deadlines, guard, orders and sweep of a replica, wired by its settings."""

from __future__ import annotations

import random

from hq.config import ReplicaConfig
from hq.keys import HqKeys
from hq.liveness.deadlines import LivenessTimes
from hq.liveness.expiries import Expiries
from hq.liveness.guard import ExpiryGuard, GuardRules
from hq.liveness.heartbeats import Heartbeats
from hq.liveness.orders import Orders
from hq.liveness.reachability import Reachability, SelfProbe
from hq.liveness.refusals import Refusals
from hq.liveness.sweep import Sweep, SweepTimes
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from serving.clock import Clock
from store.commit import Committer
from store.fence import Fence


def liveness_times(config: ReplicaConfig) -> LivenessTimes:
    """The agents' times that follow from the settings."""
    timeout_s = config.liveness_timeout_s
    return LivenessTimes(
        timeout_s=timeout_s,
        report_interval_s=config.report_interval_s,
        retry_s=min(10.0, timeout_s / 10),
        flush_s=0.5,
    )


class Liveness:
    """Everything that judges silence. `tracker` follows the cache, `sweep` acts."""

    def __init__(
        self,
        config: ReplicaConfig,
        cache: Cache,
        keys: HqKeys,
        tracker: Tracker,
        heartbeats: Heartbeats,
        fence: Fence,
        committer: Committer,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        timeout_s = config.liveness_timeout_s
        self.tracker = tracker
        self.refusals = Refusals(cache, tracker, clock)
        self.orders = Orders(clock)
        settle_s = min(self.tracker.times.grace_s, timeout_s)
        self.guard = ExpiryGuard(GuardRules(max_silent_share=config.guard_share, hold_s=timeout_s, settle_s=settle_s))
        self.reachability = Reachability(
            tracker,
            SelfProbe(timeout_s, lambda: heartbeats.failing),
            lambda: fence.proven_at,
            lambda: tracker.deaf or fence.store_is_full,
            fresh_s=min(5.5, timeout_s * 0.7),
        )
        expiries = Expiries(cache, keys, tracker, committer, clock, rng, config.replica)
        times = SweepTimes(idle_s=min(1.0, timeout_s / 10), spread_s=min(0.5, timeout_s / 20))
        judges = (self.guard, self.orders, self.reachability)
        self.sweep = Sweep(cache, tracker, *judges, heartbeats, fence, expiries, clock, rng, times)
