"""One process of the CMS: the kit, the ledger, HQ as it is followed, and the transports."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Final

from cms.api.admin_api import CmsAdminApi
from cms.api.ledger_api import LedgerApi
from cms.api.settings_api import SettingsApi
from cms.api.tasks_api import CmsApi
from cms.desk import CmsController, CmsSettings
from cms.hqview.locations import HqFollower
from cms.leave import TaskService
from cms.ledger.book import TaskLedger
from cms.ledger.limits import DomainLimits
from cms.metrics import METRICS, CmsMetricSources
from cms.wire.site import WireApi
from control import ControlConfig, Controller
from control.kept_lines import KeptLines
from control.order_rights import OrderRights
from control.process import ControllerHealth, release
from hqclient import Client
from serving.auth.watched_files import WatchedFiles
from serving.context import ServerContext, process_metrics
from serving.listeners import Addresses, Transports
from serving.telemetry.metrics import Table
from store.port import Store

_REREAD_S: Final = 5.0  # how often the file of sites is checked for changes


class CmsServer:
    """A process. `serve` runs until `stop` is called; a part that dies ends it with the error."""

    def __init__(
        self,
        config: ControlConfig,
        store: Store,
        rng: random.Random,
        shared: ServerContext,
        addresses: Addresses,
        clients: Mapping[str, Client],
        book: TaskLedger,
        settings: CmsSettings,
        grace_s: float = 5.0,
        sites: WatchedFiles[DomainLimits] | None = None,
    ) -> None:
        self._store, self._clients, self._sites = store, clients, sites
        self.controller = controller = Controller(
            config, store, shared.clock, rng, shared.why_unrecorded, OrderRights.of(shared)
        )
        KeptLines(controller, shared, rng)
        self.locations = HqFollower(clients, book.picture, shared.clock)
        self.desk = CmsController(controller, book, self.locations, settings)
        leave = TaskService(self.desk)
        self.health = ControllerHealth(controller, self.desk.why_closed, self._doubts)
        wire = WireApi(leave, shared)
        metrics = process_metrics(shared)
        metrics.register(Table(METRICS, CmsMetricSources(self.desk, wire, sites)))
        methods = [*CmsApi(leave).methods(), *SettingsApi(self.desk).methods(), *CmsAdminApi(leave).methods()]
        methods += LedgerApi(self.desk).methods()
        self._transports = Transports(methods, self.health, shared, metrics, addresses, grace_s, site=wire)
        self.listening = self._transports.listening

    def stop(self) -> None:
        """Begin to shut down: not ready at once, another process acts, calls under way may finish."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen, decide and answer until stopped. Raises OSError if an address cannot be had."""
        try:
            await self._transports.serve(self._work(), self.health.leave, self._release)
        finally:
            for client in self._clients.values():
                await client.close()
            await self._store.close()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.controller.run(), name="controller")
            tasks.create_task(self.locations.run(), name="locations")
            if self._sites is not None:
                tasks.create_task(self._reread(self._sites), name="sites")

    async def _reread(self, sites: WatchedFiles[DomainLimits]) -> None:
        while True:
            await asyncio.sleep(_REREAD_S)
            if await asyncio.to_thread(sites.reread):
                self.desk.limit(sites.current)

    def _doubts(self) -> str:
        doubts = {name: one.doubt() for name, one in self.desk.locations.by_name.items()}
        return "; ".join(f"location {name}: {doubt}" for name, doubt in sorted(doubts.items()) if doubt)

    async def _release(self) -> None:
        await release(self.controller)
