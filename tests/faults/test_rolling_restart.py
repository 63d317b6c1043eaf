"""Three replicas are restarted one by one under load: nobody who names all of them notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from hqclient.client import Client, HqApiError
from hqclient.watch_items import Changes, Resync, SnapshotPart, Synced
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.reserved_port import kept_addresses
from tests.support.sample_instances import eventually, instance

pytestmark = [pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True), pytest.mark.timeout(180)]

AGENTS = 30
TRUE = model.CONDITION_STATUS_TRUE


class Seen:
    """What clients saw of it."""

    def __init__(self) -> None:
        self.lookups = self.reports = self.bookmarks = 0
        self.failed: list[str] = []
        self.not_ready: list[str] = []
        self.story: list[type] = []
        self.changed: list[str] = []

    def saw(self, instance_id: str) -> bool:
        return instance_id in self.changed


class Rolling:
    """One replica that keeps its addresses over restarts."""

    def __init__(self, replicas: Replicas, etcd: SharedEtcd) -> None:
        self._replicas, self._etcd = replicas, etcd
        addresses = kept_addresses()
        self.address = addresses[1]
        self._flags = (*addresses, "--liveness-timeout", "20s", "--grace", "30s")  # a busy machine may need it
        self.process: ReplicaProcess | None = None

    async def start(self) -> ReplicaProcess:
        self.process = await self._replicas.start(
            [self._etcd.endpoint], self._etcd.prefix, *self._flags, "--report-interval", "5s"
        )
        return self.process

    async def restart(self) -> int:
        """Restart as a service manager does: SIGTERM, wait for the end, start, wait until it is ready."""
        assert self.process is not None
        code = await self.process.terminate(timeout_s=60)
        await self.start()
        return code


async def look_up(client: Client, seen: Seen) -> None:
    while True:
        try:
            await client.get(f"i-{seen.lookups % AGENTS:02}", timeout_s=15)
            async for page in client.find(pb.InstanceFilter(service_id=["svc"]), timeout_s=15):
                seen.not_ready += [i.meta.id for i in page.instances if i.status.ready.status != TRUE]
        except HqApiError as error:
            seen.failed.append(f"a lookup: {error}")
        seen.lookups += 1
        await asyncio.sleep(0.01)


async def report(client: Client, instance_id: str, seen: Seen, began: asyncio.Event) -> None:
    me = await client.begin_reporting(instance_id, "r1", node=f"node-{int(instance_id[2:]) % 4}", timeout_s=30)
    status = model.RevisionStatus(id="r1", incarnation=me.incarnation)
    status.installed.status = status.ready.status = TRUE
    while True:
        status.sequence += 1
        try:
            await client.report(instance_id, status, uid=me.uid, node=f"node-{int(instance_id[2:]) % 4}", timeout_s=15)
        except HqApiError as error:
            seen.failed.append(f"a report: {error}")
        seen.reports += 1
        began.set()
        await asyncio.sleep(0.5)


async def follow(client: Client, seen: Seen, synced: asyncio.Event) -> None:
    async with client.watch() as items:
        async for item in items:
            seen.story.append(type(item))
            if isinstance(item, Synced):
                synced.set()
            elif isinstance(item, Changes):
                seen.changed += [event.put.meta.id for event in item.events if event.HasField("put")]


@asynccontextmanager
async def going_on(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(ended, asyncio.CancelledError), ended


@pytest.mark.long
async def test_a_rolling_restart_under_load_fails_no_lookup_resyncs_nobody_and_expires_nothing(
    replicas: Replicas, etcd: SharedEtcd
) -> None:
    three = [Rolling(replicas, etcd) for _ in range(3)]
    await asyncio.gather(*(one.start() for one in three))
    seen, synced = Seen(), asyncio.Event()
    async with Client([one.address for one in three]) as client:
        made = [instance(f"i-{n:02}", node=f"node-{n % 4}") for n in range(AGENTS)]
        await client.apply(made)
        began = [asyncio.Event() for _ in range(AGENTS)]
        agents = [report(client, i.meta.id, seen, b) for i, b in zip(made, began, strict=True)]
        async with going_on(*agents):
            await asyncio.gather(*(event.wait() for event in began))
            async with going_on(follow(client, seen, synced), look_up(client, seen), look_up(client, seen)):
                await synced.wait()
                for number, one in enumerate(three):
                    assert await one.restart() == 0
                    await client.apply([instance(f"after-{number}", service="other")])
                    await eventually(partial(seen.saw, f"after-{number}"), what="the story goes on")
    assert seen.failed == []
    assert seen.not_ready == []
    assert min(seen.lookups, seen.reports) > AGENTS
    assert Resync not in seen.story
    # One snapshot, at the very beginning: every other stream was resumed.
    first = seen.story.index(Synced)
    assert SnapshotPart not in seen.story[first:]
    for one in three:
        assert one.process is not None
        metrics = (await one.process.get("/metrics"))[1]
        assert "hq_expiries_total 0.0" in metrics
        assert "hq_resyncs_total 0.0" in metrics
