"""A replica of the last release and one of this version over one store, in both orders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from hqpb.v1 import admin_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.releases.conftest import Versions
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import Agent, eventually, instance
from tests.support.watch_follower import Watching

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)


@asynccontextmanager
async def replicas(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path, *flags: str
) -> AsyncIterator[list[ReplicaProcess]]:
    """One of each version, not started yet."""
    both = [
        ReplicaProcess([etcd.endpoint], etcd.prefix, tmp_path / f"replica-{number}.log", flags, root=root)
        for number, root in enumerate(versions)
    ]
    async with AsyncExitStack() as stack:
        for replica in both:
            stack.push_async_callback(replica.kill)
        yield both


async def everything(replica: ReplicaProcess) -> dict[str, model.Instance]:
    """All that it shows and the other version knows, too; without times of heartbeats, which each hears itself."""
    async with replica.stub() as stub:
        answer = await stub.FindInstances(pb.FindInstancesRequest(read=STRONG))
    for each in answer.instances:
        for field in ("agent", "last_heartbeat_time", "heartbeat"):
            each.status.ClearField(field)
    return {each.meta.id: each for each in answer.instances}


def shows(watch: Watching, instance_id: str) -> bool:
    return instance_id in watch.known


async def fill(replica: ReplicaProcess) -> None:
    """Something of each kind that HQ stores."""
    async with replica.stub() as stub, replica.admin() as admin:
        secret = instance("with-secret", revisions=("r1", "r2"))
        secret.meta.labels["tier"] = "front"
        secret.spec.allocation.port.add(name="http", number=80)
        secret.spec.revision[0].secret.add(name="db", provider="vault", id="svc/db", environment_variable="DB")
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=secret))
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("silent")))
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("reported")))
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("deleted")))
        await stub.DeleteInstance(pb.DeleteInstanceRequest(id="deleted"))
        for id_ in ("with-secret", "reported"):
            agent = Agent(stub, id_)
            await agent.begin()
            await agent.report(message=f"of {id_}")
        suspension = admin_pb2.SuspendNodeRequest(node_name="node-9", reason="planned work", by="somebody")
        suspension.duration.FromSeconds(3600)
        await admin.SuspendNode(suspension)


async def test_replicas_of_both_versions_show_the_same_and_act_on_each_others_writes(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with replicas(versions, etcd, tmp_path) as (first, second):
        await first.start()
        await fill(first)
        before = await everything(first)
        await second.start()
        assert await everything(second) == before == await everything(first)
        assert set(before) == {"with-secret", "silent", "reported"}
        async with first.stub() as one, second.stub() as two:
            request = pb.GetRevisionRequest(instance_id="with-secret", revision_id="r1", node="node-1")
            assert (await two.GetRevision(request)).revision[0].secret[0].id == "svc/db"
            async with second.admin() as admin:
                [suspension] = (await admin.ListSuspensions(admin_pb2.ListSuspensionsRequest())).suspensions
                assert suspension.node_name == "node-9"
            watch = Watching(one.WatchInstances(pb.WatchInstancesRequest()))
            await eventually(lambda: watch.holds(set(before)), 90.0, "a synced watch")
            agent = Agent(one, "reported")
            await agent.begin()
            for stub, message in ((two, "to the second"), (one, "to the first"), (two, "to the second again")):
                agent.stub = stub
                await agent.report(message=message)
                change = instance("silent", text=message)
                known = await stub.GetInstance(pb.GetInstanceRequest(id="silent", read=STRONG))
                change.meta.version = known.instance.meta.version
                await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=change))
            await two.CreateInstance(pb.CreateInstanceRequest(instance=instance("added")))
            await eventually(lambda: "added" in watch.known, 90.0, "what the second created, in a watch of the first")
            await watch.end()
            for stub, id_ in ((two, "i-1"), (one, "i-2"), (two, "i-3")):
                resumed = Watching(stub.WatchInstances(pb.WatchInstancesRequest(resume_token=watch.token)))
                await one.CreateInstance(pb.CreateInstanceRequest(instance=instance(id_)))
                await eventually(partial(shows, resumed, id_), 90.0, "a watch that moves")
                assert not {pb.WATCH_KIND_RESYNC, pb.WATCH_KIND_SNAPSHOT} & set(resumed.kinds())
                await resumed.end()
                watch = resumed
        assert await everything(first) == await everything(second)
        both = await everything(first)
        assert both["reported"].status.revision[0].ready.message == "to the second again"
        assert both["silent"].meta.annotations["text"] == "to the second again"
        assert "Traceback" not in first.log_text() + second.log_text()
