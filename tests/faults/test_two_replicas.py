"""Two replicas over one etcd: what one acknowledges, the other shows, also when one is killed."""

from __future__ import annotations

import asyncio
import re

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.etcd import VERSIONS, SharedEtcd
from tests.support.faulty_proxy import Proxy
from tests.support.replicas import Replicas
from tests.support.sample_instances import Agent, eventually, instance

pytestmark = pytest.mark.parametrize("etcd_binary", VERSIONS[:2], indirect=True)


async def test_a_write_at_one_replica_is_visible_at_the_other(replicas: Replicas, etcd: SharedEtcd) -> None:
    one = await replicas.start([etcd.endpoint], etcd.prefix)
    two = await replicas.start([etcd.endpoint], etcd.prefix)
    async with one.stub() as writer, two.stub() as reader:
        created = await writer.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-1")))
        read = pb.ReadOptions(min_version=created.instance.meta.version)
        found = await reader.GetInstance(pb.GetInstanceRequest(id="a-1", read=read))
        assert found.instance == created.instance
        strong = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
        await writer.DeleteInstance(pb.DeleteInstanceRequest(id="a-1"))
        assert not (await reader.FindInstances(pb.FindInstancesRequest(read=strong))).instances


@pytest.mark.long
async def test_a_replica_killed_amid_a_thousand_writes_loses_none_that_was_acknowledged(
    replicas: Replicas, etcd: SharedEtcd
) -> None:
    doomed = await replicas.start([etcd.endpoint], etcd.prefix)
    other = await replicas.start([etcd.endpoint], etcd.prefix)
    acknowledged: dict[str, int] = {}
    async with doomed.stub() as stub, other.stub() as reader:

        async def create(number: int) -> None:
            request = pb.CreateInstanceRequest(instance=instance(f"i-{number}", text="x" * 200))
            answer = await stub.CreateInstance(request, timeout=20)
            acknowledged[answer.instance.meta.id] = answer.instance.meta.uid
            if len(acknowledged) == 300:
                await doomed.kill()

        results = await asyncio.gather(*(create(n) for n in range(1000)), return_exceptions=True)
        failed = [r for r in results if isinstance(r, grpc.aio.AioRpcError)]
        assert len(acknowledged) >= 300
        assert len(failed) == 1000 - len(acknowledged)
        strong = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
        stored: dict[str, int] = {}
        token = ""
        while True:
            page = await reader.FindInstances(pb.FindInstancesRequest(read=strong, page_token=token, page_size=400))
            stored.update((found.meta.id, found.meta.uid) for found in page.instances)
            token = page.next_page_token
            if not token:
                break
        assert acknowledged.items() <= stored.items()


@pytest.mark.long
async def test_sixty_four_concurrent_updates_raise_the_revision_by_at_most_eight(
    replicas: Replicas, etcd: SharedEtcd
) -> None:
    async with Proxy(etcd.endpoint) as way:
        replica = await replicas.start([way.endpoint], etcd.prefix)

        async def all_are_under_way() -> bool:
            _, metrics = await replica.get("/metrics")
            shown = re.search(r"^hq_calls_in_flight (\S+)$", metrics, re.MULTILINE)
            return shown is not None and float(shown[1]) >= 64

        async with replica.stub() as stub:
            ids = [f"i-{n}" for n in range(64)]
            await asyncio.gather(*(stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(i))) for i in ids))
            before = (await stub.FindInstances(pb.FindInstancesRequest())).sources[0].version
            changed = [instance(i, text="new") for i in ids]
            way.requests.stall()  # until they are concurrent, however slowly this machine sends them
            updates = [stub.UpdateInstance(pb.UpdateInstanceRequest(instance=c)) for c in changed]
            answering = asyncio.gather(*updates)
            await eventually(all_are_under_way, what="64 updates under way")
            way.heal()
            versions = {answer.instance.meta.version for answer in await answering}
            assert len(versions) <= 8
            assert max(versions) - before <= 8 + 2  # a fence or two may fall in between


@pytest.mark.long
async def test_each_heartbeat_heard_by_one_replica_is_shown_by_the_other(replicas: Replicas, etcd: SharedEtcd) -> None:
    one = await replicas.start([etcd.endpoint], etcd.prefix)
    two = await replicas.start([etcd.endpoint], etcd.prefix)
    async with one.stub() as stub, two.stub() as reader:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-1")))
        agent = Agent(stub, "a-1")
        await agent.begin()
        await agent.report()
        first = (await stub.GetInstance(pb.GetInstanceRequest(id="a-1"))).instance
        await asyncio.sleep(0.01)
        await agent.report()

        async def heard_later() -> bool:
            seen = (await reader.GetInstance(pb.GetInstanceRequest(id="a-1"))).instance
            newer = seen.status.heartbeat["r1"].ToNanoseconds() > first.status.heartbeat["r1"].ToNanoseconds()
            return newer and seen.meta.status_version == first.meta.status_version

        await eventually(heard_later, what="the heartbeat at the other replica, without a new status version")
