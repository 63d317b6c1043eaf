"""HQ's use cases, one part per kind of caller. Requests come in parsed; nothing here knows of wire formats."""

from __future__ import annotations

import random

from hq.registry.admin import Admin
from hq.registry.apply import Apply
from hq.registry.begin_many import NodeReports
from hq.registry.explain import Explain
from hq.registry.get_revision import Revisions
from hq.registry.preconditions import Preconditions
from hq.registry.reads import Reads
from hq.registry.silences import Silences
from hq.registry.source import Freshness
from hq.registry.watches import Watches
from hq.registry.writes import Writes
from hq.replica import Replica


class Registry:
    """All calls of both services, over one replica."""

    def __init__(self, replica: Replica, rng: random.Random) -> None:
        self.replica = replica
        r, cache, fence, loading, clock = replica, replica.cache, replica.fence, replica.loading, replica.clock
        self.freshness = Freshness(r.config, clock, cache, fence, r.epoch, loading, r.trust)
        self.reads = Reads(cache, fence, loading, self.freshness, r.config.page_bytes)
        interval_s = r.config.report_interval_s
        orders = r.liveness.orders
        self.silences = Silences(cache, r.fanout, r.tracker.deadlines, clock, self.freshness, interval_s, orders)
        self.watches = Watches(cache, r.history, r.fanout, fence, loading, self.freshness)
        self.writes = Writes(r, Preconditions(cache, r.key_names, r.epoch, loading, r.catch_up, clock))
        self.apply = Apply(cache, self.writes, r.config.cluster)
        self.reports = NodeReports(replica, rng)
        self.revisions = Revisions(cache, loading, r.catch_up)
        self.explain = Explain(cache, r.liveness, clock, self.reads)
        self.admin = Admin(replica)

    def deadline(self, asked: float | None) -> float:
        """When the caller stops waiting for a write, on the injected clock; the default if it does not say."""
        if asked is not None:
            return asked
        return self.replica.clock.now() + self.replica.config.write_timeout_s
