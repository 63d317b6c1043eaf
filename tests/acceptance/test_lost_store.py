"""An etcd that comes back empty looks healthy. Nobody believes that all is gone until an operator says so."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest

from hqclient.client import Client
from hqclient.discovery import Discovery, Service
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from store.embedded import EmbeddedEtcd
from tests.acceptance.test_backup import hq
from tests.clients.process import hqctl
from tests.support.errors import reason_of
from tests.support.etcd import OwnEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.reserved_port import kept_addresses, kept_ports
from tests.support.sample_instances import Agent, eventually, instance
from tests.support.watch_follower import Watching

pytestmark = [pytest.mark.timeout(240), pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)]
IDS = ["web-1", "web-2", "web-3"]


def web(instance_id: str) -> model.Instance:
    made = instance(instance_id, "web")
    made.spec.allocation.port.add(name="http", number=80)
    return made


async def fill(replica: ReplicaProcess) -> None:
    """Three instances that are ready."""
    async with replica.stub() as stub:
        for instance_id in IDS:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=web(instance_id)))
            agent = Agent(stub, instance_id)
            await agent.begin()
            await agent.report()


async def lose(etcd: EmbeddedEtcd) -> None:
    """The same etcd, on a new directory."""
    await etcd.kill()
    shutil.rmtree(etcd.data_dir / "etcd")
    await etcd.start()


def ids(service: Service) -> list[str]:
    return [endpoint.instance_id for endpoint in service.endpoints]


async def metric(replica: ReplicaProcess, name: str) -> str:
    _, text = await replica.get("/metrics")
    return next(line.split()[1] for line in text.splitlines() if line.startswith(f"{name} "))


async def says_of_trust(replica: ReplicaProcess, status: int) -> bool:
    return (await replica.get("/readyz?trusted"))[0] == status


@asynccontextmanager
async def following(replicas: list[ReplicaProcess], directory: Path | None = None) -> AsyncIterator[Service]:
    found = Discovery([replica.grpc for replica in replicas], state_dir=directory)
    async with found.service("web", port="http") as service:
        yield service


@pytest.fixture
async def etcd_of_own(own_etcd: OwnEtcd) -> EmbeddedEtcd:
    ports = kept_ports()
    return await own_etcd(ports=lambda: ports)


@pytest.mark.long
async def test_a_store_that_comes_back_empty_is_doubted_by_everybody_until_an_operator_confirms_it(
    replicas: Replicas, etcd_of_own: EmbeddedEtcd
) -> None:
    etcd = etcd_of_own
    first, second = [await replicas.start([etcd.endpoint]) for _ in range(2)]
    async with AsyncExitStack() as stack:
        await fill(first)
        service = await stack.enter_async_context(following([first, second]))
        await service.ready(at_least=3, live=True)
        stub = await stack.enter_async_context(second.stub())
        watch = Watching(stub.WatchInstances(pb.WatchInstancesRequest()))
        await eventually(lambda: watch.holds(set(IDS)))
        assert (await first.get("/readyz?trusted"))[0] == 200

        await lose(etcd)
        await eventually(lambda: service.doubt, what="discovery has seen the empty store")
        assert ids(service) == IDS
        assert service.stale
        # A raw watch shows what is there, and that it is doubted.
        await eventually(lambda: watch.holds(set()))
        assert watch.messages[-1].sources[0].trust == pb.EPOCH_TRUST_DOUBTED
        # A replica that never knew the old store doubts, too: it is written in the new one.
        third = await replicas.start([etcd.endpoint])
        for replica in (first, second, third):
            # Each follows the store on its own: the others may have said it before it is connected again.
            await eventually(partial(says_of_trust, replica, 503), what="it has seen the empty store")
            status, text = await replica.get("/readyz?trusted")
            assert (status, "holds 0 instances (0 ready), previously 3 (3 ready)" in text) == (503, True)
            assert (await replica.get("/readyz"))[0] == 200
            assert await metric(replica, "hq_epoch_doubted") == "1.0"
            assert (await replica.get("/sd/prometheus?service=web&port=http"))[0] == 503
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.FindInstances(pb.FindInstancesRequest(read=pb.ReadOptions(require_trusted=True)))
        assert reason_of(refused.value) == "EPOCH_DOUBTED"
        told = await hqctl(second.grpc, "status")
        assert (told.code, "default may have lost its instances" in told.out) == (1, True), told
        assert ids(service) == IDS

        said = await hqctl(second.grpc, "epoch", "confirm", "--reason", "a new beginning", "--by", "ann")
        assert (said.code, "Confirmed by ann" in said.out) == (0, True), said
        await eventually(lambda: not service.endpoints, what="discovery believes it")
        await eventually(lambda: not service.stale)
        for replica in (first, second, third):
            await eventually(partial(says_of_trust, replica, 200), what="it has seen the confirmation")
        assert await metric(third, "hq_epoch_doubted") == "0.0"
        assert (await hqctl(second.grpc, "status")).code == 0
        await watch.end()


@pytest.mark.long
async def test_discovery_does_not_believe_an_empty_store_even_after_every_replica_was_restarted(
    replicas: Replicas, etcd_of_own: EmbeddedEtcd, tmp_path: Path
) -> None:
    etcd, addresses = etcd_of_own, kept_addresses()
    replica = await replicas.start([etcd.endpoint], "/hq/v1/", *addresses)
    await fill(replica)
    async with following([replica], tmp_path / "state") as service:
        await service.ready(at_least=3, live=True)
        await replica.kill()
        await lose(etcd)
        replica = await replicas.start([etcd.endpoint], "/hq/v1/", *addresses)
        await eventually(lambda: service.doubt, what="it has seen the empty store")
        assert ids(service) == IDS
    # Nor does a process that was started meanwhile and has the file only.
    async with following([replica], tmp_path / "state") as service:
        await eventually(lambda: service.doubt, what="it has seen the empty store")
        assert ids(service) == IDS
        async with Client([replica.grpc]) as client:
            epoch = (await client.admin.get_epoch()).state.epoch
            await client.admin.confirm_epoch(epoch, by="ann", reason="a new beginning")
        await eventually(lambda: not service.endpoints, what="discovery believes it")


@pytest.mark.long
async def test_a_restored_backup_is_believed_however_little_it_holds(
    replicas: Replicas, etcd_of_own: EmbeddedEtcd, tmp_path: Path
) -> None:
    etcd, backup = etcd_of_own, tmp_path / "backup"
    replica = await replicas.start([etcd.endpoint])
    async with replica.stub() as stub, following([replica]) as service:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=web("web-0")))
        assert (await hq("backup", "--etcd", etcd.endpoint, str(backup)))[0] == 0
        await fill(replica)
        await service.ready(at_least=3, live=True)
        await lose(etcd)
        await eventually(lambda: service.doubt)
        code, _, said = await hq("restore", "--etcd", etcd.endpoint, str(backup))
        assert code == 0, said
        await eventually(lambda: not service.endpoints, what="what was restored is believed")
        answer = await stub.FindInstances(pb.FindInstancesRequest())
        assert [found.meta.id for found in answer.instances] == ["web-0"]
        assert answer.sources[0].trust == pb.EPOCH_TRUST_CONFIRMED


@pytest.mark.long
async def test_once_most_agents_report_an_epoch_is_trusted_and_the_trust_is_stored(
    replicas: Replicas, etcd_of_own: EmbeddedEtcd
) -> None:
    etcd = etcd_of_own
    replica = await replicas.start([etcd.endpoint])
    await fill(replica)
    async with replica.stub() as stub, following([replica]) as service:
        await service.ready(at_least=3, live=True)
        await lose(etcd)
        await eventually(lambda: service.doubt)
        for instance_id in IDS[:2]:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=web(instance_id)))
            assert ids(service) == IDS
            agent = Agent(stub, instance_id)
            await agent.begin()
            await agent.report()
        await eventually(lambda: ids(service) == IDS[:2], what="two of three are believed")
        for instance_id in IDS[:2]:
            await stub.DeleteInstance(pb.DeleteInstanceRequest(id=instance_id))
        await eventually(lambda: not service.endpoints, what="a deletion in the same epoch is believed at once")
        assert (service.doubt, (await replica.get("/readyz?trusted"))[0]) == ("", 200)
