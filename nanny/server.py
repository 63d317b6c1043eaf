"""One process of Nanny: the kit, what it declares to it, and the transports."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from control import ControlConfig, Controller
from control.kept_lines import KeptLines
from control.order_rights import OrderRights
from control.process import ControllerHealth, release
from hqclient import Client
from nanny.actions.checks import RolloutChecks
from nanny.actions.contents import Contents
from nanny.actions.effects import Declaring, Effects
from nanny.actions.unused import UnusedContents
from nanny.actions.worker import Worker
from nanny.api.nanny_api import NannyApi
from nanny.api.orders import NannyOrders
from nanny.api.queries import Queries
from nanny.api.shown import NannyMessages
from nanny.metrics import METRICS, NannyMetricSources
from nanny.records import kinds
from nanny.records.handler import handler
from nanny.world.leave import ApprovalPort
from nanny.world.pictures import ServiceViews
from nanny.world.prometheus import PrometheusPort
from nanny.world.writing import InstanceWriter
from nannypb.v1.records_pb2 import ServiceEvent
from serving.context import ServerContext, process_metrics
from serving.listeners import Addresses, Transports
from serving.telemetry.metrics import Table
from store.port import Store

_RESTORED: Final = "the store was restored or replaced: compare it with HQ, then run `nanny control open`"


class NannyProcess:
    """A process. `serve` runs until `stop` is called; a part that dies ends it with the error."""

    def __init__(
        self,
        config: ControlConfig,
        store: Store,
        rng: random.Random,
        shared: ServerContext,
        addresses: Addresses,
        locations: Mapping[str, Client],
        leave: ApprovalPort,
        prometheus: PrometheusPort | None = None,
        drift_every_s: float = 60.0,
        grace_s: float = 5.0,
    ) -> None:
        self._store, self._locations = store, locations
        self._prometheus = prometheus = prometheus or PrometheusPort({})
        self.controller = controller = Controller(
            config, store, shared.clock, rng, shared.why_unrecorded, OrderRights.of(shared)
        )
        KeptLines(controller, shared, rng)
        kinds.declare(controller)
        events = controller.events(kinds.EVENTS, ServiceEvent, handler(shared.clock.wall_ms, controller.rights))
        self.pictures = pictures = ServiceViews(locations, shared.clock)
        snapshots, chunks = controller.records(kinds.SNAPSHOT), controller.records(kinds.CHUNK)
        contents = Contents(snapshots, chunks, locations)
        writer = InstanceWriter(locations, shared.clock)
        effects = Effects(controller, events, writer, leave, locations)
        checks = RolloutChecks(prometheus, contents, shared.clock)
        worker = Worker(controller, events, pictures, contents, effects, checks, drift_every_s)
        services = controller.records(kinds.SERVICE)
        work = controller.reconcile("work", worker.run, lambda: list(services), workers=32)
        services.listen(work.trigger)
        controller.reconcile("cms", Declaring(controller, leave).run, lambda: ["running work"], workers=1)
        controller.reconcile("contents", UnusedContents(controller).run, lambda: ["unused"], workers=1)
        pictures.changed = lambda service: work.trigger(service, 0.05)
        self.health = ControllerHealth(controller, lambda: "" if controller.is_open else _RESTORED)
        self.metrics = metrics = process_metrics(shared)
        metrics.register(Table(METRICS, NannyMetricSources(controller, pictures, writer, effects)))
        shown = NannyMessages(controller, events)
        orders = NannyOrders(controller, events, contents, locations)
        api = NannyApi(controller, orders, Queries(worker, shown, contents), shown, pictures, leave, prometheus.names)
        self.methods = api.methods()
        self._transports = Transports(self.methods, self.health, shared, metrics, addresses, grace_s)
        self.listening = self._transports.listening

    def stop(self) -> None:
        """Begin to shut down: not ready at once, another process acts, calls under way may finish."""
        self._transports.stop()

    async def serve(self) -> None:
        """Listen, act and answer until stopped. Raises OSError if an address cannot be had."""
        try:
            await self._transports.serve(self.controller.run(), self.health.leave, self._release)
        finally:
            await self.pictures.close()
            for client in self._locations.values():
                await client.close()
            await self._prometheus.close()
            await self._store.close()

    async def _release(self) -> None:
        await release(self.controller)
