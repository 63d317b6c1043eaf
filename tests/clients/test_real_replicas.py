"""The client and hqctl against real replicas over a real etcd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hqclient.client import Client, HqApiError
from hqclient.watch_items import Changes, Interrupted, Resync, SnapshotPart, Synced
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.clients.fake_hq import instance
from tests.clients.process import hqctl
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas

YES = instance_pb2.Condition(status=instance_pb2.CONDITION_STATUS_TRUE, reason="Serving")


@pytest.fixture
async def two(etcd: SharedEtcd, tmp_path: Path) -> AsyncIterator[list[ReplicaProcess]]:
    async with Replicas(tmp_path) as replicas:
        yield [await replicas.start([etcd.endpoint], etcd.prefix) for _ in range(2)]


def preferred(client: Client, two: list[ReplicaProcess]) -> ReplicaProcess:
    return next(r for r in two if r.grpc == client._pool.pick().address)


def web(instance_id: str) -> instance_pb2.Instance:
    made = instance(instance_id)
    made.spec.revision.add(id="v1", target=instance_pb2.REVISION_TARGET_READY)
    return made


@pytest.mark.long
async def test_writes_reads_and_a_watch_survive_the_loss_of_a_replica(two: list[ReplicaProcess]) -> None:
    async with Client([r.grpc for r in two], read_your_writes=True) as client, asyncio.timeout(60):
        await client.create(web("web-1"))
        async with client.watch(pb.InstanceFilter(service_id=["web"])) as items:
            assert [type(await anext(items)) for _ in range(2)] == [SnapshotPart, Synced]
            await preferred(client, two).kill()
            # A write over the dying connection would have an unknown outcome; a read is simply repeated elsewhere.
            assert (await client.get("web-1")).instance.meta.id == "web-1"
            created = await client.apply([web("web-2")])
            assert created.result[0].outcome == pb.APPLY_OUTCOME_CREATED
            assert (await client.get("web-2")).instance.meta.version == created.result[0].version
            seen = []
            async for item in items:
                assert not isinstance(item, Resync | SnapshotPart), "the story was broken"
                if isinstance(item, Changes):
                    seen += [event.put.meta.id for event in item.events]
                if "web-2" in seen:
                    break
            assert seen == ["web-2"]


@pytest.mark.long
async def test_a_watch_tells_a_lost_replica_before_it_goes_on(two: list[ReplicaProcess]) -> None:
    async with Client([r.grpc for r in two]) as client, client.watch() as items, asyncio.timeout(60):
        assert isinstance(await anext(items), Synced)
        assert await preferred(client, two).terminate() == 0
        async for item in items:
            if isinstance(item, Interrupted):
                break
        assert isinstance(await anext(items), Interrupted | Synced)


@pytest.mark.long
async def test_conflicts_and_fences_are_told_with_their_details(two: list[ReplicaProcess]) -> None:
    async with Client([two[0].grpc]) as client:
        created = (await client.create(web("web-1"))).instance
        with pytest.raises(HqApiError) as conflict:
            await client.delete("web-1", version=created.meta.version - 1)
        assert (conflict.value.reason, conflict.value.current_version) == ("VERSION_CONFLICT", created.meta.version)
        first = await client.begin_reporting("web-1", "v1", node="node-1")
        await client.begin_reporting("web-1", "v1", node="node-1")
        status = instance_pb2.RevisionStatus(id="v1", ready=YES, incarnation=first.incarnation, sequence=1)
        with pytest.raises(HqApiError) as fenced:
            await client.report("web-1", status, uid=first.uid, node="node-1")
        assert (fenced.value.reason, fenced.value.outcome_unknown) == ("FENCED", False)
        with pytest.raises(HqApiError) as faulty:
            await client.create(web("no spaces please"))
        assert [v.field for v in faulty.value.violations] == ["instance.meta.id"]


@pytest.mark.long
async def test_an_operators_day_with_hqctl(two: list[ReplicaProcess]) -> None:
    async def done(*arguments: str, stdin: str = "", code: int = 0) -> str:
        outcome = await hqctl(two[0].grpc, *arguments, stdin=stdin)
        assert outcome.code == code, outcome.err
        return outcome.out + outcome.err

    document = "{meta: {id: web-1, serviceId: web}, spec: {nodeName: n1, revision: [{id: v1, target: %s}]}}"
    assert "created" in await done("apply", "-f", "-", stdin=document % "REVISION_TARGET_READY")
    assert "unchanged" in await done("apply", "-f", "-", stdin=document % "REVISION_TARGET_READY")
    assert "from n1 as installed, ready" in await done("report", "web-1", "v1", "--ready")
    assert (await done("find", "web", "--strong")).splitlines()[1].split()[:5] == ["web-1", "web", "n1", "yes", "v1"]
    assert (await done("why", "web-1")).startswith("web-1 has been READY since")
    assert (await done("count", "--by", "node", "--strong")).splitlines()[1].split() == ["n1", "1", "1", "0", "0"]
    assert "ot holding" in await done("guard", "status")
    assert "Forced" in await done("guard", "force", "--for", "10m", "--reason", "test")
    assert "Released" in await done("guard", "release", "--for", "1m", "--reason", "test")
    assert "STORE-MEMBER" in await done("status")
    assert "is suspended until" in await done("suspend", "n1", "--for", "1h", "--reason", "disks")
    assert "no longer suspended" in await done("resume", "n1")
    assert "Nothing is in quarantine" in await done("quarantine")
    assert await done("delete", "web-1") == "web-1 deleted\n"
    assert "there is no instance" in await done("get", "web-1", "--strong", code=3)
