"""What stops was not ready before: clients that follow discovery have left it."""

from __future__ import annotations

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import NewCtl
from tests.clients.instancectl.hearsay import FALSE, told, until_not_ready, until_ready
from tests.clients.instancectl.supervised import NODE, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually


def drained(revision_id: str, drain_ms: int) -> model.InstanceRevision:
    made = revision(revision_id)
    made.container[0].drain_period.FromMilliseconds(drain_ms)
    return made


@pytest.mark.long
async def test_a_revision_is_not_ready_in_hq_while_it_still_runs_and_stops_after_the_drain_period(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    await client.create(instance(drained("r1", 3000), revision("r2", ready=False)))
    ctl = await new_ctl("ctl", "--instance", "i-1", "--node", NODE, "--server", hq.grpc).start()
    await until_ready(client, "r1")
    pid = await ctl.container_pid("r1")
    await client.put_revision("i-1", revision("r2"))
    await until_not_ready(client, "Stopping", "r1")
    assert is_alive(pid)
    await until_ready(client, "r2")
    assert not is_alive(pid)


@pytest.mark.long
async def test_a_container_that_is_replaced_in_place_drains_too(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    await client.create(instance(drained("r1", 3000)))
    ctl = await new_ctl("ctl", "--instance", "i-1", "--node", NODE, "--server", hq.grpc).start()
    await until_ready(client, "r1")
    pid = await ctl.container_pid("r1")
    changed = drained("r1", 3000)
    changed.container[0].environment["LOUD"] = "1"
    await client.put_revision("i-1", changed)
    await until_not_ready(client, "ContainerNotReady", "r1")
    assert is_alive(pid)
    await until_ready(client, "r1")
    assert not is_alive(pid)


@pytest.mark.long
async def test_a_revision_that_should_be_created_only_is_removed_from_the_node(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    await client.create(instance(revision("r1"), revision("r2", ready=False)))
    ctl = await new_ctl("ctl", "--instance", "i-1", "--node", NODE, "--server", hq.grpc).start()
    await until_ready(client, "r1")
    await ctl.until("r2", "installed")
    created = revision("r2")
    created.target = model.REVISION_TARGET_CREATED
    await client.put_revision("i-1", created)

    async def is_created() -> bool:
        installed = (await told(client, "r2")).installed
        return (installed.status, installed.reason) == (FALSE, "Created")

    await eventually(is_created)
    assert [path.name for path in (ctl.directory / "revisions").iterdir() if path.name.startswith("r2")] == []
