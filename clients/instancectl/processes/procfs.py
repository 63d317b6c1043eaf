"""Processes as the kernel shows them: identities that outlive us, and who belongs to whom."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK_VARIABLE = "INSTANCECTL_RUN"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, distinguished from any later one with the same pid, and from other boots."""

    pid: int
    start_ticks: int
    boot_id: str

    def exists(self) -> bool:
        """Whether the process is there, and not a zombie."""
        found = stat(self.pid)
        return (
            self.boot_id == boot_id()
            and found is not None
            and found.start_ticks == self.start_ticks
            and found.state not in "ZX"
        )


@dataclass(frozen=True, slots=True)
class Stat:
    """Fields of /proc/PID/stat."""

    state: str
    parent: int
    group: int
    session: int
    start_ticks: int


@functools.cache
def boot_id() -> str:
    """Changes with each boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def stat(pid: int) -> Stat | None:
    """The stat of a process; None: there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    # The name is in parentheses and may contain anything, including parentheses and spaces.
    fields = text[text.rindex(")") + 2 :].split()
    return Stat(fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def identify(pid: int) -> ProcessId:
    """Raises ProcessLookupError."""
    found = stat(pid)
    if found is None:
        raise ProcessLookupError(pid)
    return ProcessId(pid, found.start_ticks, boot_id())


def uid_of(pid: int) -> int | None:
    """Who it runs as; None: there is no such process."""
    try:
        return (_PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def age_s(process: ProcessId) -> float:
    """Seconds since it was started, by the kernel's clock since the boot."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - process.start_ticks / os.sysconf("SC_CLK_TCK")


def pids_with_mark(mark: str) -> Iterator[int]:
    """Living processes with `mark` (or one that starts with it) in their environment, in whatever session.

    Processes of other users and those that overwrote their environment are not found.
    """
    return (pid for pid, _ in processes_with_mark(mark))


def processes_with_mark(beginning: str) -> Iterator[tuple[int, str]]:
    """As `pids_with_mark`, each with its whole mark."""
    for pid in pids():
        mark = mark_of(pid)
        if mark.startswith(beginning):
            yield pid, mark


def mark_of(pid: int) -> str:
    """The mark in a process's environment; empty: it has none, or it cannot be read."""
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return ""
    name = f"{MARK_VARIABLE}=".encode()
    return next((os.fsdecode(e.removeprefix(name)) for e in environment.split(b"\0") if e.startswith(name)), "")


def pids_in_session(leader: int) -> Iterator[int]:
    """Living processes of the session that `leader` began, itself included."""
    return (pid for pid, found in _living() if found.session == leader)


def pids_in_group(leader: int) -> Iterator[int]:
    """Living processes of the process group that `leader` began, itself included."""
    return (pid for pid, found in _living() if found.group == leader)


def _living() -> Iterator[tuple[int, Stat]]:
    for pid in pids():
        found = stat(pid)
        if found is not None and found.state not in "ZX":
            yield pid, found


def pids() -> list[int]:
    """The pids of all processes."""
    return [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
