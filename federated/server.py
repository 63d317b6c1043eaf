"""A gateway as a process: its locations and both transports, started and stopped in order."""

from __future__ import annotations

from federated.api import GatewayApi
from federated.gateway import FederatedGateway
from federated.monitoring import METRICS, FederatedHealth
from federated.scrape_targets import FederatedScrapeTargets
from hqapi import prometheus_sd
from serving.context import ServerContext, process_metrics
from serving.listeners import Addresses, Transports
from serving.telemetry.metrics import Table


class FederatedServer:
    """A gateway with its transports. `serve` runs until `stop` is called; a part that dies ends it with the error."""

    def __init__(
        self, gateway: FederatedGateway, shared: ServerContext, addresses: Addresses, grace_s: float = 5.0
    ) -> None:
        self.gateway = gateway
        self.health = FederatedHealth(gateway.locations)
        self.metrics = metrics = process_metrics(shared)
        metrics.register(Table(METRICS, gateway))
        api = GatewayApi(gateway)
        methods = [*api.methods(), *api.refused_methods()]
        pages = prometheus_sd.pages(FederatedScrapeTargets(gateway.lists).find, metrics)
        self._transports = Transports(methods, self.health, shared, metrics, addresses, grace_s, pages)
        self.listening = self._transports.listening

    def stop(self) -> None:
        """Begin to shut down: not ready at once, calls in progress may finish, watches end."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen and answer until stopped. Raises OSError if an address cannot be bound."""
        try:
            await self._transports.serve(self.gateway.run(), self._leave)
        finally:
            await self.gateway.locations.end()

    def _leave(self) -> None:
        self.health.leaving = True
        self.gateway.locations.close()
