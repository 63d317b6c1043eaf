"""Children that misbehave, under a real instancectl."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import RunFile
from tests.clients.instancectl.supervised import Ctl, free_port, instance, is_alive, revision
from tests.support.sample_instances import eventually


@pytest.mark.long
async def test_a_crashing_child_is_started_again_with_growing_waits_and_its_exit_code_is_told(
    run_file: RunFile,
) -> None:
    ctl = await run_file(instance(revision(script="exit 7")))

    async def restarted() -> bool:
        return bool((await ctl.container()).get("restartCount", 0) >= 3)

    await eventually(restarted)
    container = await ctl.container()
    assert container["lastTermination"]["exitCode"] == 7

    async def waits() -> bool:  # between two runs
        return "restarting in" in str((await ctl.until("r1", "ready", holds=False))["message"])

    await eventually(waits)


async def test_the_last_lines_of_a_program_that_ended_are_told_without_secrets(
    run_file: RunFile, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    made = revision(script='seq 30; echo "with $PASSWORD"; printf "\\033[31mred"; exit 7')
    made.secret.add(name="password", provider="files", id="password", environment_variable="PASSWORD")
    ctl = await run_file(instance(made), "--secrets", f"files=dir:{tmp_path}")

    async def output() -> str:
        return str((await ctl.container()).get("lastTermination", {}).get("output", ""))

    lines = (await eventually(output)).splitlines()
    assert lines == [*map(str, range(13, 31)), "with ***", "?[31mred"]
    assert "output" not in (await ctl.container())["state"].get("terminated", {})


async def test_a_killed_child_is_started_again_and_the_signal_is_told(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision()))
    await ctl.until("r1", "ready")
    first = await ctl.container_pid()
    os.kill(first, signal.SIGKILL)

    async def replaced() -> bool:
        return bool((await ctl.container()).get("lastTermination", {}).get("signal") == signal.SIGKILL)

    await eventually(replaced)
    await ctl.until("r1", "ready")
    assert await ctl.container_pid() != first


async def test_a_program_that_is_not_there_is_named(run_file: RunFile) -> None:
    wanted = revision()
    wanted.container[0].command[:] = ["no-such-program"]
    ctl = await run_file(instance(wanted))

    async def told() -> bool:
        return bool((await ctl.container()).get("lastTermination", {}).get("reason") == "NotFound")

    await eventually(told)
    assert "cannot run no-such-program" in ctl.container_log()


@pytest.mark.long
async def test_a_child_that_hangs_is_not_ready_and_one_that_answers_is(run_file: RunFile) -> None:
    port = free_port()
    wanted = revision(script=f"exec python3 -m http.server {port} --bind 127.0.0.1")
    check = wanted.container[0].readiness_check
    check.http.port = "http"
    check.period.FromMilliseconds(100)
    check.timeout.FromMilliseconds(500)
    check.failure_threshold = 2
    ctl = await run_file(instance(wanted, port=port))
    await ctl.until("r1", "ready")
    pid = await ctl.container_pid()
    os.kill(pid, signal.SIGSTOP)
    await ctl.until("r1", "ready", holds=False, reason="ContainerNotReady")
    os.kill(pid, signal.SIGCONT)
    await ctl.until("r1", "ready")


@pytest.mark.long
async def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script="trap '' TERM; echo up; while :; do sleep 0.1; done")))
    await ctl.until("r1", "ready")
    await eventually(lambda: "up" in ctl.container_log())
    pid = await ctl.container_pid()
    began = time.monotonic()
    assert await ctl.terminate() == 0
    assert not is_alive(pid)
    assert time.monotonic() - began > 0.5


async def test_the_stop_script_runs_before_the_signal(run_file: RunFile) -> None:
    wanted = revision(script="trap 'echo got TERM; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    wanted.container[0].pre_stop.command[:] = ["sh", "-c", "echo the stop script"]
    wanted.container[0].stop_grace_period.FromSeconds(5)
    ctl = await run_file(instance(wanted))
    await eventually(lambda: "up" in ctl.container_log())
    assert await ctl.terminate() == 0
    text = ctl.container_log()
    assert 0 <= text.index("the stop script") < text.index("got TERM")


async def test_no_descendant_of_a_child_is_left_even_in_sessions_of_their_own(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script="sleep 601 & setsid sleep 602 & setsid -f sleep 603; wait")))
    await ctl.until("r1", "ready")
    await eventually(lambda: len(ctl.processes()) == 4)
    assert await ctl.terminate() == 0
    assert ctl.processes() == []


@pytest.mark.long
async def test_processes_that_a_child_left_behind_end_before_its_restart(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script="setsid sleep 604 & sleep 605 & sleep 0.1; exit 1")))

    async def restarted() -> bool:
        return bool((await ctl.container()).get("restartCount", 0) >= 3)

    await eventually(restarted)
    assert len(ctl.processes()) <= 4


async def test_orphans_are_reaped(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script="for i in 1 2 3 4 5; do (sh -c 'sleep 0.1 &'); done; sleep 600")))
    await ctl.until("r1", "ready")

    def zombies() -> list[int]:
        from instancectl.processes import procfs

        found = [(pid, procfs.stat(pid)) for pid in procfs.pids()]
        return [pid for pid, stat in found if stat and stat.parent == ctl.pid and stat.state == "Z"]

    await eventually(lambda: len(ctl.processes()) == 2)
    await eventually(lambda: not zombies())


@pytest.mark.long
async def test_a_flood_of_output_costs_bounded_disk_and_delays_no_answer(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script="exec yes flood")), "--log-bytes", "100000", "--log-files", "2")
    await ctl.until("r1", "ready")
    logs = ctl.directory / "logs" / "r1"
    await eventually(lambda: len(list(logs.iterdir())) == 3)
    took_s = [await _time_of_a_status(ctl) for _ in range(10)]
    assert sorted(took_s)[4] < 0.2, "some may meet a stall of the machine"
    assert await ctl.terminate() == 0
    # Only now: while the flood runs, the files are renamed under whoever looks at them. A copy of what is still being
    # written may be twice as long.
    assert sum(path.stat().st_size for path in logs.iterdir()) < 3 * (2 * 100_000 + 65_536)


async def _time_of_a_status(ctl: Ctl) -> float:
    began = time.monotonic()
    assert await ctl.status()
    return time.monotonic() - began


async def test_a_start_hook_that_fails_keeps_the_container_from_being_ready(run_file: RunFile) -> None:
    wanted = revision()
    wanted.container[0].post_start.command[:] = ["false"]
    ctl = await run_file(instance(wanted))

    async def told() -> bool:
        return "the start hook failed" in (await ctl.container()).get("lastTermination", {}).get("message", "")

    await eventually(told)


async def test_a_memory_limit_reaches_the_child(run_file: RunFile) -> None:
    wanted = revision(script="ulimit -d; sleep 600")
    wanted.container[0].limit.memory_bytes = 64 << 20
    ctl = await run_file(instance(wanted))
    await ctl.until("r1", "ready")
    limits = (await ctl.revision("r1"))["containers"][0]["limits"]
    if "rlimit" in limits:
        await eventually(lambda: ctl.container_log().strip() == str((64 << 20) // 1024))
    else:
        assert "cgroup v2: memory" in limits


# --- the whole group has the grace ----------------------------------------------------------------------------------

SLOW_SERVER = "trap 'sleep 0.3; echo finished; exit 0' TERM; echo up; while :; do sleep 0.05; done"
IN_FRONT = f'sh -c "{SLOW_SERVER}"; true'


def with_grace(script: str) -> model.InstanceRevision:
    made = revision(script=script)
    made.container[0].stop_grace_period.FromSeconds(20)
    return made


@pytest.mark.long
async def test_a_server_behind_a_shell_has_its_grace_though_the_shell_ends_at_once(run_file: RunFile) -> None:
    ctl = await run_file(instance(with_grace(IN_FRONT)))
    await eventually(lambda: "up" in ctl.container_log())
    assert await ctl.terminate() == 0
    assert "finished" in ctl.container_log()
    assert ctl.processes() == []


@pytest.mark.long
async def test_an_adopted_server_behind_a_shell_has_its_grace_too(run_file: RunFile) -> None:
    ctl = await run_file(instance(with_grace(IN_FRONT)))
    await eventually(lambda: "up" in ctl.container_log())
    await ctl.kill()
    await ctl.start()
    await ctl.until("r1", "ready")
    assert await ctl.terminate() == 0
    assert "finished" in ctl.container_log()
    assert ctl.processes() == []


@pytest.mark.long
async def test_a_server_whose_shell_was_ended_by_the_stop_script_is_told_to_end(run_file: RunFile) -> None:
    wanted = with_grace(f"echo $$ > shell; {IN_FRONT}")
    wanted.container[0].pre_stop.command[:] = ["sh", "-c", "kill -KILL $(cat shell)"]
    ctl = await run_file(instance(wanted))
    await eventually(lambda: "up" in ctl.container_log())
    assert await ctl.terminate() == 0
    assert "finished" in ctl.container_log()


@pytest.mark.long
async def test_a_server_behind_a_shell_has_its_grace_when_the_start_hook_fails(run_file: RunFile) -> None:
    wanted = with_grace(IN_FRONT)
    wanted.container[0].post_start.command[:] = ["sh", "-c", "until test -e up; do sleep 0.05; done; exit 1"]
    wanted.container[0].command[2] = IN_FRONT.replace("echo up", "echo up > up")
    ctl = await run_file(instance(wanted))
    await eventually(lambda: "finished" in ctl.container_log())


@pytest.mark.long
async def test_a_server_behind_a_shell_that_never_ends_is_killed_at_the_end_of_the_grace(run_file: RunFile) -> None:
    deaf = with_grace("sh -c \"trap '' TERM; echo up; while :; do sleep 0.05; done\"; true")
    deaf.container[0].stop_grace_period.FromMilliseconds(500)
    ctl = await run_file(instance(deaf))
    await eventually(lambda: "up" in ctl.container_log())
    began = time.monotonic()
    assert await ctl.terminate() == 0
    assert ctl.processes() == []
    assert time.monotonic() - began > 0.5


@pytest.mark.long
async def test_processes_that_a_shell_leaves_behind_when_it_ends_by_itself_are_killed_at_once(
    run_file: RunFile,
) -> None:
    """A program that puts itself into the background counts as ended: left alive, it would run twice."""
    ctl = await run_file(instance(with_grace(f'sh -c "{SLOW_SERVER}" & sleep 0.2')))

    async def restarted() -> bool:
        return bool((await ctl.container()).get("restartCount", 0) >= 2)

    await eventually(restarted)
    assert "finished" not in ctl.container_log()
