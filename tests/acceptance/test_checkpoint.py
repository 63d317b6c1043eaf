"""A replica that stopped in order goes on from its checkpoint, and shows the same as one that read everything."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import Agent, eventually, instance
from tests.support.watch_follower import Watching

STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


async def everything(replica: ReplicaProcess) -> list[model.Instance]:
    """All instances as they are now."""
    async with replica.stub() as stub:
        answer = await stub.FindInstances(pb.FindInstancesRequest(read=STRONG))
    return list(answer.instances)


@pytest.mark.long
async def test_a_restart_reads_what_changed_since_the_checkpoint_which_holds_no_secrets(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    first = await replicas.start([etcd.endpoint], etcd.prefix, "--state-dir", str(tmp_path))
    other = await replicas.start([etcd.endpoint], etcd.prefix)
    made = instance("i-0")
    made.spec.revision[0].secret.add(name="db", provider="vault", id="kept-nowhere-else", environment_variable="DB")
    async with first.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=made))
        for number in range(1, 20):
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(f"i-{number}")))
        agents = [Agent(stub, f"i-{number}") for number in range(10)]
        for agent in agents:
            await agent.begin()
            await agent.report()
            await agent.report()
        watch = Watching(stub.WatchInstances(pb.WatchInstancesRequest()))
        await eventually(lambda: watch.synced, what="a synced watch")
        await agents[0].report(message="the last thing that the watch sees")
    assert await first.terminate() == 0
    await watch.end()
    assert b"i-0" in path.read_bytes()
    assert b"kept-nowhere-else" not in path.read_bytes()
    async with other.stub() as stub:
        await stub.DeleteInstance(pb.DeleteInstanceRequest(id="i-19"))
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("j-1")))
        agent = Agent(stub, "i-12")
        await agent.begin()
        await agent.report()
    again = await replicas.start([etcd.endpoint], etcd.prefix, "--state-dir", str(tmp_path))
    assert "read a checkpoint of" in again.log_text()
    assert await everything(again) == await everything(other)
    assert len(await everything(again)) == 20
    async with again.stub() as stub:
        resumed = Watching(stub.WatchInstances(pb.WatchInstancesRequest(resume_token=watch.token)))
        await eventually(lambda: resumed.synced, what="the watch goes on")
        assert not {pb.WATCH_KIND_RESYNC, pb.WATCH_KIND_SNAPSHOT} & set(resumed.kinds())
        await resumed.end()
        found = await stub.GetRevision(pb.GetRevisionRequest(instance_id="i-0"))
    assert found.revision[0].secret == made.spec.revision[0].secret


@pytest.mark.long
async def test_after_a_crash_the_checkpoint_is_still_there_and_if_history_is_compacted_everything_is_read(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path
) -> None:
    path = tmp_path / "checkpoint"
    flags = "--compact-every", "1s", "--state-dir", str(tmp_path)
    replica = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    async with replica.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("i-0")))
    assert await replica.terminate() == 0
    second = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    async with second.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("i-1")))
    await second.kill()
    assert path.exists()
    other = await replicas.start([etcd.endpoint], etcd.prefix, "--compact-every", "1s")

    async def is_compacted() -> bool:
        found = re.search(r"^hq_compactions_total (\d+)", (await other.get("/metrics"))[1], re.MULTILINE)
        return found is not None and int(found[1]) >= 3

    await eventually(is_compacted, what="history given up")
    third = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    assert re.search(r"reading everything, not the checkpoint of the last stop: it is too old", third.log_text())
    assert [one.meta.id for one in await everything(third)] == ["i-0", "i-1"]
