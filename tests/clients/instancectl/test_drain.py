"""Before a container stops it is not ready, so clients have left; also if it changed while instancectl was away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import RunFile
from tests.clients.instancectl.hearsay import FALSE, told, until_not_ready, until_ready
from tests.clients.instancectl.supervised import Ctl, draining, instance, is_alive, revision
from tests.support.sample_instances import eventually


@asynccontextmanager
async def away(ctl: Ctl) -> AsyncIterator[None]:
    """Without instancectl; its containers run on."""
    await ctl.kill()
    yield
    await ctl.start()


async def run_both(run_from_hq: RunFile, client: Client, r1: model.InstanceRevision) -> Ctl:
    """An instancectl with r1 ready and r2 installed."""
    ctl = await run_from_hq(instance(r1, revision("r2", ready=False)))
    await until_ready(client, "r1")
    await ctl.until("r2", "installed")
    return ctl


async def give_way(client: Client) -> None:
    await client.put_revision("i-1", revision("r2"))


async def drop(client: Client) -> None:
    await client.put_revision("i-1", revision("r2"))
    await client.delete_revision("i-1", "r1")


async def change_container(client: Client) -> None:
    changed = draining("r1")
    changed.container[0].environment["LOUD"] = "1"
    await client.put_revision("i-1", changed)


@pytest.mark.long
@pytest.mark.parametrize("is_away", [False, True], ids=["seen", "while_instancectl_was_away"])
@pytest.mark.parametrize(
    ("change", "waiting", "reason", "successor"),
    [
        (give_way, "r1", "Stopping", "r2"),
        (drop, "r2", "WaitingForPredecessor", "r2"),
        (change_container, "r1", "ContainerNotReady", "r1"),
    ],
)
async def test_a_container_that_is_no_longer_wanted_is_not_ready_and_stops_after_the_drain_period(
    run_from_hq: RunFile,
    client: Client,
    change: Callable[[Client], Awaitable[None]],
    *,
    waiting: str,
    reason: str,
    successor: str,
    is_away: bool,
) -> None:
    ctl = await run_both(run_from_hq, client, draining("r1"))
    pid = await ctl.container_pid("r1")
    if is_away:
        async with away(ctl):
            await change(client)
    else:
        await change(client)
    await until_not_ready(client, reason, waiting)
    assert is_alive(pid)
    await until_ready(client, successor)
    assert not is_alive(pid)


@pytest.mark.long
async def test_a_revision_changed_while_instancectl_was_away_runs_until_its_new_files_are_there_and_drains(
    run_from_hq: RunFile, client: Client
) -> None:
    ctl = await run_both(run_from_hq, client, draining("r1"))
    pid = await ctl.container_pid("r1")
    changed = draining("r1")
    changed.prepare.add(command=["sh", "-c", "until test -e ../../go; do sleep 0.05; done"])
    async with away(ctl):
        await client.put_revision("i-1", changed)
    await ctl.until("r1", "installed", holds=False, reason="RunningPrepareScripts")
    assert is_alive(pid)
    (ctl.directory / "go").touch()
    await until_not_ready(client, "Stopping", "r1")
    assert is_alive(pid)
    await until_ready(client, "r1")
    assert not is_alive(pid)


@pytest.mark.long
async def test_a_container_that_drains_when_its_supervisor_dies_is_drained_by_the_next_one(
    run_from_hq: RunFile, client: Client
) -> None:
    ctl = await run_both(run_from_hq, client, draining("r1"))
    pid = await ctl.container_pid("r1")
    await client.put_revision("i-1", revision("r2"))
    await until_not_ready(client, "Stopping", "r1")
    before = (await told(client, "r1")).incarnation
    async with away(ctl):
        pass

    async def is_draining_anew() -> bool:
        found = await told(client, "r1")
        return found.incarnation != before and found.sequence > 0 and found.ready.reason == "Stopping"

    await eventually(is_draining_anew)
    assert is_alive(pid)
    await until_ready(client, "r2")
    assert not is_alive(pid)


@pytest.mark.long
async def test_a_container_that_ended_while_instancectl_was_away_is_not_started_only_to_be_stopped(
    run_from_hq: RunFile, client: Client
) -> None:
    both = draining("r1")
    both.container.add(name="once", command=["sh", "-c", "echo began"]).restart_policy = model.RESTART_POLICY_NEVER
    ctl = await run_both(run_from_hq, client, both)
    await eventually(lambda: ctl.container_log("r1", "once") == "began\n")
    async with away(ctl):
        await client.put_revision("i-1", revision("r2"))
    await until_ready(client, "r2")
    assert ctl.container_log("r1", "once") == "began\n"


@pytest.mark.long
async def test_a_revision_with_target_created_is_removed_from_the_node(run_from_hq: RunFile, client: Client) -> None:
    ctl = await run_both(run_from_hq, client, revision("r1"))
    created = revision("r2")
    created.target = model.REVISION_TARGET_CREATED
    await client.put_revision("i-1", created)

    async def is_created() -> bool:
        installed = (await told(client, "r2")).installed
        return (installed.status, installed.reason) == (FALSE, "Created")

    await eventually(is_created)
    assert [path.name for path in (ctl.directory / "revisions").iterdir() if path.name.startswith("r2")] == []
