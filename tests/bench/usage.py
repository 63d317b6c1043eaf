"""Processor time and memory of a process, from /proc."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pids: Sequence[int]) -> float:
    """Processor time that the processes have used so far, user and system, all threads."""
    return sum(_cpu_s(pid) for pid in pids)


def _cpu_s(pid: int) -> float:
    # Behind the name of the command, which may hold spaces and brackets.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_bytes(pid: int) -> int:
    """Resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def written_bytes(pid: int) -> int:
    """What the process has sent to the disk so far: a log, say, and a database."""
    rows = dict(row.split(": ") for row in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(rows["write_bytes"])
