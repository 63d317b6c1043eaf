"""A container that is told to stop at the worst moment, or finds its directory in disorder."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from hqpb.v1 import instance_pb2 as model
from instancectl.clock import MachineClock
from instancectl.containers.container import SupervisedContainer
from instancectl.containers.restarts import RestartSettings
from instancectl.containers.workshop import Blueprint, Workshop
from instancectl.content.guard import NoGuard
from instancectl.content.secrets import SecretValues
from instancectl.layout import Layout
from instancectl.processes import procfs
from instancectl.processes.child import Child, adopt
from instancectl.processes.children import Children
from instancectl.processes.commands import Commands
from instancectl.processes.confinement import DEFAULT_PIDS
from instancectl.processes.limits import CgroupLimits, Grip, Limit, Limiter, ProcessLimits
from instancectl.processes.output import OutputSettings
from instancectl.processes.reaper import ProcessReaper
from instancectl.state import RunningChild, StateFile
from instancectl.wanted.desired import Desired, RevisionContentKey
from tests.support.sample_instances import eventually

ContainerT = TypeVar("ContainerT", bound=SupervisedContainer)


class _SlowlyWatched(SupervisedContainer):
    """A container that takes its time to end its checks."""

    ends_checks = False

    async def _watch(self, child: Child, record: RunningChild | None) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.ends_checks = True
            await asyncio.sleep(0.2)


def workshop(root: Path, children: Children, limiter: Limiter) -> Workshop:
    layout = Layout.at(root)
    layout.make()
    commands = Commands(children)
    return Workshop(
        layout,
        StateFile(layout.state),
        children,
        commands,
        SecretValues({}),
        limiter,
        NoGuard(),
        RestartSettings(first_backoff_s=0.01),
        OutputSettings(),
        MachineClock(),
        random.Random(1),
    )


@asynccontextmanager
async def made(
    kind: type[ContainerT], root: Path, container: model.Container, limiter: Limiter | None = None
) -> AsyncIterator[ContainerT]:
    """A container over a directory; whatever it started is gone afterwards."""
    revision = model.InstanceRevision(id="r1", container=[container])
    reaper = ProcessReaper()
    reaper.open()
    children = Children("test-container", reaper)
    try:
        shop = workshop(root, children, limiter or ProcessLimits())
        key = RevisionContentKey("r1", "digest")
        shop.layout.revision(key).mkdir(parents=True)
        yield kind(Blueprint(key, revision, container, Desired("i-1", "node-1")), shop, lambda: None)
    finally:
        reaper.close()
        for pid in children.strangers(()):
            os.kill(pid, signal.SIGKILL)


async def test_a_container_stopped_just_after_its_process_ended_does_not_start_again(tmp_path: Path) -> None:
    async with made(_SlowlyWatched, tmp_path, model.Container(name="web", command=["sleep", "1000"])) as container:
        container.start()
        await eventually(lambda: container.status.state.HasField("running"))
        pid = container.pid or 0
        assert pid
        os.kill(pid, signal.SIGKILL)
        await eventually(lambda: container.ends_checks)
        async with asyncio.timeout(30):
            await container.stop()
        assert container.pid is None
        assert container.status.restart_count == 0


async def test_hooks_and_checks_have_the_limits_of_their_container_each_in_a_group_of_its_own(tmp_path: Path) -> None:
    spec = model.Container(name="web", command=["sleep", "1000"])
    spec.limit.memory_bytes = 64 << 20
    spec.post_start.command[:] = ["true"]
    spec.pre_stop.command[:] = ["true"]
    for check in (spec.readiness_check, spec.liveness_check, spec.startup_check):
        check.exec.command[:] = ["true"]
    groups = tmp_path / "groups"  # a group of the kernel is a folder, too
    groups.mkdir()
    async with made(SupervisedContainer, tmp_path / "root", spec, CgroupLimits(groups)) as container:
        container.start()
        await eventually(lambda: len(list(groups.glob("*/cgroup.procs"))) == 5)
        async with asyncio.timeout(30):
            await container.stop()
    assert len(list(groups.glob("*/cgroup.procs"))) == 6
    assert {each.read_text() for each in groups.glob("*/memory.max")} == {str(64 << 20)}


@dataclass(frozen=True, slots=True)
class _NotedGrip(Grip):
    """Its name is in `held` until it is let go."""

    name: str = ""
    held: set[str] = field(default_factory=set)

    def let_go(self) -> None:
        self.held.discard(self.name)


class _NotingLimiter:
    """Knows which of its grips are held."""

    def __init__(self) -> None:
        self.held: set[str] = set()

    def grip(self, name: str, limit: Limit, *, is_script: bool = False) -> Grip:
        self.held.add(name)
        return _NotedGrip(name=name, held=self.held)


async def test_the_groups_of_interrupted_checks_and_hooks_are_released(tmp_path: Path) -> None:
    spec = model.Container(name="web", command=["sleep", "1000"])
    spec.readiness_check.exec.command[:] = spec.pre_stop.command[:] = ["sleep", "1000"]
    spec.readiness_check.timeout.FromSeconds(1000)
    spec.stop_grace_period.FromMilliseconds(100)
    limiter = _NotingLimiter()
    async with made(SupervisedContainer, tmp_path, spec, limiter) as container:
        container.start()
        await eventually(lambda: len(limiter.held) == 2)
        async with asyncio.timeout(30):
            await container.stop()
        await eventually(lambda: not limiter.held)


@pytest.mark.parametrize(("pids", "of_a_script"), [(5, None), (2 * DEFAULT_PIDS, 2 * DEFAULT_PIDS)])
@pytest.mark.parametrize("has_cgroups", [False, True])
async def test_a_script_starts_however_many_processes_its_service_has_on_the_node(
    tmp_path: Path, has_cgroups: bool, pids: int, of_a_script: int | None
) -> None:
    spec = model.Container(name="web", command=["sleep", "1000"])
    spec.limit.pids = pids
    limiter = CgroupLimits(tmp_path) if has_cgroups else ProcessLimits()  # a group without pids.max
    async with made(SupervisedContainer, tmp_path / "root", spec, limiter) as container:
        shop, blueprint = container._shop, container.blueprint
        assert shop.grip(blueprint).resource_limits == {resource.RLIMIT_NPROC: pids}
        assert shop.grip(blueprint, "readiness check").resource_limits.get(resource.RLIMIT_NPROC) == of_a_script


def test_the_group_of_a_process_that_cannot_be_started_is_released(tmp_path: Path) -> None:
    grip = _NotedGrip(name="web", held={"web"})
    with pytest.raises(FileNotFoundError):
        Children("x", ProcessReaper()).start(["true"], cwd=tmp_path / "missing", environment={}, grip=grip)
    assert not grip.held


async def test_the_initial_delay_of_an_adopted_process_counts_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = model.Container(name="web", command=["sleep", "1000"])
    spec.readiness_check.exec.command[:] = ["true"]
    spec.readiness_check.initial_delay.FromSeconds(1000)
    async with made(SupervisedContainer, tmp_path, spec) as first:
        first.start()
        await eventually(lambda: first.status.state.HasField("running"))
        state = StateFile(tmp_path / "state.json").state
        (record,) = state.children.values()
        child = adopt(record.process, record.mark, Grip())
        assert child is not None
        monkeypatch.setattr(procfs, "age_s", lambda process: 1000.0 if process == record.process else 0.0)
        second = SupervisedContainer(first.blueprint, first._shop, lambda: None)
        second.start((child, record))
        await eventually(lambda: second.status.ready)
        await second.stop()
        await first.stop()


def test_the_age_of_a_process_is_counted_by_the_kernel() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    with subprocess.Popen(["sleep", "1000"]) as process:
        age_s = procfs.age_s(procfs.identify(process.pid))
        process.kill()
    assert -0.02 < age_s < time.clock_gettime(time.CLOCK_BOOTTIME) - before + 0.02  # a tick is 0.01 s


async def test_a_container_whose_log_cannot_be_opened_says_so_and_starts_when_it_can(tmp_path: Path) -> None:
    policy = model.RESTART_POLICY_NEVER  # of what ends: this has not begun
    spec = model.Container(name="web", command=["sleep", "1000"], restart_policy=policy)
    async with made(SupervisedContainer, tmp_path, spec) as container:
        in_the_way = tmp_path / "logs" / "r1"
        in_the_way.write_text("a file where a folder should be")
        container.start()
        await eventually(lambda: str(in_the_way) in container.status.state.waiting.message)
        assert container.status.state.waiting.reason == "Backoff"
        in_the_way.unlink()
        await eventually(lambda: container.status.state.HasField("running"))
        await container.stop()
