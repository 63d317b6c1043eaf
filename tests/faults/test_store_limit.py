"""HQ's own limit keeps live data from filling etcd; an etcd that others filled is reported as full."""

from __future__ import annotations

import asyncio
import re
from itertools import count

import grpc
import pytest

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.service_stubs import InstanceServiceStub
from tests.clients.process import ROOT, hqctl
from tests.faults.test_store_away import fill, relieve
from tests.support.errors import reason_of
from tests.support.etcd import VERSIONS, OwnEtcd
from tests.support.replicas import Replicas
from tests.support.sample_instances import Agent, eventually, instance

pytestmark = pytest.mark.parametrize("etcd_binary", VERSIONS[:2], indirect=True)
QUOTA_BYTES = 16 << 20


@pytest.mark.long
async def test_instances_alone_never_fill_etcd(replicas: Replicas, own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd(quota_bytes=QUOTA_BYTES)
    replica = await replicas.start([etcd.endpoint], "/hq/v1/", "--max-store-bytes", str(QUOTA_BYTES // 2))
    async with replica.stub() as stub:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await create_for_ever(stub)
        assert reason_of(refused.value) == "STORE_LIMIT"
        assert "--max-store-bytes" in (refused.value.details() or "")
        _, page = await replica.get("/metrics")
        (used,) = re.findall(r"^hq_store_bytes ([\d.e+]+)$", page, re.MULTILINE)
        assert QUOTA_BYTES // 2 <= float(used) < QUOTA_BYTES
        agent = Agent(stub, "a-0")
        await agent.begin()
        await agent.report()
        told = await hqctl(replica.grpc, "status")
        assert told.code == 1
        assert "that HQ allows" in told.out
        assert "etcd is full" not in told.out
        await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=instance("a-1", text="shorter")))
        await stub.DeleteInstance(pb.DeleteInstanceRequest(id="a-2"))
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=large("a-new")))


@pytest.mark.long
async def test_status_says_of_a_full_etcd_that_it_is_full_and_what_to_do(replicas: Replicas, own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd(quota_bytes=QUOTA_BYTES)
    replica = await replicas.start([etcd.endpoint])
    assert (await hqctl(replica.grpc, "status")).code == 0
    await asyncio.to_thread(fill, etcd.endpoint)
    told = await hqctl(replica.grpc, "status")
    assert told.code == 1
    assert "! etcd is full (" in told.out
    assert "raise --quota-backend-bytes of each member" in " ".join(told.out.split())
    assert "majority" not in told.out
    refused = await hqctl(replica.grpc, "apply", "-f", str(ROOT / "examples" / "web.yaml"), "--timeout", "2s")
    assert refused.code == 5
    assert "raise its --quota-backend-bytes" in refused.err
    await asyncio.to_thread(relieve, etcd.endpoint)

    async def well() -> bool:
        return (await hqctl(replica.grpc, "status")).code == 0

    await eventually(well, what="no problem")


def large(instance_id: str) -> model.Instance:
    return instance(instance_id, text="x" * 16_000)


async def create_for_ever(stub: InstanceServiceStub) -> None:
    for number in count():
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=large(f"a-{number}")))
