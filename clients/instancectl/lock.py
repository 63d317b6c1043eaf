"""One supervisor per directory, one host agent per socket."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Occupied(Exception):
    """Another supervisor has the directory."""


@contextmanager
def locked(path: Path, taken: str = "") -> Iterator[None]:
    """Hold the lock, or say what is taken. The kernel lets it go when the process ends, however it ends.

    Raises Occupied.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(file, 32).decode(errors="replace").strip() or "unknown"
            what = taken or f"{path.parent} is in use by another instancectl"
            raise Occupied(f"{what} already (pid {holder})") from None
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)
