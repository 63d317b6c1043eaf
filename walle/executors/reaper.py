"""Runs one program, and ends with all that it left behind; started by `command.py` as a script of its own.

A child that calls `setsid` leaves the program's process group, and one whose parent ends is given to init: neither
would be found at the end. This process is the "subreaper" of the program (prctl(2)): whatever the program starts stays
a descendant of it. SIGTERM ends all of it at once. What can still escape is a program that kills this very process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36
_LONGEST_S: Final = 5.0  # to end them: each round finds what was started since
TERMINATED: Final = 143


class _Terminated(BaseException):
    """SIGTERM came."""


def _on_sigterm(_number: int, _frame: FrameType | None) -> None:
    raise _Terminated


def descendants(pid: int) -> set[int]:
    """All processes below one, as far as they are not reaped yet."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if fields[0] != "Z":
                below.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = set[int](), [pid]
    while left:
        for child in below.get(left.pop(), ()):
            if child not in found:
                found.add(child)
                left.append(child)
    return found


def end_all(until: float) -> set[int]:
    """Kill every descendant, and those that they start meanwhile; what is left when the time is over."""
    while left := descendants(os.getpid()):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:  # it has ended, or is another user's
                continue
        if time.monotonic() >= until:
            return left
        time.sleep(0.01)
    return set()


def _run(argv: list[str]) -> int:
    try:
        code = subprocess.Popen(argv, start_new_session=True).wait()
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return 127
    return 128 - code if code < 0 else code


def main(argv: list[str]) -> int:
    """The program's exit code; 128 and the signal that ended it, as a shell has it."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _on_sigterm)
    try:
        code = _run(argv)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        code = TERMINATED
    if left := end_all(time.monotonic() + _LONGEST_S):
        print(f"could not be ended: processes {', '.join(map(str, sorted(left)[:10]))}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
