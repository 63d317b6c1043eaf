"""One replica as a process: store, memory, use cases and both transports, started and stopped in order."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from hq.api.admin_api import AdminApi
from hq.api.instance_api import InstanceApi
from hq.api.metrics import ReplicaCollector
from hq.clock import Clock
from hq.config import ReplicaConfig
from hq.registry.registry import Registry
from hq.replica import Replica
from hq.store.port import Store
from serving.calls import RequestIds
from serving.grpc_server import GrpcServer
from serving.http_server import HttpServer
from serving.limits import Limits
from serving.surroundings import Surroundings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to listen, as host:port; port 0 takes a free one."""

    grpc: str = "127.0.0.1:7071"
    http: str = "127.0.0.1:7080"


@dataclass(slots=True)
class Listening:
    """Where it listens."""

    grpc: str
    http: str


@dataclass(slots=True)
class ReplicaHealth:
    """What /livez, /readyz and grpc.health.v1 say of a replica."""

    replica: Replica
    leaving: bool = False

    def live(self) -> bool:
        return True

    def loaded(self) -> bool:
        return self.replica.loaded.is_set() and not self.leaving

    def staleness_s(self) -> float | None:
        return self.replica.fence.staleness_s()

    def why(self) -> str:
        if self.leaving:
            return "this replica is shutting down"
        if not self.replica.loaded.is_set():
            return self.replica.fence.error or "this replica is still reading the store"
        return self.replica.fence.error


class Server:
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
    ) -> None:
        self.replica = Replica(config, store, clock, rng)
        self.registry = Registry(self.replica, rng)
        self.health = ReplicaHealth(self.replica)
        self._addresses, self._grace_s = addresses, grace_s
        self._stopping = asyncio.Event()
        self.listening: asyncio.Future[Listening] = asyncio.get_running_loop().create_future()
        shared = Surroundings(limits, clock, RequestIds(config.replica))
        metrics = CollectorRegistry()
        metrics.register(ReplicaCollector(self.replica))
        metrics.register(shared.traffic)
        methods = [
            *InstanceApi(self.registry, config.json_bytes).methods(),
            *AdminApi(self.registry).methods(),
        ]
        self._grpc = GrpcServer(methods, self.health, shared)
        self._http = HttpServer(methods, self.health, shared, metrics, {})

    def stop(self) -> None:
        """Begin to shut down: not ready at once, calls under way may finish, watches end with a bookmark."""
        self._stopping.set()

    async def serve(self) -> None:
        """Listen, follow and answer until stopped. Raises OSError if an address cannot be had."""
        parts = asyncio.create_task(self.replica.run(), name="replica")
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await self._listen()
            await asyncio.wait((parts, stopping), return_when=asyncio.FIRST_COMPLETED)
            if parts.done():
                parts.result()
            await self._shut_down()
        finally:
            stopping.cancel()
            parts.cancel()
            await asyncio.gather(parts, stopping, return_exceptions=True)
            await self._grpc.stop(0)
            await self._http.stop(0)
            await self.replica.store.close()

    async def _listen(self) -> None:
        grpc_port = await self._grpc.start(self._addresses.grpc)
        http_port = await self._http.start(self._addresses.http)
        listening = Listening(
            f"{self._addresses.grpc.rpartition(':')[0]}:{grpc_port}",
            f"{self._addresses.http.rpartition(':')[0]}:{http_port}",
        )
        log.info("listening: gRPC %s, HTTP %s", listening.grpc, listening.http)
        self.listening.set_result(listening)

    async def _shut_down(self) -> None:
        log.info("shutting down: calls under way have %.0f s", self._grace_s)
        self.health.leaving = True
        self.replica.fanout.close()
        await asyncio.gather(self._grpc.stop(self._grace_s), self._http.stop(self._grace_s))
        try:
            async with asyncio.timeout(2.0):
                await self.replica.beats.drain()
        except TimeoutError:
            log.warning("some beats were not flushed: their agents report again elsewhere")
