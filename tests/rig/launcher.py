"""`hq` with a wall clock that a test can make jump: `python -m tests.rig.launcher CLOCK_FILE serve --etcd ...`.

The file holds eight bytes: by how many milliseconds the wall clock is off, as a little-endian integer. It may change
at any time. The monotonic clock, which HQ measures silence on, is left alone: as a real step leaves it.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path

from serving.clock import SystemClock

_PR_SET_PDEATHSIG = 1
_OFFSET = struct.Struct("<q")


class JumpingClock(SystemClock):
    """The machine's clocks, the wall clock off by what a file says."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._offset = mmap.mmap(file.fileno(), _OFFSET.size, access=mmap.ACCESS_READ)

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(_OFFSET.unpack_from(self._offset)[0])


def set_offset(path: Path, offset_ms: int) -> None:
    """Make the wall clocks of all processes that look at this file jump."""
    if not path.exists():
        path.write_bytes(_OFFSET.pack(offset_ms))
        return
    with path.open("r+b") as file:  # in place: a new file would not be the one that they look at
        file.write(_OFFSET.pack(offset_ms))


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

    clock = JumpingClock(Path(sys.argv.pop(1)))
    hq_main.SystemClock = lambda: clock  # type: ignore[attr-defined,assignment]
    hq_main.cli(prog_name="hq")


if __name__ == "__main__":
    main()
