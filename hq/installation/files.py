"""Files of the folder that `hq init` writes: readable by its owner only, whole or not there."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> bool:
    """Replace a file unless it has this content; return whether it did. Readers see the old or new file, complete."""
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    made = _write_beside(path, content, mode)
    made.replace(path)
    return True


def write_once(path: Path, content: bytes) -> bool:
    """Write a file unless there is one, which stays; return whether it was written."""
    if path.exists():
        return False
    made = _write_beside(path, content, 0o600)
    try:
        os.link(made, path)  # unlike a rename it never replaces a file
    except FileExistsError:
        return False
    finally:
        made.unlink()
    return True


def _write_beside(path: Path, content: bytes, mode: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        made.unlink()  # left by an earlier process of the same number
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(content)
    return made
