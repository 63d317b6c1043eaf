"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600, owner: tuple[int, int] | None = None) -> None:
    """Put `content` at `path`, replacing what is there. Nobody ever sees a part of it, nor a mode wider than `mode`.

    Args:
        owner: uid and gid, -1 for the writer's own; None: both.

    Raises:
        OSError: nothing was changed.
    """
    with replacing(path) as temporary:
        # Narrow first: between creation and the change of owner the content must be nobody else's.
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
    """A name beside `path` to write to; it takes the place of `path` if the block ends well, else it is removed."""
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
