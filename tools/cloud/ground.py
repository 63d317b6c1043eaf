"""The directory of a running cloud: for one cloud at a time, and removed at its end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

_MARK = "cloud.lock"
_TRIES = 80
_AGAIN_S = 0.1


class GroundTaken(Exception):
    """The directory cannot be used; str() says why and what to do."""


@contextlib.contextmanager
def ground(directory: Path) -> Iterator[Path]:
    """An empty directory of our own, removed at the end; what a killed cloud left there is removed before.

    Raises:
        GroundTaken: another cloud runs there, or it holds what no cloud has put there.
    """
    mark = directory / _MARK
    if directory.exists() and not mark.exists() and any(directory.iterdir()):
        raise GroundTaken(f"{directory} holds other things: name an empty or new directory with --data")
    directory.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(mark, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, directory)
        try:
            _clear(directory)
            (directory / ".gitignore").write_text("*\n")
            yield directory
        finally:
            _remove(directory)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
        raise GroundTaken(f"a cloud runs in {directory} (pid {holder}): stop it or name another --data") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _clear(directory: Path) -> None:
    for left in directory.iterdir():
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        elif left.name != _MARK:
            left.unlink()


def _remove(directory: Path) -> None:
    """Remove the directory until it stays removed: a process that was stopped during its start may still write."""
    for _ in range(_TRIES):
        shutil.rmtree(directory, ignore_errors=True)
        time.sleep(_AGAIN_S)
        if not directory.exists():
            return
