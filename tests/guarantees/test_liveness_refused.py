"""The experiment: 150 readers take all calls of a replica with `--max-calls 50`. Agents report, and none is silent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from hq.memory.statuses import HEARTBEAT_TIMEOUT
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import instance

TIMEOUT_S, INTERVAL_S = 6.0, 1.5
READERS = 150
FLAGS = ("--max-calls", "50", "--liveness-timeout", f"{TIMEOUT_S:g}s", "--report-interval", f"{INTERVAL_S:g}s")
FAR = pb.ReadOptions(min_version=1 << 60)


class Agent:
    """Reports one revision until told to stop; counts what was refused."""

    def __init__(self, instance_id: str) -> None:
        self._id = instance_id
        self.taken = self.refused = 0

    async def begin(self, stub: service_stubs.InstanceServiceStub) -> None:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(self._id, node="node-1")))
        begun = await stub.BeginReporting(
            pb.BeginReportingRequest(instance_id=self._id, revision_id="r1", node="node-1")
        )
        status = model.RevisionStatus(id="r1", incarnation=begun.incarnation)
        status.ready.status = model.CONDITION_STATUS_TRUE
        self._report = pb.ReportStatusRequest(instance_id=self._id, uid=begun.uid, node="node-1", revision=status)
        await self.report(stub)

    async def report(self, stub: service_stubs.InstanceServiceStub) -> None:
        self._report.revision.sequence += 1
        try:
            await stub.ReportStatus(self._report, timeout=5)
            self.taken += 1
        except grpc.aio.AioRpcError as error:
            self.refused += error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    async def go_on(self, stub: service_stubs.InstanceServiceStub) -> None:
        while True:
            await self.report(stub)
            await asyncio.sleep(INTERVAL_S / 3)


async def readiness(stub: service_stubs.InstanceServiceStub, name: str) -> model.Condition:
    """Readiness of its revision, as soon as HQ has noticed that the readers left."""
    async with asyncio.timeout(10):
        while True:
            try:
                answer = await stub.GetInstance(pb.GetInstanceRequest(id=name))
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
                await asyncio.sleep(0.05)
            else:
                return answer.instance.status.revision[0].ready


@asynccontextmanager
async def reading(replica: ReplicaProcess) -> AsyncIterator[None]:
    """Readers that wait for a version that does not come, and so take every call there may be."""

    async def read(stub: service_stubs.InstanceServiceStub) -> None:
        while True:
            try:
                await stub.GetInstance(pb.GetInstanceRequest(id="web-1", read=FAR), timeout=4)
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.01)

    async with replica.stub() as stub:
        readers = [asyncio.create_task(read(stub)) for _ in range(READERS)]
        try:
            yield
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
async def test_reports_refused_because_readers_took_all_calls_are_not_silence(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with Replicas(tmp_path) as replicas:
        replica = await replicas.start([etcd.endpoint], etcd.prefix, *FLAGS, "--agents", "127.0.0.1:0")
        found = re.search(r"for agents (\S+)", replica.log_text())
        assert found
        at_door, elsewhere = Agent("web-1"), Agent("web-2")
        async with replica.stub() as stub, grpc.aio.insecure_channel(found[1]) as channel:
            door = service_stubs.InstanceServiceStub(channel)
            await at_door.begin(stub)
            await elsewhere.begin(stub)
            async with reading(replica):
                reporting = [asyncio.create_task(at_door.go_on(door)), asyncio.create_task(elsewhere.go_on(stub))]
                await asyncio.sleep(2 * TIMEOUT_S)
                for task in reporting:
                    task.cancel()
                await asyncio.gather(*reporting, return_exceptions=True)
            assert elsewhere.refused > elsewhere.taken
            assert at_door.refused == 0
            for name in ("web-1", "web-2"):
                ready = await readiness(stub, name)
                assert ready.reason != HEARTBEAT_TIMEOUT, ready.message
                assert ready.status == model.CONDITION_STATUS_TRUE
            metrics = (await replica.get("/metrics"))[1]
            counted = re.search(r'hq_reports_refused_total\{reason="OVERLOADED"\} (\d+)', metrics)
            assert counted
            assert int(counted[1]) >= elsewhere.refused


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)
async def test_the_agents_listener_serves_what_agents_need_and_nothing_else(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with Replicas(tmp_path) as replicas:
        replica = await replicas.start([etcd.endpoint], etcd.prefix, "--agents", "127.0.0.1:0")
        found = re.search(r"for agents (\S+)", replica.log_text())
        assert found
        async with replica.stub() as stub, grpc.aio.insecure_channel(found[1]) as channel:
            door = service_stubs.InstanceServiceStub(channel)
            await Agent("web-1").begin(stub)
            fetched = await door.GetRevision(
                pb.GetRevisionRequest(instance_id="web-1", revision_id="r1", node="node-1")
            )
            assert fetched.revision[0].id == "r1"
            watch = door.WatchInstances(pb.WatchInstancesRequest(filter=pb.InstanceFilter(node_name=["node-1"])))
            first = await anext(aiter(watch))
            assert first.kind == pb.WATCH_KIND_SNAPSHOT
            watch.cancel()
            for call, code in (
                (door.FindInstances(pb.FindInstancesRequest()), grpc.StatusCode.UNIMPLEMENTED),
                (door.WatchInstances(pb.WatchInstancesRequest()).read(), grpc.StatusCode.INVALID_ARGUMENT),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await call
                assert refused.value.code() is code
