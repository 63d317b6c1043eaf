"""A revision's directory: paths that stay inside, and its removal. Blocking."""

from __future__ import annotations

import shutil
from pathlib import Path

from instancectl.content import PrepareFailed


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it, or nothing. Raises OSError."""
    if path.is_symlink():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def inside(directory: Path, relative: str, what: str) -> Path:
    """`relative` below `directory`; its parents are made. Symlinks on the way (packages may contain some) are resolved.

    Raises:
        PrepareFailed: it would lead out of the directory; `what` is named.
        OSError: the parents cannot be made.
    """
    path = directory / relative
    if not relative or Path(relative).is_absolute() or ".." in Path(relative).parts or path == directory:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} is not a path inside the revision's directory")
    # Checked before a directory is made: a link that leads out must not be followed even for that.
    try:
        stays = path.parent.resolve().is_relative_to(directory.resolve())
    except RuntimeError:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} is a loop of symbolic links") from None
    if not stays:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} points outside the revision's directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
