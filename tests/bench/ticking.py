"""Requests whose sequence goes up by itself, from a load generator that sends one file for ever.

h2load reads its file anew for each request. So a process writes the time into it meanwhile: whoever asks less often
than that never says the same thing twice. `python -m tests.bench.ticking FIRST FILE...` is that process, since to start
h2load holds a thread up.
"""

from __future__ import annotations

import asyncio
import mmap
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

_TICK_S = 0.001
_LEAST = 1 << 28  # from here on to 2^35, a varint has five bytes


def sequence() -> int:
    """The one of now: never lower than before, on this machine, and always five bytes long as a varint."""
    return _LEAST + time.monotonic_ns() // 1_000_000


@asynccontextmanager
async def ticking(files: Sequence[Path], first: int) -> AsyncIterator[None]:
    """While it is open, these files have the sequence of now where `first` stands in them as a varint."""
    command = (sys.executable, "-m", "tests.bench.ticking", str(first), *map(str, files))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert await process.stdout.readline(), f"sequence {first} stands nowhere in one of {files}"
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def main(first: int, *files: str) -> None:
    """Write for ever, until somebody kills this. Raises ValueError where `first` is not to be found."""
    maps = [_mapped(Path(file)) for file in files]
    places = [bytes(data).index(_varint(first)) for data in maps]
    print("ready", flush=True)
    while True:
        now = _varint(sequence())
        for data, place in zip(maps, places, strict=True):
            data[place : place + len(now)] = now
        time.sleep(_TICK_S)


def _mapped(file: Path) -> mmap.mmap:
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), 0)


def _varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, number.bit_length(), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
