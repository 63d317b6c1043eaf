"""One replica as a process: store, memory, use cases and transports, started and stopped in order."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hq.api.admin_api import AdminApi
from hq.api.cluster_check import with_cluster_check
from hq.api.instance_api import InstanceApi
from hq.api.metrics import METRICS, ReplicaMetrics
from hq.api.scrape_targets import ScrapeTargets
from hq.config import ReplicaConfig
from hq.epoch_trust import EpochTrust
from hq.loading import Loading
from hq.process.prober import Prober
from hq.registry.registry import Registry
from hq.replica import Replica
from hqapi import prometheus_sd
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import Clock
from serving.context import ServerContext, process_metrics
from serving.limiting.limits import Limits
from serving.listeners import Addresses, Transports
from serving.storage.measured import MeasuredStore
from serving.telemetry.metrics import Table
from store.fence import Fence
from store.port import Store

if TYPE_CHECKING:
    from serving.telemetry.tracing import Tracing


log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReplicaHealth:
    """The health of a replica as /livez, /readyz and grpc.health.v1 report it."""

    loading: Loading
    fence: Fence
    trust: EpochTrust
    leaving: bool = False

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return self.loading.loaded.is_set() and not self.leaving

    def staleness_s(self) -> float | None:
        return self.fence.staleness_s()

    def doubt(self) -> str:
        return self.trust.standing().doubt()

    def why(self) -> str:
        if self.leaving:
            return "this replica is shutting down"
        if not self.loading.loaded.is_set():
            return self.fence.error or self.loading.why_not()
        return self.fence.error


class ReplicaServer:
    """A replica with its transports.

    `serve` runs until `stop` is called; a part that dies ends it with the error.
    """

    def __init__(
        self,
        config: ReplicaConfig,
        store: Store,
        clock: Clock,
        rng: random.Random,
        addresses: Addresses,
        limits: Limits,
        grace_s: float = 5.0,
        security: Security | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        measured = MeasuredStore(store, clock)
        self.replica = Replica(config, measured, clock, rng)
        self.registry = Registry(self.replica, rng)
        self.health = ReplicaHealth(self.replica.loading, self.replica.fence, self.replica.trust)
        shared = ServerContext(limits, clock, RequestIds(config.replica), security, tracing)
        self.metrics = metrics = process_metrics(shared)
        metrics.register(Table(METRICS, ReplicaMetrics(self.replica, measured)))
        instances = InstanceApi(self.registry, config.json_bytes)
        methods = [*instances.methods(), *AdminApi(self.registry).methods()]
        pages = prometheus_sd.pages(
            ScrapeTargets(self.replica.cache, self.replica.loading, self.replica.trust).find, metrics
        )
        ours = with_cluster_check(methods, config.cluster)
        agents = with_cluster_check(instances.agents_methods(), config.cluster)
        self._transports = Transports(ours, self.health, shared, metrics, addresses, grace_s, pages, agents)
        self.listening = self._transports.listening
        is_encrypted = security is not None and security.tls is not None
        self._prober = Prober(
            self.replica.liveness.reachability.door,
            clock,
            config.liveness_timeout_s,
            self._transports.agents_admission,
            is_encrypted=is_encrypted,
        )

    def stop(self) -> None:
        """Begin to shut down: not ready at once, calls under way may finish, watches end with a bookmark."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen, follow and answer until stopped. Raises OSError if an address cannot be bound."""
        try:
            await self._transports.serve(self._work(), self._leave, self._drain)
            self.replica.save()
        finally:
            await self.replica.store.close()

    async def _work(self) -> None:
        probing = asyncio.create_task(self._prober.run(self.listening), name="prober")
        try:
            await self.replica.run()
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)

    def _leave(self) -> None:
        self.health.leaving = True
        self.replica.fanout.close()

    async def _drain(self) -> None:
        try:
            async with asyncio.timeout(2.0):
                await self.replica.heartbeats.drain()
        except TimeoutError:
            log.warning("some heartbeats were not stored: their agents report again to another replica")
