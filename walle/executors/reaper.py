"""Runs one program, keeps what it printed last, and ends all that it left behind; `command.py` starts it as a script.

A child that calls `setsid` leaves the program's process group, and one whose parent ends is given to init: neither
would be found at the end. This process is the "subreaper" of the program (prctl(2)): whatever the program starts stays
a descendant of it. SIGTERM ends all of it at once. What can still escape is a program that kills this very process.

It needs nobody: when Wall-E dies it goes on, and writes how the program ended into the file that it has inherited. As
long as it lives the file is locked, so that the next Wall-E sees that the program runs.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import IO, Final

KEPT_BYTES: Final = 4096
_PR_SET_CHILD_SUBREAPER: Final = 36
_LONGEST_S: Final = 5.0  # to end all descendants: each round finds what was started since
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


class _Output:
    """The last lines that the program printed."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source, self._kept = source, bytearray()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        while part := os.read(self._source.fileno(), 65536):
            self._kept = (self._kept + part)[-KEPT_BYTES:]

    def text(self) -> str:
        """What was printed last, once all who could print have ended."""
        self._reading.join(_LONGEST_S)
        return self._kept.decode("utf-8", "replace")


def _wait(program: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit code, 128 and the signal that ended it as a shell has it; None: it did not end in time."""
    try:
        code = program.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    return 128 - code if code < 0 else code


def _run(argv: list[str], timeout_s: float) -> dict[str, object]:
    """Run the program; return how it ended, as it is written to the file."""
    try:
        program = subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        return {"code": 127, "output": f"{argv[0]}: {error.strerror}\n"}
    assert program.stdout is not None
    output = _Output(program.stdout)
    code = _wait(program, timeout_s)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    left = end_all(time.monotonic() + _LONGEST_S)
    unended = f"could not be ended: processes {', '.join(map(str, sorted(left)[:10]))}\n" if left else ""
    return {"code": code, "output": output.text() + unended}


def main(argv: list[str]) -> int:
    """`argv`: the file's descriptor, the seconds that the program has, and the program."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _on_sigterm)
    try:
        ended = _run(argv[2:], float(argv[1]))
    except _Terminated:  # nothing is written: it was stopped, and did not end
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_all(time.monotonic() + _LONGEST_S)
        return TERMINATED
    with os.fdopen(int(argv[0]), "w") as file:
        json.dump(ended, file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
