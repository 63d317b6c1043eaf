"""Discovery against real replicas over a real etcd: killed, stopped, started again, and away for a whole start."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hqclient.client import STRONG, Client, HqApiError
from hqclient.discovery import Discovery, EndpointChanges, Origin, Service
from hqpb.v1 import instance_pb2
from tests.clients.telling import Step, as_step
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.reserved_port import kept_addresses
from tests.support.sample_instances import eventually

RESTARTS = 8
WRITE_EVERY_S = 0.03
REVISION = "r1"
pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


class TwoReplicas:
    """Two replicas that keep their addresses over restarts."""

    def __init__(self, etcd: SharedEtcd, directory: Path) -> None:
        self._etcd, self._directory = etcd, directory
        self._running: list[ReplicaProcess] = []
        self._all: list[ReplicaProcess] = []
        self._flags = [kept_addresses() for _ in range(2)]
        self.addresses: list[str] = []

    async def start(self) -> None:
        await self._compacted_once()
        self._running = [await self._started(n, *self._flags[n]) for n in range(2)]
        self.addresses = [replica.grpc for replica in self._running]

    async def restart(self, number: int, *, kill: bool) -> None:
        """End one by SIGKILL or SIGTERM and start it at the same addresses."""
        old = self._running[number]
        await (old.kill() if kill else old.terminate())
        self._running[number] = await self._started(number, *self._flags[number])

    async def stop(self) -> None:
        for replica in self._all:
            await replica.kill()

    async def _compacted_once(self) -> None:
        """As after ten minutes: replicas that start replay since the last compaction, so nobody resyncs."""
        first = await self._started(0, "--compact-every", "0.5s")
        async with asyncio.timeout(60):
            while "compacted the store's history" not in first.log_text():
                await asyncio.sleep(0.05)
        await first.terminate()

    async def _started(self, number: int, *flags: str) -> ReplicaProcess:
        log = self._directory / f"replica-{number}-{len(self._all)}.log"
        replica = ReplicaProcess([self._etcd.endpoint], self._etcd.prefix, log, flags)
        self._all.append(replica)
        await replica.start()
        return replica


class Deploys:
    """Writes one change after the other and remembers what each must look like, whatever happens to replicas."""

    def __init__(self, client: Client, rng: random.Random) -> None:
        self._client, self._rng = client, rng
        self._marks: dict[str, str] = {}
        self._reporting: dict[str, tuple[int, int]] = {}  # uid and incarnation
        self._sequence = 0
        self._ready: set[str] = set()
        self.steps: list[Step] = []

    async def create(self, *ids: str) -> None:
        for number, id_ in enumerate(ids):
            await self._client.create(web(id_, 8000 + number))
            began = await self._client.begin_reporting(id_, REVISION, node="node-1")
            self._reporting[id_] = began.uid, began.incarnation
            self._marks[id_] = "0"
            await self._report(id_, ready=True)
        self.steps = [frozenset(("+", id_, "0") for id_ in ids)]

    async def write(self) -> None:
        """One change: mostly of a label, now and then of the readiness."""
        id_ = self._rng.choice(sorted(self._marks))
        if id_ not in self._ready or self._rng.random() < 0.2:
            await self._report(id_, ready=id_ not in self._ready)
            self.steps.append(frozenset({("+" if id_ in self._ready else "-", id_, self._marks[id_])}))
        else:
            await self._mark(id_, str(len(self.steps)))
            self.steps.append(frozenset({("~", id_, self._marks[id_])}))

    async def _report(self, id_: str, *, ready: bool) -> None:
        uid, incarnation = self._reporting[id_]
        self._sequence += 1
        status = instance_pb2.RevisionStatus(id=REVISION, incarnation=incarnation, sequence=self._sequence)
        status.installed.status = instance_pb2.CONDITION_STATUS_TRUE
        status.ready.status = instance_pb2.CONDITION_STATUS_TRUE if ready else instance_pb2.CONDITION_STATUS_FALSE
        await self._client.report(id_, status, uid=uid, node="node-1", timeout_s=20)
        (self._ready.add if ready else self._ready.discard)(id_)

    async def _mark(self, id_: str, mark: str) -> None:
        # An outcome that is unknown is looked up: the precondition keeps a late first try from coming second.
        while True:
            found = (await self._client.get(id_, read=STRONG, timeout_s=20)).instance
            if found.meta.labels["mark"] == mark:
                break
            found.meta.labels["mark"] = mark
            try:
                await self._client.update(found, fields=["meta.labels"])
            except HqApiError as error:
                if not error.outcome_unknown and error.reason != "VERSION_CONFLICT":
                    raise
        self._marks[id_] = mark


def web(id_: str, port: int) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id, made.meta.labels["mark"] = id_, "web", "0"
    made.spec.node_name = "node-1"
    made.spec.allocation.port.add(name="http", number=port)
    made.spec.revision.add(id=REVISION, target=instance_pb2.REVISION_TARGET_READY)
    return made


@pytest.fixture
async def two(etcd: SharedEtcd, tmp_path: Path) -> AsyncIterator[TwoReplicas]:
    replicas = TwoReplicas(etcd, tmp_path)
    try:
        await replicas.start()
        yield replicas
    finally:
        await replicas.stop()


async def keep_writing(deploys: Deploys, end: asyncio.Event) -> None:
    while not end.is_set():
        await deploys.write()
        await asyncio.sleep(WRITE_EVERY_S)


async def caught_up(service: Service, told: list[EndpointChanges], steps: list[Step]) -> None:
    async with asyncio.timeout(60):
        while len(told) < len(steps) and not any(changes.resync for changes in told):
            await asyncio.sleep(0.02)
    await service.ready(live=True)


async def more_of(steps: list[Step]) -> None:
    goal = len(steps) + 6
    await eventually(lambda: len(steps) >= goal, what="writing goes on")


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_over_restarts_of_real_replicas_no_change_is_lost_or_doubled(two: TwoReplicas) -> None:
    rng = random.Random(23)
    told: list[EndpointChanges] = []
    async with Client(two.addresses, timeout_s=20) as client:
        deploys = Deploys(client, rng)
        await deploys.create("web-1", "web-2", "web-3")
        async with Discovery(two.addresses).service("web", port="http") as web:
            await web.ready(at_least=3)
            web.on_change(told.append)
            end = asyncio.Event()
            writing = asyncio.create_task(keep_writing(deploys, end))
            try:
                for _ in range(RESTARTS):
                    await two.restart(rng.randrange(2), kill=rng.random() < 0.5)
                    await more_of(deploys.steps)
            finally:
                end.set()
                await writing
            await caught_up(web, told, deploys.steps)
    assert [changes.resync for changes in told if changes.resync] == []
    assert [as_step(changes) for changes in told] == deploys.steps
    assert len(deploys.steps) > 5 * RESTARTS


@pytest.mark.long
async def test_with_hq_away_for_the_whole_start_discovery_serves_the_saved_list_until_hq_is_back(
    etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with Replicas(tmp_path) as replicas:
        addresses = kept_addresses()
        hq = await replicas.start([etcd.endpoint], etcd.prefix, *addresses)
        found = Discovery([hq.grpc], state_dir=tmp_path / "state")
        async with Client([hq.grpc], timeout_s=20) as client:
            deploys = Deploys(client, random.Random(1))
            await deploys.create("web-1", "web-2")
            async with found.service("web", port="http") as web:
                await web.ready(at_least=2)
            await deploys.write()
        await hq.kill()
        told: list[EndpointChanges] = []
        async with found.service("web", port="http") as web:
            web.on_change(told.append)
            await web.ready(10.0, at_least=2)
            assert [e.address for e in web.endpoints] == ["node-1:8000", "node-1:8001"]
            assert (web.source, web.stale) == (Origin.SAVED, True)
            await replicas.start([etcd.endpoint], etcd.prefix, *addresses)
            await caught_up(web, told, deploys.steps)
            assert (web.source, web.stale) == (Origin.LIVE, False)
    # A history that began with this replica cannot go on from the saved token: that is said, and nothing is lost by it.
    assert [as_step(changes) for changes in told] == deploys.steps
    assert [bool(changes.resync) for changes in told] == [False, web.resyncs == 1]
