"""`hq` that a test can trouble from inside: `python -m tests.rig.launcher TROUBLE_FILE serve --etcd ...`.

The file holds two little-endian integers, which may change at any time: by how many milliseconds the wall clock is off
(the monotonic clock, which HQ measures silence on, is left alone: as a real step leaves it), and what is refused.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from serving.clock import SystemClock

_PR_SET_PDEATHSIG = 1
_TROUBLE = struct.Struct("<qq")
NOTHING, ALL_CALLS, HEARTBEATS = range(3)
"""What is refused: calls, as if too many were under way; or transactions with heartbeats, as if etcd refused them."""


class JumpingClock(SystemClock):
    """The machine's clocks, the wall clock off by what a file says."""

    def __init__(self, trouble: mmap.mmap) -> None:
        self._trouble = trouble

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(_TROUBLE.unpack_from(self._trouble)[0])


def trouble(path: Path, *, offset_ms: int | None = None, refused: int | None = None) -> None:
    """Set what is told, for all processes that look at this file."""
    if not path.exists():
        path.write_bytes(_TROUBLE.pack(0, NOTHING))
    was = _TROUBLE.unpack(path.read_bytes())
    with path.open("r+b") as file:  # in place: a new file would not be the one that they look at
        file.write(_TROUBLE.pack(was[0] if offset_ms is None else offset_ms, was[1] if refused is None else refused))


def refuse_as_told(trouble: mmap.mmap) -> None:
    """Let this process refuse what the file says."""
    from serving.errors import Overloaded
    from serving.limiting.admission import Admission
    from store.etcd import EtcdStore
    from store.port import Commit, Compare, Unavailable, Write

    check_call, commit = Admission.check_call, EtcdStore.commit

    def checked(self: Admission, peer: str) -> None:
        if _TROUBLE.unpack_from(trouble)[1] == ALL_CALLS:
            raise Overloaded("the rig says that too many calls are under way", limit="max_calls")
        check_call(self, peer)

    async def committed(
        self: EtcdStore, guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float
    ) -> Commit:
        told = _TROUBLE.unpack_from(trouble)[1]
        if told == HEARTBEATS and any(b"/beats/" in key for write in writes for key, _ in write.puts):
            raise Unavailable("the rig says that etcd refuses heartbeats")
        return await commit(self, guards, writes, timeout_s)

    Admission.check_call = checked  # type: ignore[method-assign]
    EtcdStore.commit = committed  # type: ignore[method-assign]


def die_with_parent() -> None:
    """On Linux: a rig that is killed leaves nobody behind, not even those that it had stopped. Call it first of all."""
    parent = os.getppid()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent == 1 or os.getppid() != parent:  # it was gone before
        sys.exit("whoever started this is gone")


def main() -> None:
    die_with_parent()
    # Not before: it takes a second, in which the parent may die.
    from hq import main as hq_main

    with Path(sys.argv.pop(1)).open("rb") as file:
        told = mmap.mmap(file.fileno(), _TROUBLE.size, access=mmap.ACCESS_READ)
    clock = JumpingClock(told)
    refuse_as_told(told)
    hq_main.SystemClock = lambda: clock  # type: ignore[attr-defined,assignment]
    hq_main.cli(prog_name="hq")


if __name__ == "__main__":
    main()
