"""activate, rollback and status against a real replica over a real etcd."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.nanny.uploads import description, held_by, nanny, start, written
from tests.clients.process import ended
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import Agent

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


@pytest.mark.long
async def test_a_rollback_leaves_everything_but_targets_byte_for_byte(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path, "web.yaml", description(30, "v1", "v2", secrets=True))
    assert (await nanny("upload", "-f", file, server=replica.grpc)).code == 0
    later = (await held_by(client))["web-0007"]
    later.spec.revision[0].MergeFromString(b"\xfa\x7f\x05later")  # a field of a later API
    later.meta.annotations["theirs"] = "kept"
    await client.update(later)

    async def everything() -> dict[str, tuple[bytes, bytes, bytes]]:
        found = {}
        for one, instance in (await held_by(client)).items():
            fetched = await client.get_revision(one, node=instance.spec.node_name)
            secrets = b"".join(r.secret[0].SerializeToString() for r in fetched.revision)
            for revision in instance.spec.revision:
                revision.ClearField("target")
            for name in ("version", "modification_time"):
                instance.meta.ClearField(name)
            found[one] = (
                instance.meta.SerializeToString(deterministic=True),
                instance.spec.SerializeToString(deterministic=True),
                secrets,
            )
        return found

    async def ready() -> set[str]:
        wanted = model.REVISION_TARGET_READY
        return {r.id for i in (await held_by(client)).values() for r in i.spec.revision if r.target == wanted}

    before = await everything()
    assert b"later" in before["web-0007"][1]
    done = await nanny("rollback", "-f", file, server=replica.grpc)
    assert done.code == 0, done.err
    assert await ready() == {"v1"}
    assert await everything() == before
    assert (await nanny("activate", "v2", "--service", "web", server=replica.grpc)).code == 0
    assert await ready() == {"v2"}
    assert await everything() == before


@pytest.mark.long
async def test_nothing_is_switched_where_one_instance_lacks_the_revision(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path, "web.yaml", description(3, "v1", "v2"))
    assert (await nanny("upload", "-f", file, server=replica.grpc)).code == 0
    await client.delete_revision("web-0001", "v1")
    before = await held_by(client)
    done = await nanny("activate", "v1", "--service", "web", server=replica.grpc)
    assert done.code == 1
    assert "web-0001: refused: has no revision v1: upload it first" in done.err
    assert await held_by(client) == before
    partial = await nanny("activate", "v1", "--service", "web", "--partial", server=replica.grpc)
    assert partial.code == 1
    assert partial.out.splitlines()[-1] == "default: 2 updated, 1 refused"


@pytest.mark.long
async def test_status_waits_for_the_agents_and_names_the_slow(
    replica: ReplicaProcess, client: Client, tmp_path: Path
) -> None:
    file = written(tmp_path, "web.yaml", description(2, "v1"))
    assert (await nanny("upload", "-f", file, server=replica.grpc)).code == 0
    async with replica.stub() as stub:
        agents = [Agent(stub, f"web-000{n}", "v1", f"node-{n}") for n in range(2)]
        for agent in agents:
            await agent.begin()
        await agents[0].report()
        await agents[1].report(ready=False, message="the port is taken")
        late = await nanny("status", "-f", file, server=replica.grpc)
        assert late.code == 8
        assert "v1        READY   2          2          1      1" in late.out
        assert "web-0001 on node-1: v1: not ready: the port is taken" in late.out
        waiting = await start("status", "-f", file, "--wait", "60s", "-o", "json", server=replica.grpc)
        await asyncio.sleep(0.5)
        await agents[1].report()
        done = await ended(waiting)
    assert done.code == 0, done.out
    assert json.loads(done.out)["installations"][0]["services"][0]["done"] is True
