"""Containers that run on while instancectl is away stay ready. Those that change meanwhile: test_drain.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import RunFile, StartHq
from tests.clients.instancectl.hearsay import TRUE, statuses, told, until_ready, watched
from tests.clients.instancectl.supervised import Ctl, free_port, instance, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually


@pytest.fixture
async def hq(start_hq: StartHq) -> ReplicaProcess:
    """One that does not take a busy machine for silence."""
    return await start_hq("--liveness-timeout", "120s")


def web(port: int) -> model.InstanceRevision:
    """A server whose log has a line for each check."""
    made = revision(script=f"exec python3 -m http.server {port} --bind 127.0.0.1")
    check = made.container[0].readiness_check
    check.http.port = "http"
    check.initial_delay.FromMilliseconds(2000)
    check.period.FromMilliseconds(200)
    check.timeout.FromMilliseconds(20_000)
    return made


def checks_of(ctl: Ctl) -> int:
    return ctl.container_log().count('"GET / HTTP/1.1" 200')


@pytest.mark.long
async def test_an_instance_that_answers_stays_ready_over_a_restart_whatever_its_initial_delay(
    run_from_hq: RunFile, client: Client
) -> None:
    port = free_port()
    ctl = await run_from_hq(instance(web(port), port=port))
    await until_ready(client)
    before = (await told(client)).incarnation
    async with watched(client) as seen:
        await ctl.kill()
        checked = checks_of(ctl)
        await ctl.start()
        await eventually(lambda: any(status.incarnation != before for status in statuses(seen)))
        await eventually(lambda: checks_of(ctl) >= checked + 3)
        await ctl.until("r1", "ready")
        await eventually(lambda: statuses(seen)[-1].sequence > 0)
        assert {status.ready.status for status in statuses(seen)} == {TRUE}


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
    wanted.container[0].readiness_check.timeout.FromSeconds(20)
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
