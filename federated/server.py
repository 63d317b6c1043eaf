"""A front as a process: its locations and both transports, started and stopped in order."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from federated.api import FrontApi
from federated.front import Front
from federated.health import FrontHealth
from federated.metrics import FrontCollector
from serving.grpc_server import GrpcServer
from serving.http_server import HttpServer
from serving.surroundings import Surroundings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to listen, as host:port; port 0 takes a free one."""

    grpc: str = "127.0.0.1:7171"
    http: str = "127.0.0.1:7180"


class Server:
    """A front with its transports. `serve` runs until `stop` is called; a part that dies ends it with the error."""

    def __init__(self, front: Front, shared: Surroundings, addresses: Addresses, grace_s: float = 5.0) -> None:
        self.front = front
        self.health = FrontHealth(front.locations)
        self._addresses, self._grace_s = addresses, grace_s
        self._stopping = asyncio.Event()
        self.listening: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()
        metrics = CollectorRegistry()
        metrics.register(FrontCollector(front))
        metrics.register(shared.traffic)
        methods = FrontApi(front).methods()
        self._grpc = GrpcServer(methods, self.health, shared)
        self._http = HttpServer(methods, self.health, shared, metrics, {})

    def stop(self) -> None:
        """Begin to shut down: not ready at once, calls under way may finish, watches end."""
        self._stopping.set()

    async def serve(self) -> None:
        """Listen and answer until stopped. Raises OSError if an address cannot be had."""
        parts = asyncio.create_task(self.front.locations.run(), name="locations")
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
            await self.front.locations.end()

    async def _listen(self) -> None:
        grpc_port = await self._grpc.start(self._addresses.grpc)
        http_port = await self._http.start(self._addresses.http)
        listening = Addresses(
            f"{self._addresses.grpc.rpartition(':')[0]}:{grpc_port}",
            f"{self._addresses.http.rpartition(':')[0]}:{http_port}",
        )
        log.info("listening: gRPC %s, HTTP %s", listening.grpc, listening.http)
        self.listening.set_result(listening)

    async def _shut_down(self) -> None:
        log.info("shutting down: calls under way have %.0f s", self._grace_s)
        self.health.leaving = True
        self.front.locations.close()
        await asyncio.gather(self._grpc.stop(self._grace_s), self._http.stop(self._grace_s))
