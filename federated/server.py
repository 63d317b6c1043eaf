"""A front as a process: its locations and both transports, started and stopped in order."""

from __future__ import annotations

from federated.api import FrontApi
from federated.discovery import ScrapeTargets
from federated.front import Front
from federated.health import FrontHealth
from federated.metrics import METRICS
from hqapi import prometheus_sd
from serving.context import ServerContext, process_metrics
from serving.telemetry.metrics import Table
from serving.transports import Addresses, Transports


class Server:
    """A front with its transports. `serve` runs until `stop` is called; a part that dies ends it with the error."""

    def __init__(self, front: Front, shared: ServerContext, addresses: Addresses, grace_s: float = 5.0) -> None:
        self.front = front
        self.health = FrontHealth(front.locations)
        self.metrics = metrics = process_metrics(shared)
        metrics.register(Table(METRICS, front))
        api = FrontApi(front)
        methods = [*api.methods(), *api.refused_methods()]
        pages = prometheus_sd.pages(ScrapeTargets(front.lists).find, metrics)
        self._transports = Transports(methods, self.health, shared, metrics, addresses, grace_s, pages)
        self.listening = self._transports.listening

    def stop(self) -> None:
        """Begin to shut down: not ready at once, calls under way may finish, watches end."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen and answer until stopped. Raises OSError if an address cannot be had."""
        try:
            await self._transports.serve(self.front.run(), self._leave)
        finally:
            await self.front.locations.end()

    def _leave(self) -> None:
        self.health.leaving = True
        self.front.locations.close()
