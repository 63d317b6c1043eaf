"""instancectl and real replicas of HQ: reports, HQ away, takeovers, deletion, recreation."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.clients.instancectl.conftest import NewCtl, RunFile, StartHq
from tests.clients.instancectl.hearsay import FALSE, TRUE, told, until_not_ready, until_ready
from tests.clients.instancectl.supervised import NODE, Ctl, instance, is_alive, revision, write
from tests.support.replicas import ReplicaProcess
from tests.support.reserved_port import kept_addresses
from tests.support.sample_instances import eventually


def from_hq(new_ctl: NewCtl, *replicas: ReplicaProcess, name: str = "ctl", instance_id: str = "i-1") -> Ctl:
    """A supervisor of an instance in HQ."""
    servers = [word for replica in replicas for word in ("--server", replica.grpc)]
    return new_ctl(name, "--instance", instance_id, "--node", NODE, *servers)


@pytest.mark.long
async def test_every_revision_is_reported_and_a_change_of_target_is_followed(
    run_from_hq: RunFile, client: Client
) -> None:
    await run_from_hq(instance(revision("r1"), revision("r2", ready=False)))
    await until_ready(client, "r1")
    await until_not_ready(client, "NotWantedReady", "r2")

    async def is_installed() -> bool:
        return (await told(client, "r2")).installed.status == TRUE

    await eventually(is_installed)
    assert [c.name for c in (await told(client)).container] == ["main"]
    await client.put_revision("i-1", revision("r2"))
    await until_ready(client, "r2")
    await until_not_ready(client, "NotWantedReady", "r1")


@pytest.mark.long
async def test_the_end_of_a_child_is_reported_within_two_seconds_and_an_orderly_end_at_once(
    run_from_hq: RunFile, client: Client
) -> None:
    ctl = await run_from_hq(instance(revision("r1")))
    await until_ready(client)
    assert await ctl.terminate() == 0
    found = (await told(client)).ready
    assert (found.status, found.reason) == (FALSE, "Stopped")


@pytest.mark.long
async def test_with_hq_away_at_the_start_the_last_good_copy_runs_and_is_reported_once_hq_is_back(
    new_ctl: NewCtl, start_hq: StartHq
) -> None:
    addresses = kept_addresses()
    hq = await start_hq(*addresses)
    ctl = from_hq(new_ctl, hq)
    async with Client([hq.grpc]) as client:
        await client.create(instance(revision("r1")))
        await ctl.start()
        await until_ready(client)
    await ctl.terminate()
    await hq.terminate()
    await ctl.start()
    await ctl.until("r1", "ready")

    async def is_in_trouble() -> bool:
        return "HQ is unreachable" in str((await ctl.status())["source_trouble"])

    await eventually(is_in_trouble)
    back = await start_hq(*addresses)
    async with Client([back.grpc]) as client:
        await until_ready(client)


@pytest.mark.long
async def test_with_hq_away_later_nothing_stops_and_changes_are_followed_once_hq_is_back(
    new_ctl: NewCtl, start_hq: StartHq
) -> None:
    addresses = kept_addresses()
    hq = await start_hq(*addresses)
    async with Client([hq.grpc]) as client:
        await client.create(instance(revision("r1")))
        ctl = await from_hq(new_ctl, hq).start()
        await until_ready(client)
    pid = await ctl.container_pid()
    await hq.kill()

    async def failing() -> bool:
        return bool((await ctl.status())["reports"]["failing_for_s"])

    await eventually(failing, timeout_s=60)
    assert is_alive(pid)
    back = await start_hq(*addresses)
    async with Client([back.grpc]) as client:
        await client.put_revision("i-1", revision("r2"))
        await until_ready(client, "r2")


@pytest.mark.long
async def test_when_one_replica_goes_the_other_hears_the_reports(new_ctl: NewCtl, start_hq: StartHq) -> None:
    first, second = await start_hq(), await start_hq()
    async with Client([second.grpc]) as client:
        await client.create(instance(revision("r1")))
        ctl = await from_hq(new_ctl, first, second).start()
        await until_ready(client)
        await first.kill()
        await client.put_revision("i-1", revision("r2"))
        await until_ready(client, "r2")
    assert (await ctl.status())["fenced"] == ""


@pytest.mark.long
async def test_a_fenced_twin_stops_reporting_and_stops_its_children(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess
) -> None:
    await client.create(instance(revision("r1")))
    old = await from_hq(new_ctl, hq, name="old").start()
    await until_ready(client)
    pid = await old.container_pid()
    new = await from_hq(new_ctl, hq, name="new").start()

    async def fenced() -> str:
        return str((await old.status())["fenced"])

    assert "taken over this revision" in await eventually(fenced)
    await eventually(lambda: not is_alive(pid))
    await until_ready(client)
    assert (await new.status())["fenced"] == ""
    incarnation = (await told(client)).incarnation
    await new.until("r1", "ready")
    assert (await told(client)).incarnation == incarnation


@pytest.mark.long
async def test_after_sigkill_and_restart_the_same_child_is_reported_by_a_new_incarnation(
    run_from_hq: RunFile, client: Client
) -> None:
    ctl = await run_from_hq(instance(revision("r1")))
    await until_ready(client)
    pid, before = await ctl.container_pid(), (await told(client)).incarnation
    await ctl.kill()
    await ctl.start()

    async def again() -> bool:
        found = await told(client)
        return found.incarnation != before and found.ready.status == TRUE

    await eventually(again)
    await ctl.until("r1", "ready")  # it may have begun to report before it shows its containers
    assert await ctl.container_pid() == pid


@pytest.mark.long
async def test_a_deleted_instance_is_stopped_and_its_files_are_freed(run_from_hq: RunFile, client: Client) -> None:
    wanted = revision("r1")
    wanted.volume.add(name="data", mount_path="data", persistent=True)
    ctl = await run_from_hq(instance(wanted))
    await until_ready(client)
    pid = await ctl.container_pid()
    await client.delete("i-1")
    assert await ctl.wait() == 0
    assert not is_alive(pid)
    left = {path.name for path in ctl.directory.rglob("*") if path.is_file() or path.name == "data"}
    assert left == {"lock"}


@pytest.mark.long
async def test_an_hq_that_lost_its_memory_stops_nobody(new_ctl: NewCtl, start_hq: StartHq) -> None:
    addresses = kept_addresses()
    hq = await start_hq(*addresses)
    async with Client([hq.grpc]) as client:
        await client.create(instance(revision("r1")))
        ctl = await from_hq(new_ctl, hq).start()
        await until_ready(client)
    pid = await ctl.container_pid()
    await hq.terminate()
    empty = await start_hq(*addresses, "--prefix", "/empty/")

    async def in_doubt() -> bool:
        return "store was replaced" in (await ctl.status())["source_trouble"]

    await eventually(in_doubt, timeout_s=60)
    assert is_alive(pid)
    async with Client([empty.grpc]) as client:
        await client.create(instance(revision("r1")))
        await until_ready(client)
    assert await ctl.container_pid() == pid


@pytest.mark.long
async def test_a_recreated_instance_keeps_nothing_of_the_earlier_one(run_from_hq: RunFile, client: Client) -> None:
    wanted = revision("r1", script="echo life >> data/seen; cat data/seen; exec sleep 600")
    wanted.volume.add(name="data", mount_path="data", persistent=True)
    ctl = await run_from_hq(instance(wanted))
    await until_ready(client)
    await ctl.kill()
    await client.delete("i-1")
    await client.create(instance(wanted))
    await ctl.start()
    await until_ready(client)
    await eventually(lambda: ctl.container_log() == "life\n")
    await eventually(lambda: len(ctl.processes()) == 1)  # `cat` may be there still, and `sleep` in the midst of exec


@pytest.mark.long
async def test_a_revision_removed_and_put_back_is_reported_again(run_from_hq: RunFile, client: Client) -> None:
    ctl = await run_from_hq(instance(revision("r1"), revision("r2", ready=False)))
    await until_ready(client)
    await client.delete_revision("i-1", "r1")
    await client.put_revision("i-1", revision("r1"))
    await until_ready(client)
    assert (await ctl.status())["fenced"] == ""


@pytest.mark.long
async def test_heartbeats_go_on_while_nothing_changes(run_from_hq: RunFile, client: Client) -> None:
    """Heartbeats come as often as HQ asks: here every second."""
    await run_from_hq(instance(revision("r1")))
    await until_ready(client)
    first = (await client.get("i-1")).instance.status.last_heartbeat_time.ToMilliseconds()

    async def beaten() -> bool:
        return (await client.get("i-1")).instance.status.last_heartbeat_time.ToMilliseconds() > first + 500

    await eventually(beaten)


@pytest.mark.long
async def test_a_report_that_hq_refused_is_not_sent_again_at_once(
    new_ctl: NewCtl, hq: ReplicaProcess, tmp_path: Path
) -> None:
    file = write(tmp_path / "spec", instance(revision("r1")))  # HQ does not know it
    ctl = await new_ctl("ctl", "--file", str(file), "--server", hq.grpc).start()
    refusal = "HQ refuses reports of i-1/r1 (NOT_FOUND)"
    await eventually(lambda: refusal in ctl.log_text())
    ends = time.monotonic() + 3.5  # three times as long as a change takes to be told
    await eventually(lambda: time.monotonic() > ends)
    assert ctl.log_text().count(refusal) == 1
    assert "NOT_FOUND" in str((await ctl.status())["reports"]["refused"])


@pytest.mark.long
async def test_the_log_says_when_hq_takes_reports_again_and_when_instancectl_stops(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, tmp_path: Path
) -> None:
    file = write(tmp_path / "spec", instance(revision("r1")))  # HQ does not know it yet
    ctl = await new_ctl("ctl", "--file", str(file), "--server", hq.grpc).start()
    await eventually(lambda: "HQ refuses reports of i-1/r1 (NOT_FOUND)" in ctl.log_text())
    await client.create(instance(revision("r1"), revision("r2", ready=False)))
    write(tmp_path / "spec", instance(revision("r1"), revision("r2", ready=False)))  # news: it is tried again at once
    await eventually(lambda: "HQ accepts reports of i-1/r1 again" in ctl.log_text(), timeout_s=60)
    assert await ctl.terminate() == 0
    assert "stopping: ending all containers" in ctl.log_text()
