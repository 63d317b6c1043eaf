"""Both transports of a server, started and stopped in order around the work that they serve."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from serving.grpc_server import GrpcServer
from serving.health import Health
from serving.http_server import HttpServer
from serving.methods import Method
from serving.pages import Page
from serving.surroundings import Surroundings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where to listen, as host:port; port 0 takes a free one."""

    grpc: str
    http: str


class Transports:
    """gRPC and HTTP over one table of methods.

    Attributes:
        listening: where, once it does.
    """

    def __init__(
        self,
        methods: Sequence[Method],
        health: Health,
        shared: Surroundings,
        metrics: CollectorRegistry,
        addresses: Addresses,
        grace_s: float,
        pages: Mapping[str, Page] | None = None,
    ) -> None:
        """`pages`: beside those that every server has, by path."""
        self._addresses, self._grace_s, self._loop_lag = addresses, grace_s, shared.loop_lag
        self._stopping = asyncio.Event()
        self._grpc = GrpcServer(methods, health, shared)
        self._http = HttpServer(methods, health, shared, metrics, pages or {})
        self.listening: asyncio.Future[Addresses] = asyncio.get_running_loop().create_future()

    def stop(self) -> None:
        """Begin to shut down."""
        self._stopping.set()

    async def serve(
        self,
        work: Coroutine[Any, Any, None],
        leave: Callable[[], None],
        drain: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        """Listen while the work goes on, until `stop`. Work that ends by itself ends all of it, with its error.

        When stopped: `leave` first (not ready any more, streams end), then calls under way have their grace, then
        `drain` while the work still goes on, then the work is cancelled. Raises OSError if an address cannot be had.
        """
        working = asyncio.create_task(work, name="work")
        stopping = asyncio.create_task(self._stopping.wait())
        looking = asyncio.create_task(self._loop_lag.run(), name="loop lag")
        try:
            await self._listen()
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            log.info("shutting down: calls under way have %.0f s", self._grace_s)
            leave()
            await asyncio.gather(self._grpc.stop(self._grace_s), self._http.stop(self._grace_s))
            if drain is not None:
                await drain()
        finally:
            aside = (working, stopping, looking)
            for task in aside:
                task.cancel()
            await asyncio.gather(*aside, return_exceptions=True)
            await self._grpc.stop(0)
            await self._http.stop(0)

    async def _listen(self) -> None:
        grpc_port = await self._grpc.start(self._addresses.grpc)
        http_port = await self._http.start(self._addresses.http)
        listening = Addresses(
            f"{self._addresses.grpc.rpartition(':')[0]}:{grpc_port}",
            f"{self._addresses.http.rpartition(':')[0]}:{http_port}",
        )
        log.info("listening: gRPC %s, HTTP %s", listening.grpc, listening.http)
        self.listening.set_result(listening)
