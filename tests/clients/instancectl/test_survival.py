"""The end of instancectl itself: SIGKILL, restart, a second one, PID 1. Children are never doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.instancectl.conftest import NewCtl, RunFile
from tests.clients.instancectl.supervised import clean_environment, instance, is_alive, revision, write
from tests.support.sample_instances import eventually

COUNTING = "n=0; while :; do echo tick $n; n=$((n+1)); sleep 0.05; done"


@pytest.mark.long
async def test_after_sigkill_the_child_is_adopted_and_not_doubled(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script="sleep 600 & wait")))
    await ctl.until("r1", "ready")
    await eventually(lambda: len(ctl.processes()) == 2)
    pid = await ctl.container_pid()
    await ctl.kill()
    await ctl.start()
    await ctl.until("r1", "ready")
    assert await ctl.container_pid() == pid
    assert len(ctl.processes()) == 2
    assert await ctl.terminate() == 0
    assert ctl.processes() == []


async def test_a_last_good_copy_that_cannot_be_written_stops_no_instance(run_file: RunFile, tmp_path: Path) -> None:
    (tmp_path / "ctl" / "desired.json").mkdir(parents=True)  # stands for a full disk
    ctl = await run_file(instance(revision()))
    await ctl.until("r1", "ready")
    assert "desired.json cannot be written" in ctl.log.read_text()
    assert await ctl.terminate() == 0


@pytest.mark.long
async def test_an_adopted_child_goes_on_writing_and_is_started_again_when_it_dies(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script=COUNTING)))
    await ctl.until("r1", "ready")
    await ctl.kill()
    before = ctl.container_log()
    await ctl.start()
    await ctl.until("r1", "ready")
    await eventually(lambda: len(ctl.container_log()) > len(before))
    pid = await ctl.container_pid()
    os.kill(pid, signal.SIGKILL)

    async def replaced() -> bool:
        container = await ctl.container()
        end = container.get("lastTermination", {})
        return end.get("reason") == "UnknownEnd" and "running" in container["state"]

    await eventually(replaced)
    assert len(ctl.processes()) <= 2


@pytest.mark.long
async def test_after_sigkill_a_child_that_is_no_longer_wanted_is_stopped(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision("r1")))
    await ctl.until("r1", "ready")
    pid = await ctl.container_pid()
    await ctl.kill()
    assert is_alive(pid)
    write(ctl.directory.parent / "spec", instance(revision("r2")))
    await ctl.start()
    await ctl.until("r2", "ready")
    assert not is_alive(pid)
    await eventually(lambda: len(ctl.processes()) == 1)  # in the midst of exec a process shows no environment


@pytest.mark.long
async def test_a_prepare_script_under_way_at_sigkill_does_not_run_twice(run_file: RunFile) -> None:
    wanted = revision()
    wanted.prepare.add(command=["sh", "-c", "echo began >> $HQ_REVISION_DIR/../../began; sleep 607"])
    ctl = await run_file(instance(wanted))
    began = ctl.directory / "began"
    await eventually(lambda: began.exists() and len(ctl.processes()) == 2)
    await ctl.kill()
    left = ctl.processes()
    await ctl.start()
    await eventually(lambda: began.read_text() == "began\nbegan\n" and len(ctl.processes()) == 2)
    assert not any(is_alive(pid) for pid in left)


@pytest.mark.long
async def test_children_are_never_doubled_however_often_and_whenever_instancectl_is_killed(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision(script="exec sleep 608")))
    socket = ctl.directory / "instancectl.sock"
    for delay_ms in (0, 10, 20, 40, 80):
        await eventually(socket.exists)  # it appears just before anything is prepared or started
        await asyncio.sleep(delay_ms / 1000)
        await ctl.kill()
        socket.unlink(missing_ok=True)
        assert len(ctl.processes()) <= 1
        await ctl.start()
    await ctl.until("r1", "ready")
    await eventually(lambda: len(ctl.processes()) == 1)


@pytest.mark.long
async def test_a_second_instancectl_over_the_same_directory_is_refused(run_file: RunFile) -> None:
    ctl = await run_file(instance(revision()))
    await ctl.until("r1", "ready")
    second = subprocess.run(
        (sys.executable, "-m", "instancectl.main", "run", "--dir", str(ctl.directory), "--file", "/dev/null"),
        capture_output=True,
        text=True,
        env=clean_environment(),
        timeout=60,
        check=False,
    )
    assert second.returncode == 1
    assert f"in use by another instancectl already (pid {ctl.pid})" in second.stderr


async def test_instancectl_works_as_pid_1(new_ctl: NewCtl, tmp_path: Path) -> None:
    """In a PID namespace of its own: it runs the container, reaps orphans, and ends in order on SIGTERM."""
    namespace = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    if subprocess.run((*namespace, "true"), capture_output=True, check=False).returncode:
        pytest.skip("needs the right to make a PID namespace")
    script = "echo parent $PPID; trap 'echo bye; exit 0' TERM; (sleep 0.1 &); while :; do sleep 0.05; done"
    path = write(tmp_path / "spec", instance(revision(script=script)))
    ctl = new_ctl("ctl", "--file", str(path))
    command = (
        sys.executable,
        "-m",
        "instancectl.main",
        "run",
        "--dir",
        str(ctl.directory),
        "--file",
        str(path),
    )
    with ctl.log.open("ab") as log:
        process = await asyncio.create_subprocess_exec(*namespace, *command, env=clean_environment(), stderr=log)
    try:
        await ctl.until("r1", "ready")
        assert (await ctl.status())["supervisor_pid"] == 1
        await eventually(lambda: "parent 1\n" in ctl.container_log())
        first = await eventually(lambda: _children_of(process.pid))
        os.kill(first[0], signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 45) == 0
        assert "bye" in ctl.container_log()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
