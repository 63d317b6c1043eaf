"""Files that are written whole or not at all, and locks that end with the process that holds them."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600, owner: tuple[int, int] | None = None) -> None:
    """Put `content` at `path`, replacing what is there. Readers never see part of it, nor a mode wider than `mode`.

    Args:
        owner: uid and gid, -1 for the writer's own; None: the writer's for both.

    Raises:
        OSError: nothing was changed.
    """
    with replacing(path) as temporary:
        # Restrictive first: nobody else may read the content between creation and the change of owner.
        file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "wb") as stream:
            if owner is not None:
                os.fchown(file, *owner)
            os.fchmod(file, mode)
            stream.write(content)
            stream.flush()
            os.fsync(file)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to; it replaces `path` if the block succeeds, else it is removed."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class Occupied(Exception):
    """Another supervisor has the directory."""


@contextmanager
def hold_lock(path: Path, taken: str = "") -> Iterator[None]:
    """Hold the lock; `taken` is the error if another process holds it. The kernel releases it when the process ends.

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
