"""From supervisors of single instances to one agent of the node, and back: no restart, no change of readiness."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.clients.instancectl.conftest import NewNode, StartHq
from tests.clients.instancectl.hearsay import TRUE, statuses, told, watched
from tests.clients.instancectl.host_agents import host_agent, ready
from tests.clients.instancectl.node_agents import NodeProcess
from tests.clients.instancectl.supervised import NODE, Ctl, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]  # a Python process for each instance, twice


@pytest.fixture
async def hq(start_hq: StartHq) -> ReplicaProcess:
    """One that waits for as long as it takes to start so many on a busy machine."""
    return await start_hq("--liveness-timeout", "120s")


@asynccontextmanager
async def supervisors(directory: Path, socket: Path, ids: list[str]) -> AsyncIterator[list[Ctl]]:
    """An `instancectl run` for each instance, as the unit `instancectl@.service` starts it; they end by SIGKILL."""
    made = [Ctl(directory / each, "--instance", each, "--node", NODE, "--host-agent", str(socket)) for each in ids]
    try:
        await asyncio.gather(*(ctl.start() for ctl in made))
        yield made
    finally:
        await asyncio.gather(*(ctl.kill() for ctl in made))


async def until_reported_anew(client: Client, before: dict[str, int]) -> None:
    """Others report all of these instances than at `before`."""

    async def is_new() -> bool:
        found = [await told(client, instance_id=each) for each in before]
        return all(one.incarnation != was and one.sequence > 0 for one, was in zip(found, before.values(), strict=True))

    await eventually(is_new, 120.0, "everything reported by who came after")


async def incarnations(client: Client, ids: list[str]) -> dict[str, int]:
    return {each: (await told(client, instance_id=each)).incarnation for each in ids}


async def pids_of(ctls: list[Ctl]) -> list[int]:
    for ctl in ctls:
        await ctl.until("r1", "ready")
    return [await ctl.container_pid() for ctl in ctls]


@pytest.mark.parametrize("count", [2, 20])
async def test_a_node_moves_to_one_agent_and_back_and_nobody_notices(
    new_node: NewNode, client: Client, hq: ReplicaProcess, count: int
) -> None:
    node: NodeProcess = new_node()
    node.directory.mkdir()
    socket = node.directory.with_name("agent.sock")
    ids = [f"i-{number}" for number in range(count)]
    for each in ids:
        wanted = revision("r1")
        wanted.container[0].readiness_check.exec.command[:] = ["true"]
        wanted.container[0].readiness_check.timeout.FromSeconds(20)
        await client.create(instance(wanted, instance_id=each))
    async with host_agent(hq, socket), supervisors(node.directory, socket, ids) as ctls:
        await eventually(lambda: ready(client, *ids), 120.0, "all ready")
        pids = await pids_of(ctls)
        before = await incarnations(client, ids)
    async with watched(client) as seen:  # who is killed says nothing
        await node.start()
        await until_reported_anew(client, before)
        assert [await node.container_pid(each) for each in ids] == pids
        before = await incarnations(client, ids)
        assert await node.terminate() == 0  # and the way back
        async with host_agent(hq, socket), supervisors(node.directory, socket, ids) as ctls:
            await until_reported_anew(client, before)
            assert await pids_of(ctls) == pids
            restarts = [(await ctl.container()).get("restartCount", 0) for ctl in ctls]
    assert restarts == [0] * count
    assert {status.ready.status for status in statuses(seen)} == {TRUE}
    assert all(map(is_alive, pids))
