"""Processes of which nothing is known but their id."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import psutil

_PATIENCE_S: Final = 30.0


def is_gone(pid: int) -> bool:
    """Whether it has ended, collected by its parent or not; it may end while this looks."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def has_ended(process: psutil.Process) -> bool:
    """`is_gone` for a process that was seen before: its id may be another's by now."""
    return not process.is_running() or is_gone(process.pid)


def wait_until_stopped(pid: int) -> None:
    """Return when no thread of it runs any more: a signal that was sent may take a while on a busy machine."""
    ends = time.monotonic() + _PATIENCE_S
    while any(_state_of(stat) not in "TtZX" for stat in Path(f"/proc/{pid}/task").glob("*/stat")):
        assert time.monotonic() < ends, f"process {pid} still runs"
        time.sleep(0.001)


def _state_of(stat: Path) -> str:
    """One letter, as in proc(5); X: it has ended meanwhile."""
    try:
        return stat.read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
