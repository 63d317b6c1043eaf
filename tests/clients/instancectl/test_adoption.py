"""What runs while instancectl is away: it stays ready, and drains if it is not wanted any more. Seen from HQ."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hqclient.client import Client
from hqclient.watch_items import Changes
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.clients.instancectl.conftest import NewCtl, RunFile
from tests.clients.instancectl.hearsay import TRUE, told, until_not_ready, until_ready
from tests.clients.instancectl.supervised import NODE, Ctl, free_port, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually


def web(port: int, *, initial_delay_ms: int = 0, period_ms: int = 200) -> model.InstanceRevision:
    """A server whose log has a line for each check."""
    made = revision(script=f"exec python3 -m http.server {port} --bind 127.0.0.1")
    check = made.container[0].readiness_check
    check.http.port = "http"
    check.initial_delay.FromMilliseconds(initial_delay_ms)
    check.period.FromMilliseconds(period_ms)
    check.timeout.FromMilliseconds(1000)
    return made


def checks_of(ctl: Ctl) -> int:
    return ctl.container_log().count('"GET / HTTP/1.1" 200')


@asynccontextmanager
async def statuses_seen(client: Client) -> AsyncIterator[list[model.RevisionStatus]]:
    """Every status of a revision that a watcher of HQ sees."""
    seen: list[model.RevisionStatus] = []

    async def follow() -> None:
        async with client.watch(pb.InstanceFilter(instance_id=["i-1"])) as items:
            async for item in items:
                if isinstance(item, Changes):
                    seen.extend(each for event in item.events for each in event.put.status.revision)

    task = asyncio.create_task(follow())
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.long
async def test_an_instance_that_answers_stays_ready_over_a_restart_whatever_its_initial_delay(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    port = free_port()
    await client.create(instance(web(port, initial_delay_ms=2000), port=port))
    ctl = await new_ctl("ctl", "--instance", "i-1", "--node", NODE, "--server", hq.grpc).start()
    await until_ready(client)
    before = (await told(client)).incarnation
    async with statuses_seen(client) as seen:
        await ctl.kill()
        checked = checks_of(ctl)
        await ctl.start()
        await eventually(lambda: any(status.incarnation != before for status in seen))
        await eventually(lambda: checks_of(ctl) >= checked + 3)
        await ctl.until("r1", "ready")
        await eventually(lambda: seen[-1].sequence > 0)
        assert {status.ready.status for status in seen} == {TRUE}


@pytest.mark.long
async def test_a_supervisor_that_is_restarted_again_and_again_does_not_keep_a_hung_process_ready(
    run_file: RunFile, tmp_path: Path
) -> None:
    """Each supervisor makes one check: the second one would be due in an hour."""
    answers = tmp_path / "answers"
    answers.touch()
    wanted = revision()
    wanted.container[0].readiness_check.exec.command[:] = ["test", "-e", str(answers)]
    wanted.container[0].readiness_check.period.FromSeconds(3600)
    ctl = await run_file(instance(wanted))
    await ctl.until("r1", "ready")
    pid = await ctl.container_pid()
    answers.unlink()
    for failed in (1, 2):
        await ctl.kill()
        await ctl.start()
        await eventually(lambda failed=failed: failed_checks(ctl) == failed)  # type: ignore[misc]
        assert (await ctl.condition("r1", "ready"))["status"] == "CONDITION_STATUS_TRUE"
    await ctl.kill()
    await ctl.start()
    await ctl.until("r1", "ready", holds=False, reason="ContainerNotReady")
    assert await ctl.container_pid() == pid


def failed_checks(ctl: Ctl) -> int:
    (checks,) = json.loads((ctl.directory / "state.json").read_text())["checks"].values()
    return int(checks["failed_checks"])


# --- what is wanted changed meanwhile -------------------------------------------------------------------------------


def drained(revision_id: str = "r1") -> model.InstanceRevision:
    made = revision(revision_id)
    made.container[0].drain_period.FromMilliseconds(3000)
    return made


@asynccontextmanager
async def away(ctl: Ctl) -> AsyncIterator[None]:
    """Without instancectl; its containers run on."""
    await ctl.kill()
    yield
    await ctl.start()


async def started(new_ctl: NewCtl, client: Client, hq: ReplicaProcess) -> tuple[Ctl, int]:
    """An instancectl with r1 ready and r2 installed, and the process of r1."""
    await client.create(instance(drained("r1"), revision("r2", ready=False)))
    ctl = await new_ctl("ctl", "--instance", "i-1", "--node", NODE, "--server", hq.grpc).start()
    await until_ready(client, "r1")
    await ctl.until("r2", "installed")
    return ctl, await ctl.container_pid("r1")


@pytest.mark.long
async def test_what_gives_way_to_another_revision_meanwhile_drains_before_it_is_stopped(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    ctl, pid = await started(new_ctl, client, hq)
    async with away(ctl):
        await client.put_revision("i-1", revision("r2"))
    await until_not_ready(client, "Stopping", "r1")
    assert is_alive(pid)
    await until_ready(client, "r2")
    assert not is_alive(pid)


@pytest.mark.long
async def test_what_is_dropped_meanwhile_drains_before_it_is_stopped(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    ctl, pid = await started(new_ctl, client, hq)
    async with away(ctl):
        await client.put_revision("i-1", revision("r2"))
        await client.delete_revision("i-1", "r1")
    await until_not_ready(client, "WaitingForPredecessor", "r2")
    assert is_alive(pid)
    await until_ready(client, "r2")
    assert not is_alive(pid)


@pytest.mark.long
async def test_a_container_that_changes_meanwhile_drains_before_it_is_replaced(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    ctl, pid = await started(new_ctl, client, hq)
    changed = drained("r1")
    changed.container[0].environment["LOUD"] = "1"
    async with away(ctl):
        await client.put_revision("i-1", changed)
    await until_not_ready(client, "ContainerNotReady", "r1")
    assert is_alive(pid)
    await until_ready(client, "r1")
    assert not is_alive(pid)


@pytest.mark.long
async def test_a_revision_whose_files_change_meanwhile_runs_until_they_are_there_and_drains(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    ctl, pid = await started(new_ctl, client, hq)
    changed = drained("r1")
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
async def test_what_drains_when_the_supervisor_dies_is_drained_by_its_successor(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    ctl, pid = await started(new_ctl, client, hq)
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
async def test_a_container_that_ended_meanwhile_is_not_started_only_to_be_stopped(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    both = drained("r1")
    both.container.add(name="once", command=["sh", "-c", "echo began"]).restart_policy = model.RESTART_POLICY_NEVER
    await client.create(instance(both, revision("r2", ready=False)))
    ctl = await new_ctl("ctl", "--instance", "i-1", "--node", NODE, "--server", hq.grpc).start()
    await until_ready(client, "r1")
    await ctl.until("r2", "installed")
    await eventually(lambda: ctl.container_log("r1", "once") == "began\n")
    async with away(ctl):
        await client.put_revision("i-1", revision("r2"))
    await until_ready(client, "r2")
    assert ctl.container_log("r1", "once") == "began\n"
