"""Readers: single instances, services and everything, from one replica or from the gateway, as fresh as they please."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from hqclient.client import STRONG, Client
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from tests.checker.history import CACHED, Read
from tests.checker.history import STRONG as STRONGLY
from tests.checker.marks import item_of
from tests.rig.recording import Log
from tests.rig.uploaders import Names


class Reader:
    """One reader. `clients` are what it asks, each for itself: one per replica, one for the gateway."""

    def __init__(self, name: str, clients: list[Client], log: Log, names: Names, rng: random.Random) -> None:
        self._name, self._clients, self._log, self._names, self._rng = name, clients, log, names, rng

    async def run(self, pause_s: float) -> None:
        """Read for ever."""
        while True:
            client = self._rng.choice(self._clients)
            options = self._options()
            do = self._rng.choices((self._get, self._find_service, self._find_all, self._count), (6, 6, 1, 2))[0]
            with contextlib.suppress(HqApiError):  # it is in the history
                await do(client, options)
            await asyncio.sleep(self._rng.uniform(0, 2 * pause_s))

    def _options(self) -> pb.ReadOptions:
        kind = self._rng.random()
        if kind < 0.25:
            return STRONG
        return pb.ReadOptions(min_version=self._log.newest) if kind < 0.5 else pb.ReadOptions()

    async def run_lookups(self, pause_s: float) -> None:
        """Ask for whole services, of whatever freshness, for ever: what a gateway follows."""
        while True:
            with contextlib.suppress(HqApiError):
                await self._find_service(self._rng.choice(self._clients), pb.ReadOptions())
            await asyncio.sleep(self._rng.uniform(0, 2 * pause_s))

    async def _get(self, client: Client, options: pb.ReadOptions) -> None:
        instance_id = self._rng.choice(self._names.all)
        wanted = {"instance_id": instance_id}
        await self._log.call(
            self._name,
            "get",
            lambda: client.get(instance_id, read=options),
            instance_id,
            read=lambda answer: read_of(options, answer, [answer.instance], wanted),
        )

    async def _find_service(self, client: Client, options: pb.ReadOptions) -> None:
        service = self._names.service(self._rng.choice(self._names.all))
        await self._find(client, options, pb.InstanceFilter(service_id=[service]), {"service_id": service})

    async def _find_all(self, client: Client, options: pb.ReadOptions) -> None:
        await self._find(client, options, None, {})

    async def _find(
        self, client: Client, options: pb.ReadOptions, where: pb.InstanceFilter | None, wanted: dict[str, str]
    ) -> None:
        async def first_page() -> pb.FindInstancesResponse:
            async for page in client.find(where, read=options):
                return page
            raise AssertionError("a search without a page")

        def record(page: pb.FindInstancesResponse) -> Read:
            upto = page.instances[-1].meta.id if page.next_page_token else ""
            return read_of(options, page, page.instances, wanted, upto)

        await self._log.call(self._name, "find", first_page, read=record)

    async def _count(self, client: Client, options: pb.ReadOptions) -> None:
        service = self._names.service(self._rng.choice(self._names.all))

        def record(answer: pb.CountInstancesResponse) -> Read:
            group = answer.groups[0] if answer.groups else pb.InstanceCount()
            return read_of(options, answer, (), {"service_id": service}, totals=(group.total, group.ready))

        where = pb.InstanceFilter(service_id=[service])
        await self._log.call(self._name, "count", lambda: client.count(where, read=options), read=record)


def read_of(
    options: pb.ReadOptions,
    answer: Any,
    instances: Any,
    wanted: dict[str, str],
    upto: str = "",
    totals: tuple[int, int] | None = None,
) -> Read:
    """What was asked and told; the gateway's answer about its one location looks the same."""
    source = answer.sources[0]
    return Read(
        options.min_version,
        STRONGLY if options.consistency else CACHED,
        source.version,
        source.epoch,
        source.stale,
        source.replica,
        {instance.meta.id: item_of(instance) for instance in instances},
        wanted,
        upto=upto,
        totals=totals,
        staleness_s=source.staleness.ToMilliseconds() / 1000 if source.HasField("staleness") else None,
    )
