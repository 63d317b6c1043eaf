"""Wall-E as a server: the automaton and both transports, started and stopped in order."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from control import ControlConfig, Controller
from control.kept_lines import KeptLines
from control.order_rights import OrderRights
from control.process import ControllerHealth, release
from serving.calls.methods import Method, ServiceTable
from serving.context import ServerContext, process_metrics
from serving.listeners import Addresses, Transports
from serving.telemetry.metrics import Table
from store.port import Store
from walle.api.fuses import FuseFeed
from walle.api.inventory import Inventory
from walle.api.notices import NoticesApi
from walle.api.orders import Telling, WalleOrders
from walle.api.reads import WalleReads
from walle.healing.decision import SETTLE_MS
from walle.notices import Mail, WebhookNotifier
from walle.outgoing.calls import OutgoingCalls
from walle.process.automaton import WalleSupervisor
from walle.process.config import FileConfig
from walle.process.hq import Hq, NoHq
from walle.process.metrics import METRICS
from walle.process.parts import ConfiguredProviders
from wallepb.v1.project_pb2 import Recipient


def _subject(request: Any) -> str:
    """Subject of the line in the audit log."""
    for name in ("host", "machine", "scenario", "notice", "project"):
        value = getattr(request, name, "")
        if isinstance(value, str) and value:
            return value
    return "all"


SERVICE = ServiceTable("walle.v1.WalleService", _subject)


def methods(automaton: WalleSupervisor) -> list[Method]:
    """All calls."""
    return [
        *WalleReads(automaton).methods(SERVICE),
        *Inventory(automaton).methods(SERVICE),
        *NoticesApi(automaton).methods(SERVICE),
        *FuseFeed(automaton).methods(SERVICE),
        *WalleOrders(automaton).methods(SERVICE),
        *Telling(automaton).methods(SERVICE),
    ]


class WalleServer:
    """`serve` runs until `stop` is called; a part that dies ends it with the error."""

    def __init__(
        self,
        config: ControlConfig,
        installation: str,
        file: FileConfig,
        store: Store,
        shared: ServerContext,
        rng: random.Random,
        addresses: Addresses,
        hq: Hq | None = None,
        settle_ms: int = SETTLE_MS,
        grace_s: float = 5.0,
    ) -> None:
        self._store, self._hq = store, hq
        self.controller = Controller(config, store, shared.clock, rng, shared.why_unrecorded, OrderRights.of(shared))
        KeptLines(self.controller, shared, rng)
        calls = OutgoingCalls()
        mail = [Mail(file.smtp)] if file.smtp is not None else []
        self._file = file
        self.automaton = WalleSupervisor(
            self.controller,
            installation,
            file.global_limits,
            [WebhookNotifier(file.destinations, calls), *mail],
            self._recipients,
            lambda storing, projects, events: ConfiguredProviders(file, projects, storing, events, calls),
            hq or NoHq(),
            rng,
            settle_ms,
        )
        controller = self.controller
        self.health = ControllerHealth(
            controller, lambda: "" if controller.is_open else controller.why_nothing_begins()
        )
        metrics = process_metrics(shared)
        metrics.register(Table(METRICS, self.automaton))
        self._transports = Transports(methods(self.automaton), self.health, shared, metrics, addresses, grace_s)
        self.listening = self._transports.listening

    def stop(self) -> None:
        """Begin to shut down: not ready at once, calls under way may finish."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen and act until stopped. Raises OSError if an address cannot be had."""
        try:
            await self._transports.serve(self._work(), self.health.leave, self._release)
        finally:
            await self.automaton.close()
            await self._store.close()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.automaton.run(), name="automaton")
            if self._hq is not None:
                group.create_task(self._hq.run(self.automaton.tell, lambda: self.controller.is_acting), name="hq")

    async def _release(self) -> None:
        await release(self.controller)

    def _recipients(self, project: str) -> list[Recipient]:
        found = self.automaton.projects.get(project)
        own = list(found.notifications.recipient) if found is not None else []
        return own if project else list(self._file.recipients)
