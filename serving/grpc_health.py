"""grpc.health.v1 over our own health: checks look at once, watches within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from grpc_health.v1 import health, health_pb2  # type: ignore[import-untyped]

from serving.health import Health

HEALTH_SERVICE: Final = "grpc.health.v1.Health"
_WATCH_INTERVAL_S: Final = 1.0


class HealthOverGrpc(health.aio.HealthServicer):  # type: ignore[misc]
    """SERVING while reads can be served, for the server as a whole ("") and for each of its services."""

    def __init__(self, own: Health, services: Sequence[str]) -> None:
        super().__init__()
        self._own = own
        self._services = ("", *services)
        self._refreshing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look after the watches."""
        self._refreshing = asyncio.create_task(self._refresh_forever(), name="grpc health")

    async def stop(self) -> None:
        """NOT_SERVING from now on, whatever the health."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            with suppress(asyncio.CancelledError):
                await self._refreshing
        await self.enter_graceful_shutdown()

    async def Check(self, request: health_pb2.HealthCheckRequest, context: Any) -> Any:  # noqa: N802
        await self._refresh()
        return await super().Check(request, context)

    async def _refresh(self) -> None:
        statuses = health_pb2.HealthCheckResponse
        status = statuses.SERVING if self._own.live() and self._own.loaded() else statuses.NOT_SERVING
        for service in self._services:
            await self.set(service, status)

    async def _refresh_forever(self) -> None:
        while True:
            await self._refresh()
            await asyncio.sleep(_WATCH_INTERVAL_S)
