"""HQ as a client: its silent nodes become checks, and planned work suspends silence there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from hqclient import Client, HqApiError
from hqpb.v1.instance_pb2 import REVISION_TARGET_READY, Instance
from hqpb.v1.service_pb2 import (
    READINESS_FILTER_NOT_READY,
    READINESS_FILTER_READY,
    InstanceFilter,
    ReadinessFilter,
    Source,
)
from serving.errors import ServiceError, StoreUnavailable
from walle.checks import FROM_HQ, reports, why_not_believed
from walle.work.waves import HqView
from wallepb.v1.service_pb2 import HostChecks

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 30.0
_FIELDS: Final = ("meta.id", "spec.node_name", "status")
_BY: Final = "wall-e"


class Hq:
    """The locations of HQ, each with its own guard; a federation gateway has none.

    `suspend` and `resume` raise ServiceError: the planned work waits and shows it.

    Attributes:
        doubts: why silence is not trusted now, by location; empty: it is.
    """

    def __init__(self, locations: Mapping[str, Client]) -> None:
        self._clients = locations
        self._nodes: dict[str, set[str]] = {}  # by location, as of the last look
        self.doubts = dict.fromkeys(locations, "HQ has not been asked yet")

    async def suspend(self, node: str, seconds: float, reason: str) -> None:
        for client in self._of(node):
            await _translate_errors(client.admin.suspend_node(node, duration_s=seconds, by=_BY, reason=reason))

    async def resume(self, node: str, reason: str) -> None:
        for client in self._of(node):
            await _translate_errors(client.admin.resume_node(node))

    async def view(self, coming: Sequence[str], returning: Sequence[str]) -> HqView | None:
        """Never raises: what HQ does not say is a problem of the view."""
        try:
            ready = await self._instances(coming, READINESS_FILTER_READY)
            missing = await self._instances(returning, READINESS_FILTER_NOT_READY)
        except (HqApiError, ServiceError) as error:
            return HqView(problem=f"HQ does not answer (check --location): {error}")
        return HqView(ready, missing)

    async def _instances(self, nodes: Sequence[str], readiness: ReadinessFilter) -> dict[str, set[str]]:
        """The ids of instances that HQ wants ready, by node, for each of the nodes, from all locations."""
        found: dict[str, set[str]] = {node: set() for node in nodes}
        if not nodes:
            return found
        where = InstanceFilter(node_name=nodes, readiness=readiness)
        for client in self._clients.values():
            async for page in client.find(where, fields=("meta.id", "spec.node_name", "spec.revision")):
                for one in page.instances:
                    if any(revision.target == REVISION_TARGET_READY for revision in one.spec.revision):
                        found.setdefault(one.spec.node_name, set()).add(one.meta.id)
        return found

    def _of(self, node: str) -> list[Client]:
        """The locations where the node has instances; all of them while that is unknown."""
        known = [client for name, client in self._clients.items() if node in self._nodes.get(name, ())]
        return known or list(self._clients.values())

    async def run(self, tell: Callable[[list[HostChecks], str], Awaitable[object]], acts: Callable[[], bool]) -> None:
        """Every half minute, on the acting process only, report what HQ says about nodes."""
        while True:
            if acts():
                await asyncio.gather(*(self._look(name, tell) for name in self._clients))
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self, name: str, tell: Callable[[list[HostChecks], str], Awaitable[object]]) -> None:
        try:
            said = await self._silent_nodes(name)
            source = f"{FROM_HQ}/{name}"
            for check in (check for host in said for check in host.check):
                check.source = source
            await tell(said, source)
        except (HqApiError, ServiceError) as error:
            doubt = f"HQ does not answer: {error}"
            log.log(logging.DEBUG if doubt == self.doubts[name] else logging.WARNING, "location %s: %s", name, doubt)
            self.doubts[name] = doubt

    async def _silent_nodes(self, name: str) -> list[HostChecks]:
        """Return one location's report of its nodes; empty while it is not trusted."""
        client, instances, sources = self._clients[name], list[Instance](), list[Source]()
        async for page in client.find(fields=_FIELDS):
            instances += page.instances
            sources += page.sources
        self._nodes[name] = {one.spec.node_name for one in instances}
        self.doubts[name] = why_not_believed(sources, (await client.admin.get_guard()).guard)
        if self.doubts[name]:
            return []
        suspended = {one.node_name for one in (await client.admin.list_suspensions()).suspensions}
        return reports(instances, suspended)


class NoHq:
    """Without an HQ: nobody's silence is counted, so there is nothing to suspend."""

    async def view(self, coming: Sequence[str], returning: Sequence[str]) -> HqView | None:
        return None

    async def suspend(self, node: str, seconds: float, reason: str) -> None:
        """Nothing to do."""

    async def resume(self, node: str, reason: str) -> None:
        """Nothing to do."""


async def _translate_errors(call: Awaitable[object]) -> None:
    try:
        await call
    except HqApiError as error:
        if error.reason not in ("NOT_FOUND", "NODE_NOT_FOUND"):
            raise StoreUnavailable(f"HQ: {error}") from error
