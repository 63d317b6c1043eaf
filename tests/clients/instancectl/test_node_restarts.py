"""The agent of a node ends and comes back, again and again: nobody who looks instances up notices."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.clients.instancectl.conftest import NewNode, StartHq
from tests.clients.instancectl.hearsay import TRUE, statuses, told, until_ready, watched
from tests.clients.instancectl.host_agents import ready
from tests.clients.instancectl.supervised import ROOT, free_port, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually
from tests.support.source_trees import source_tree

# The first whose agent of a node sends every state; the newest release, 0.1.0, has no such agent.
_OLDER: Final = "588d4eebc315b2230c848240b0dd2a8ef0884e80"
_PATIENCE_S: Final = 300.0


@pytest.fixture
async def hq(start_hq: StartHq) -> ReplicaProcess:
    """One that waits for as long as it takes to start an agent with so many on a busy machine."""
    return await start_hq("--liveness-timeout", "120s")


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The source tree of a version of before."""
    return source_tree(_OLDER, tmp_path / "older")


def web(port: int, period_ms: int) -> model.Instance:
    made = revision(script=f"exec python3 -m http.server {port} --bind 127.0.0.1")
    made.container[0].readiness_check.http.port = "http"
    made.container[0].readiness_check.period.FromMilliseconds(period_ms)
    made.container[0].readiness_check.timeout.FromMilliseconds(5000)
    return instance(made, instance_id=f"i-{port}", port=port)


@asynccontextmanager
async def lookups(client: Client) -> AsyncIterator[list[str]]:
    """Clients that look the service up and use what they find; yields what failed."""
    failed: list[str] = []

    async def ask() -> None:
        while True:
            pages = [page async for page in client.find(pb.InstanceFilter(service_id=["svc"]))]
            for each in [found for page in pages for found in page.instances]:
                if each.status.ready.status != TRUE:
                    failed.append(f"{each.meta.id} is not ready")
                try:
                    await _get(each.spec.allocation.port[0].number)
                except (OSError, asyncio.IncompleteReadError) as error:
                    failed.append(f"{each.meta.id}: {error!r}")

    task = asyncio.create_task(ask())
    try:
        yield failed
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def _get(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    try:
        assert (await reader.readuntil(b"\r\n")).split()[1] == b"200"
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "rounds"), [(4, 10), pytest.param(100, 50, marks=[pytest.mark.night, pytest.mark.timeout(3600)])]
)
async def test_an_agent_that_ends_again_and_again_changes_no_readiness_and_fails_no_request(
    new_node: NewNode, client: Client, older: Path, count: int, rounds: int
) -> None:
    wanted = [web(free_port(), 50 * count) for _ in range(count)]
    ids = [made.meta.id for made in wanted]
    for made in wanted:
        await client.create(made)
    node = await new_node().start()
    await eventually(lambda: ready(client, *ids), _PATIENCE_S, "all ready")
    pids = [await node.container_pid(each) for each in ids]
    async with watched(client) as seen, lookups(client) as failed:
        for number in range(rounds):
            before = [(await told(client, instance_id=each)).incarnation for each in ids]
            await (node.kill() if number % 2 else node.terminate())
            node.root = older if number // 2 % 2 == 0 else ROOT  # each way to end before each change of version
            await node.start()
            for each, incarnation in zip(ids, before, strict=True):
                await eventually(lambda each=each, was=incarnation: is_new(client, each, was), _PATIENCE_S)  # type: ignore[misc]
        assert {status.ready.status for status in statuses(seen)} == {TRUE}
        assert failed == []
    assert [await node.container_pid(each) for each in ids] == pids
    assert all(map(is_alive, pids))


async def is_new(client: Client, instance_id: str, incarnation: int) -> bool:
    """Whether another agent reports it."""
    found = await told(client, instance_id=instance_id)
    return found.incarnation != incarnation and found.sequence > 0


@pytest.mark.long
async def test_a_container_that_ended_for_good_is_not_started_again_but_an_interrupted_start_hook_is(
    new_node: NewNode, client: Client
) -> None:
    wanted = revision("r1")
    once = wanted.container.add(name="once", command=["sh", "-c", "echo ran; exit 0"])
    once.restart_policy = model.RESTART_POLICY_ON_FAILURE
    hook = "echo hook; if [ -e cut ]; then exit 0; fi; touch cut; exec sleep 600"
    wanted.container[0].post_start.command[:] = ["sh", "-c", hook]
    wanted.container[0].post_start.timeout.FromSeconds(600)
    await client.create(instance(wanted))
    node = await new_node().start()
    await eventually(lambda: any((node.directory / "i-1").glob("revisions/*/cut")))
    await eventually(lambda: '"ended": [\n' in (node.directory / "i-1" / "state.json").read_text())
    pid = await node.container_pid("i-1")
    await node.kill()
    await node.start()
    await until_ready(client)
    assert await node.container_pid("i-1") == pid
    assert node.container_log("i-1").count("hook\n") == 2
    assert node.container_log("i-1", container="once") == "ran\n"
    assert [c.state.terminated.reason for c in (await told(client)).container] == ["", "Completed"]
