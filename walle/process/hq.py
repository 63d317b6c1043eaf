"""HQ as a client: its silent nodes become checks, and planned work suspends silence there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from hqclient import Client, HqApiError
from hqpb.v1.instance_pb2 import Instance
from hqpb.v1.service_pb2 import Source
from serving.errors import ServiceError, StoreUnavailable
from walle.checks import FROM_HQ, reports, why_not_believed
from wallepb.v1.service_pb2 import HostChecks

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 30.0
_FIELDS: Final = ("meta.id", "spec.node_name", "status")
_BY: Final = "wall-e"


class Hq:
    """`suspend` and `resume` raise ServiceError: the planned work waits and shows it.

    Attributes:
        doubt: why silence is not believed now; empty: it is.
    """

    def __init__(self, client: Client) -> None:
        self._client, self.doubt = client, "HQ was not asked yet"

    async def suspend(self, node: str, seconds: float, reason: str) -> None:
        await _translated(self._client.admin.suspend_node(node, duration_s=seconds, by=_BY, reason=reason))

    async def resume(self, node: str, reason: str) -> None:
        await _translated(self._client.admin.resume_node(node))

    async def run(self, tell: Callable[[list[HostChecks], str], Awaitable[object]], acts: Callable[[], bool]) -> None:
        """Look every half minute at the acting process, and tell what HQ says of nodes."""
        while True:
            if acts():
                try:
                    await self._look(tell)
                except (HqApiError, ServiceError) as error:
                    self.doubt = f"HQ does not answer: {error}"
                    log.warning("%s", self.doubt)
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self, tell: Callable[[list[HostChecks], str], Awaitable[object]]) -> None:
        instances: list[Instance] = []
        sources: list[Source] = []
        async for page in self._client.find(fields=_FIELDS):
            instances += page.instances
            sources += page.sources
        guard = (await self._client.admin.get_guard()).guard
        self.doubt = why_not_believed(sources, guard)
        if not self.doubt:
            await tell(reports(instances), FROM_HQ)


class NoHq:
    """Without an HQ: nobody's silence is counted, so there is nothing to suspend."""

    doubt = "no HQ is configured"

    async def suspend(self, node: str, seconds: float, reason: str) -> None:
        """Nothing to do."""

    async def resume(self, node: str, reason: str) -> None:
        """Nothing to do."""


async def _translated(call: Awaitable[object]) -> None:
    try:
        await call
    except HqApiError as error:
        if error.reason not in ("NOT_FOUND", "NODE_NOT_FOUND"):
            raise StoreUnavailable(f"HQ: {error}") from error
