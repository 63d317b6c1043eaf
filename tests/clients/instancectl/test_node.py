"""The agent of a node and a real HQ: what HQ places there runs, and a fault of one instance stays its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.clients.instancectl.conftest import NewNode
from tests.clients.instancectl.hearsay import told, until_ready
from tests.clients.instancectl.host_agents import calls, ready
from tests.clients.instancectl.supervised import NODE, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually


async def test_what_hq_places_on_the_node_runs_and_disappears_with_its_deletion(
    new_node: NewNode, client: Client, hq: ReplicaProcess
) -> None:
    await client.create(instance(revision("r1"), instance_id="i-1"))
    node = await new_node().start()
    await until_ready(client, instance_id="i-1")
    await client.create(instance(revision("r1"), instance_id="i-2"))
    await until_ready(client, instance_id="i-2")
    pids = [await node.container_pid(each) for each in ("i-1", "i-2")]
    assert all(map(is_alive, pids))
    await client.delete("i-1")
    await eventually(lambda: not (node.directory / "i-1").exists())
    assert [is_alive(pid) for pid in pids] == [False, True]
    assert [each["id"] for each in (await node.status())["instances"]] == ["i-2"]
    assert await ready(client, "i-2")
    assert await calls(hq, "ReportStatus") == 0  # all reports are batches


@pytest.mark.long
async def test_a_fault_in_one_instance_ends_at_that_instance(
    new_node: NewNode, client: Client, hq: ReplicaProcess
) -> None:
    node = new_node()
    damaged = node.directory / "i-1" / "state.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    await client.create(instance(revision("r1"), instance_id="i-1"))
    broken = revision("r1")
    broken.file.add(name="app", url="file:///nowhere")
    await client.create(instance(broken, instance_id="i-2"))
    await client.create(instance(revision("r1"), instance_id="i-3"))
    await node.start()
    await until_ready(client, instance_id="i-3")
    assert "is damaged" in (await node.instance("i-1"))["trouble"]
    assert " i-1: not supervised: " in node.log_text()
    await eventually(lambda: " i-2: revision r1 is not installed: " in node.log_text())
    damaged.write_text(json.dumps({"owner": "x1", "belongs_to": ["", ""], "installed": [], "children": []}))
    await until_ready(client, instance_id="i-1")
    status = (await node.instance("i-2"))["revisions"][0]["status"]
    assert status["installed"]["reason"] == "SchemeUnsupported"


@pytest.mark.long
@pytest.mark.parametrize("on_stop", ["leave", "stop"])
async def test_at_sigterm_instances_are_left_running_or_stopped_as_asked(
    new_node: NewNode, client: Client, on_stop: str
) -> None:
    await client.create(instance(revision("r1")))
    node = await new_node("--on-stop", on_stop).start()
    await until_ready(client)
    pid = await node.container_pid("i-1")
    assert await node.terminate() == 0
    assert is_alive(pid) == (on_stop == "leave")
    assert await ready(client, "i-1") == (on_stop == "leave")
    await node.start()
    if on_stop == "leave":
        assert await node.container_pid("i-1") == pid
    await until_ready(client)


@pytest.mark.long
async def test_a_node_has_one_agent(new_node: NewNode, tmp_path: Path) -> None:
    node = await new_node().start()
    await eventually(node.status)
    first, second = new_node("-v"), new_node("--dir", str(tmp_path / "other"))
    for each in (first, second):
        await each.start()
        assert await each.wait() == 1
    assert f"node {NODE} has an agent already" in first.log_text()


@pytest.mark.long
async def test_a_specification_is_acknowledged_once_what_runs_was_started_from_it(
    new_node: NewNode, client: Client
) -> None:
    slow = revision("r1")
    slow.container[0].drain_period.FromSeconds(2)
    made = instance(slow)
    made.spec.allocation.memory_bytes = 1 << 30
    await client.create(made)
    node = await new_node().start()
    await until_ready(client)
    pid = await node.container_pid("i-1")
    wider = await change_allocation(client, network_bytes_per_second=5)  # restarts nothing
    await eventually(lambda: acknowledges(client, wider))
    assert await node.container_pid("i-1") == pid
    smaller = await change_allocation(client, memory_bytes=1 << 29)
    versions = set()
    async with asyncio.timeout(60):
        while (seen := (await told(client)).spec_version) != smaller:
            versions.add(seen)
    assert versions == {wider}
    assert not is_alive(pid)


async def change_allocation(client: Client, **fields: int) -> int:
    """The version of the specification with another allocation."""
    found = (await client.get("i-1")).instance
    for name, value in fields.items():
        setattr(found.spec.allocation, name, value)
    return (await client.update(found, fields=["spec.allocation"])).instance.meta.version


async def acknowledges(client: Client, version: int) -> bool:
    return (await told(client)).spec_version == version
