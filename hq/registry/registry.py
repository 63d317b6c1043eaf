"""The use cases of HQ, one part per kind of caller. What comes in has been parsed; nothing here knows of wires."""

from __future__ import annotations

import random

from hq.registry.admin import Admin
from hq.registry.apply import Apply
from hq.registry.explain import Explain
from hq.registry.node_reports import NodeReports
from hq.registry.reads import Reads
from hq.registry.revisions import Revisions
from hq.registry.silences import Silences
from hq.registry.source import Freshness
from hq.registry.watches import Watches
from hq.registry.writes import Writes
from hq.replica import Replica


class Registry:
    """All calls of both services, over one replica."""

    def __init__(self, replica: Replica, rng: random.Random) -> None:
        self.replica = replica
        self.freshness = Freshness(replica)
        self.reads = Reads(replica, self.freshness)
        self.silences = Silences(replica, self.freshness)
        self.watches = Watches(replica, self.freshness)
        self.writes = Writes(replica)
        self.apply = Apply(replica, self.writes)
        self.reports = NodeReports(replica, rng)
        self.revisions = Revisions(replica)
        self.explain = Explain(replica, self.reads)
        self.admin = Admin(replica)

    def deadline(self, asked: float | None) -> float:
        """When the caller stops waiting for a write, on the injected clock; without a word of it, the default."""
        if asked is not None:
            return asked
        return self.replica.clock.now() + self.replica.config.write_timeout_s
