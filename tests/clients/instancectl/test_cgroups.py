"""Limits by the kernel itself, in whatever way this machine has: a program that asks for too much does not get it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from instancectl.processes.limits import CgroupLimits, Grip, Limit
from tests.clients.instancectl.conftest import RunFile
from tests.clients.instancectl.supervised import instance, is_alive, revision
from tests.support.sample_instances import eventually

MIB = 1 << 20


def _mounts() -> list[Path]:
    """Where cgroup v2 is mounted, be it beside version 1."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [Path(line.split()[1]) for line in lines if line.split()[2] == "cgroup2"]


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Path]:
    """A real, empty cgroup of version 2."""
    made: Path | None = None
    for mount in _mounts():
        with contextlib.suppress(OSError):
            made = mount / f"hq-test-{os.getpid()}-{tmp_path.name[-8:]}"
            made.mkdir()
            break
    else:
        pytest.skip("no cgroup v2 is mounted where this user may make a group")
    assert made is not None
    yield made
    with contextlib.suppress(OSError):
        made.rmdir()


async def test_a_cgroup_holds_all_descendants_and_kills_them(group: Path) -> None:
    if not (group / "cgroup.kill").exists():
        pytest.skip("this kernel has no cgroup.kill (Linux 5.14)")
    grip = Grip(group=group)
    # Both sleepers leave session and process group: only the cgroup knows them.
    script = "sleep 0.2; setsid sleep 600 & setsid sleep 600 & wait"
    child = subprocess.Popen(["sh", "-c", script], start_new_session=True)
    try:
        grip.take(child.pid)

        def held() -> list[int]:
            return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]

        await eventually(lambda: len(held()) == 3)
        pids = held()
        grip.kill()
        child.wait(20)
        await eventually(lambda: not any(map(is_alive, pids)))
    finally:
        child.kill()
        child.wait(20)
    await eventually(lambda: not held())
    grip.let_go()
    assert not group.exists()


async def test_the_kernel_keeps_a_group_to_its_memory(group: Path) -> None:
    controllers = (group / "cgroup.controllers").read_text().split()
    if not {"memory", "cpu"} <= set(controllers):
        pytest.skip(
            f"version 2 has {', '.join(controllers) or 'no controllers'} here; memory and cpu are with version 1"
        )
    (group / "cgroup.subtree_control").write_text("+cpu +memory")
    grip = CgroupLimits(group).grip("web", Limit(cpu_millicores=250, memory_bytes=64 * MIB))
    assert grip.group is not None
    assert (grip.group / "cpu.max").read_text().split() == ["25000", "100000"]
    child = subprocess.Popen(
        [sys.executable, "-c", f"input(); b'x' * {256 * MIB}"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        grip.take(child.pid)
        child.communicate(b"\n", timeout=30)
        assert child.returncode == -9
    finally:
        child.kill()
        child.wait(20)
        grip.let_go()


@pytest.mark.long
async def test_neither_a_container_nor_its_scripts_and_checks_get_more_memory_than_they_may(run_file: RunFile) -> None:
    greedy = f"{sys.executable} -c \"b'x' * {256 * MIB}\""
    wanted = revision(script=f"{greedy}; echo ended with $?; exec sleep 600")
    container = wanted.container[0]
    container.limit.memory_bytes = 64 * MIB
    wanted.prepare.add(name="build", command=["sh", "-c", f"! {greedy}"])
    container.post_start.command[:] = ["sh", "-c", f"! {greedy}"]
    container.readiness_check.exec.command[:] = ["sh", "-c", f"! {greedy}"]
    container.readiness_check.timeout.FromSeconds(20)
    made = instance(wanted)
    made.spec.allocation.memory_bytes = 64 * MIB
    ctl = await run_file(made)
    await ctl.until("r1", "ready")
    limits = (await ctl.revision("r1"))["containers"][0]["limits"]
    assert re.match(rf"(rlimit|cgroup v2): memory {64 * MIB} B", limits)
    await eventually(lambda: "ended with" in ctl.container_log())
    assert "ended with 0" not in ctl.container_log()
