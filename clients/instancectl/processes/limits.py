"""Limits of a container: its own cgroup (version 2) if we may make one, else limits of the single process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hqpb.v1.instance_pb2 import Container, ResourceAllocation
from instancectl.processes.confinement import DEFAULT_PIDS

_CPU_PERIOD_US = 100_000


@dataclass(frozen=True, slots=True)
class Limit:
    """Amounts; 0: no limit."""

    cpu_millicores: int = 0
    memory_bytes: int = 0
    pids: int = 0
    open_files: int = 0


def limit_of(container: Container, allocation: ResourceAllocation) -> Limit:
    """The container's own limit, else the instance's."""
    own = container.limit
    cpu_millicores = own.cpu_millicores or allocation.cpu_millicores
    return Limit(cpu_millicores, own.memory_bytes or allocation.memory_bytes, own.pids, own.open_files)


@dataclass(frozen=True, slots=True)
class Grip:
    """The limits on one process.

    Attributes:
        resource_limits: for the process itself, by number of the resource.
        group: the cgroup to put it into; None: none.
        description: for `status`: what is limited, and how.
    """

    resource_limits: Mapping[int, int] = field(default_factory=dict)
    group: Path | None = None
    description: str = "no limits"

    def take(self, pid: int) -> None:
        """Put a process into the cgroup. Raises OSError."""
        if self.group is not None:
            (self.group / "cgroup.procs").write_text(str(pid))

    def kill(self) -> None:
        """Kill whatever is left in the cgroup."""
        if self.group is not None:
            with contextlib.suppress(OSError):
                (self.group / "cgroup.kill").write_text("1")

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel OOM-killed one of its processes; known only with a cgroup."""
        try:
            events = (
                dict(line.split() for line in (self.group / "memory.events").read_text().splitlines())
                if self.group
                else {}
            )
        except (OSError, ValueError):
            return False
        return events.get("oom_kill", "0") != "0"

    def let_go(self) -> None:
        """Remove the cgroup; one that still holds a dying process is left for the next start."""
        if self.group is not None:
            with contextlib.suppress(OSError):
                self.group.rmdir()


class Limiter(Protocol):
    """A way to limit."""

    def grip(self, name: str, limit: Limit, *, is_script: bool = False) -> Grip:
        """Prepare the limits of a container, or of a script of it; `name` is unique in the instance. Raises OSError."""
        ...


class ProcessLimits:
    """Limits by setrlimit: memory per process. CPU time cannot be divided this way, and is not limited."""

    def grip(self, name: str, limit: Limit, *, is_script: bool = False) -> Grip:
        """Private writable memory only: address space says little about programs that reserve a lot of it."""
        limits = _resource_limits(limit, pids=_pids_of_user(limit, is_script))
        words = [f"memory {limit.memory_bytes} B per process"] if limit.memory_bytes else []
        words += ["cpu not limited"] if limit.cpu_millicores and limit.memory_bytes else []
        words += [f"{limit.pids} processes of its user"] if limit.pids else []
        words += [f"{limit.open_files} open files"] if limit.open_files else []
        if limit.memory_bytes:
            limits[resource.RLIMIT_DATA] = limit.memory_bytes
        return Grip(limits, description=f"rlimit: {', '.join(words) or 'none asked for'}")


def _pids_of_user(limit: Limit, is_script: bool) -> int:
    """The limit of processes; 0: none. It counts all of the user's on the node, which may exceed it from the start."""
    return 0 if is_script and limit.pids <= DEFAULT_PIDS else limit.pids


def _resource_limits(limit: Limit, *, pids: int) -> dict[int, int]:
    found = {resource.RLIMIT_NPROC: pids, resource.RLIMIT_NOFILE: limit.open_files}
    return {kind: amount for kind, amount in found.items() if amount}


class CgroupLimits:
    """Limits by cgroup v2: memory and CPU time of all processes of a container together."""

    def __init__(self, parent: Path) -> None:
        self._parent = parent

    def grip(self, name: str, limit: Limit, *, is_script: bool = False) -> Grip:
        group = self._parent / hashlib.sha256(name.encode()).hexdigest()[:16]
        group.mkdir(exist_ok=True)
        quota = limit.cpu_millicores * _CPU_PERIOD_US // 1000
        (group / "cpu.max").write_text(f"{quota or 'max'} {_CPU_PERIOD_US}")
        (group / "memory.max").write_text(str(limit.memory_bytes or "max"))
        has_pids = (group / "pids.max").exists()
        if has_pids:
            (group / "pids.max").write_text(str(limit.pids or "max"))
        amounts = f"memory {limit.memory_bytes or 'max'} B, cpu {limit.cpu_millicores or 'max'} m"
        amounts += f", {limit.pids} processes" if limit.pids else ""
        amounts += f", {limit.open_files} open files" if limit.open_files else ""
        limits = _resource_limits(limit, pids=0 if has_pids else _pids_of_user(limit, is_script))
        return Grip(limits, group, f"cgroup v2: {amounts}")


def best_limiter(instance_id: str, root: Path = Path("/sys/fs/cgroup"), own: str | None = None) -> Limiter:
    """Cgroups if the kernel has version 2 with memory and cpu and lets us write; else limits of processes.

    Args:
        own: the line of version 2 in /proc/self/cgroup; None: read it.
    """
    parent = _delegated_cgroup(root, _own_group() if own is None else own)
    if parent is None:
        return ProcessLimits()
    mine = parent / f"instancectl-{hashlib.sha256(instance_id.encode()).hexdigest()[:16]}"
    try:
        mine.mkdir(exist_ok=True)
        (mine / "cgroup.subtree_control").write_text("+cpu +memory")
    except OSError:
        return ProcessLimits()
    with contextlib.suppress(OSError):  # not handed down everywhere
        (mine / "cgroup.subtree_control").write_text("+pids")
    return CgroupLimits(mine)


def _delegated_cgroup(root: Path, own: str) -> Path | None:
    """The cgroup to create ours in: our own, if it delegates memory and cpu or can be made to."""
    parent = root / own.lstrip("/")
    try:
        if not _hands_down(parent):
            # Only leaf cgroups may hold processes, so we have to leave the group that is to delegate.
            leaf = parent / "instancectl-supervisor"
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
            (parent / "cgroup.subtree_control").write_text("+cpu +memory")
            with contextlib.suppress(OSError):
                (parent / "cgroup.subtree_control").write_text("+pids")
    except OSError:
        return None
    return parent


def _hands_down(parent: Path) -> bool:
    """Whether a group delegates memory and cpu. Raises OSError: there is no such group, or it does not have them."""
    needed = {"cpu", "memory"}
    if not needed <= set((parent / "cgroup.controllers").read_text().split()):
        raise FileNotFoundError(parent)
    return needed <= set((parent / "cgroup.subtree_control").read_text().split())


def _own_group() -> str:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return ""
    return next((line[3:] for line in lines if line.startswith("0::")), "")
