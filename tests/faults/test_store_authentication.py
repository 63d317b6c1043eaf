"""etcd's authentication is switched on and off under replicas with work: they go on, or say which flags are missing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.clients.process import hqctl
from tests.support.etcd import OwnCluster
from tests.support.etcd_users import PASSWORD, USER, forget_users, require_password, require_password_again
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import Agent, eventually, instance

STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
SOME = 20
_CALL_S = 20.0  # a busy machine that exceeds it says so itself, and not what etcd said
_PATIENCE_S = 60.0


class Load:
    """Updates one instance and reports another one at a replica, one call after the other.

    Attributes:
        acknowledged: numbers of the updates that were. refused: what was said of those that were not.
    """

    def __init__(self, replica: ReplicaProcess, name: str) -> None:
        self._replica, self._name = replica, name
        self.acknowledged: list[int] = []
        self.refused: list[str] = []

    async def run(self) -> None:
        async with self._replica.stub() as stub:
            for name in (self._name, f"{self._name}-agent"):
                await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(name)))
            agent = Agent(stub, f"{self._name}-agent")
            await agent.begin()
            number = 0
            while True:
                number += 1
                meta = model.InstanceMeta(id=self._name, annotations={"number": str(number)})
                request = pb.UpdateInstanceRequest(instance=model.Instance(meta=meta))
                request.update_mask.paths.append("meta.annotations")
                try:
                    await stub.UpdateInstance(request, timeout=_CALL_S)
                    await agent.report(message=str(number))
                    self.acknowledged.append(number)
                except grpc.aio.AioRpcError as error:
                    self.refused.append(error.details() or "")

    async def goes_on(self, what: str) -> None:
        done = len(self.acknowledged)
        await eventually(lambda: len(self.acknowledged) >= done + SOME, _PATIENCE_S, what)


async def problems(replica: ReplicaProcess) -> str:
    return " ".join((await hqctl(replica.grpc, "status")).out.split())


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_authentication_is_switched_on_and_off_under_load(
    replicas: Replicas, etcd_cluster: OwnCluster, tmp_path: Path
) -> None:
    cluster = await etcd_cluster(3)
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    flags = ("--etcd-user", USER, "--etcd-password-file", str(password))
    knows = await replicas.start(cluster.endpoints, "/hq/v1/", *flags)
    stranger = await replicas.start(cluster.endpoints, "/hq/v1/")
    loads = [Load(knows, "a"), Load(stranger, "b")]
    tasks = [asyncio.create_task(load.run()) for load in loads]
    try:
        for load in loads:
            await load.goes_on("both replicas write while authentication is off")
        for require in (require_password, require_password_again):
            await asyncio.to_thread(require, cluster.endpoints[0])
            await loads[0].goes_on("the replica with a user writes while authentication is on")

            async def explained() -> bool:
                return "--etcd-user and --etcd-password-file" in await problems(stranger)

            await eventually(explained, _PATIENCE_S, "the replica without a user says which flags are missing")
            assert "--etcd-user" not in await problems(knows)
            await asyncio.to_thread(forget_users, cluster.endpoints[0])
            for load in loads:
                await load.goes_on("both write again")
        async with stranger.stub() as stub:
            for load in loads:
                newest = load.acknowledged[-1]
                found = await stub.FindInstances(pb.FindInstancesRequest(read=STRONG))
                (stored,) = (one for one in found.instances if one.meta.id == load._name)
                assert int(stored.meta.annotations["number"]) >= newest
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [one for one in results if not isinstance(one, asyncio.CancelledError)] == []
    assert loads[0].refused == [] or all("etcd" in said for said in loads[0].refused)
    assert any("--etcd-user" in said for said in loads[1].refused)
