"""Checks of running containers: one that hangs is started again, one that is slow to begin is waited for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hqpb.v1 import instance_pb2 as model
from hqpb.v1.instance_pb2 import ReadinessCheck
from tests.clients.instancectl.conftest import RunFile
from tests.clients.instancectl.supervised import Ctl, instance, is_alive, revision
from tests.support.sample_instances import eventually

WORK = "while :; do sleep 0.05; done"
ENDS_WELL = f"trap 'exit 0' TERM; touch up; {WORK}"


def check_that(exists: Path, *, period_ms: int = 50, failures: int = 2) -> ReadinessCheck:
    """Passes while a file exists."""
    made = ReadinessCheck(failure_threshold=failures)
    made.exec.command[:] = ["test", "-e", str(exists)]
    made.period.FromMilliseconds(period_ms)
    made.timeout.FromMilliseconds(20_000)
    return made


async def restarts_of(ctl: Ctl) -> int:
    return int((await ctl.container()).get("restartCount", 0))


@pytest.mark.long
async def test_a_hung_program_is_stopped_and_started_again_though_it_exits_with_0(
    run_file: RunFile, tmp_path: Path
) -> None:
    alive = tmp_path / "alive"
    alive.touch()
    wanted = revision("r1", ENDS_WELL)
    wanted.container[0].restart_policy = model.RESTART_POLICY_ON_FAILURE
    wanted.container[0].readiness_check.CopyFrom(check_that(Path("up")))
    wanted.container[0].liveness_check.CopyFrom(check_that(alive))
    ctl = await run_file(instance(wanted))
    await ctl.until("r1", "ready")
    pid = await ctl.container_pid()
    alive.unlink()
    await eventually(lambda: not is_alive(pid))
    alive.touch()

    async def end_is_told() -> bool:  # until then it is said to be ready still
        return "lastTermination" in await ctl.container()

    await eventually(end_is_told)
    await ctl.until("r1", "ready")
    end = (await ctl.container())["lastTermination"]
    assert (end["reason"], end.get("exitCode", 0)) == ("LivenessCheckFailed", 0)
    assert end["message"] == "its liveness check failed 2 times in a row; it exited with 0"
    assert await restarts_of(ctl) >= 1


async def test_a_hung_program_that_is_not_to_be_restarted_has_failed(run_file: RunFile, tmp_path: Path) -> None:
    wanted = revision("r1", ENDS_WELL)
    wanted.container[0].restart_policy = model.RESTART_POLICY_NEVER
    wanted.container[0].liveness_check.CopyFrom(check_that(tmp_path / "never"))
    ctl = await run_file(instance(wanted))
    found = await ctl.until("r1", "ready", holds=False, reason="ContainerNotReady")
    while "LivenessCheckFailed" not in found["message"]:
        found = await ctl.until("r1", "ready", holds=False, reason="ContainerNotReady")
    assert await restarts_of(ctl) == 0


@pytest.mark.long
async def test_a_startup_check_holds_the_other_checks_back(run_file: RunFile, tmp_path: Path) -> None:
    """Else the liveness check would stop the program at once."""
    up, alive = tmp_path / "up", tmp_path / "alive"
    wanted = revision("r1", f"sleep 0.5; touch {alive} {up}; exec sleep 600")
    wanted.container[0].startup_check.CopyFrom(check_that(up, failures=1000))
    wanted.container[0].liveness_check.CopyFrom(check_that(alive, failures=1))
    wanted.container[0].readiness_check.CopyFrom(check_that(alive))
    ctl = await run_file(instance(wanted))
    await ctl.until("r1", "ready")
    assert await restarts_of(ctl) == 0


async def test_a_program_that_does_not_come_up_is_started_again(run_file: RunFile, tmp_path: Path) -> None:
    wanted = revision("r1")
    wanted.container[0].startup_check.CopyFrom(check_that(tmp_path / "never"))
    ctl = await run_file(instance(wanted))

    async def reason() -> bool:
        return bool((await ctl.container()).get("lastTermination", {}).get("reason") == "StartupCheckFailed")

    await eventually(reason)


@pytest.mark.long
async def test_an_agent_that_is_killed_again_and_again_does_not_keep_a_hung_program_alive(
    run_file: RunFile, tmp_path: Path
) -> None:
    """Each agent makes one check: the second one would be due in an hour."""
    alive = tmp_path / "alive"
    alive.touch()
    wanted = revision()
    wanted.container[0].liveness_check.CopyFrom(check_that(alive, period_ms=3_600_000, failures=3))
    ctl = await run_file(instance(wanted))
    await ctl.until("r1", "ready")
    pid = await ctl.container_pid()
    alive.unlink()
    for failed in (1, 2):
        await ctl.kill()
        await ctl.start()
        await eventually(lambda failed=failed: strikes(ctl) == failed)  # type: ignore[misc]
        assert is_alive(pid)
    await ctl.kill()
    await ctl.start()
    await eventually(lambda: not is_alive(pid))


def strikes(ctl: Ctl) -> int:
    (checks,) = json.loads((ctl.directory / "state.json").read_text())["checks"].values()
    return int(checks["strikes"])


@pytest.mark.long
@pytest.mark.parametrize("is_adopted", [False, True])
async def test_the_stop_signal_is_the_one_asked_for(run_file: RunFile, tmp_path: Path, is_adopted: bool) -> None:
    got = tmp_path / "got"
    traps = f"trap 'echo INT > {got}; exit 0' INT; trap 'echo TERM > {got}; exit 0' TERM"
    wanted = revision("r1", f"{traps}; touch up; {WORK}")
    wanted.container[0].readiness_check.CopyFrom(check_that(Path("up")))
    wanted.container[0].stop_signal = "SIGINT"
    wanted.container[0].stop_grace_period.FromSeconds(20)
    ctl = await run_file(instance(wanted))
    await ctl.until("r1", "ready")
    if is_adopted:
        await ctl.kill()
        await ctl.start()
        await ctl.until("r1", "ready")
    await ctl.terminate()
    assert got.read_text() == "INT\n"


async def test_a_limit_of_open_files_reaches_the_program(run_file: RunFile) -> None:
    wanted = revision("r1", "ulimit -n; exec sleep 600")
    wanted.container[0].limit.open_files = 77
    ctl = await run_file(instance(wanted))
    await eventually(lambda: ctl.container_log() == "77\n")
