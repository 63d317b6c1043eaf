"""Paths that come from a spec: they stay inside the directory they are meant for."""

from __future__ import annotations

from pathlib import Path

from instancectl.content.failure import PrepareFailed


def inside(directory: Path, relative: str, what: str) -> Path:
    """`relative` below `directory`; its parents are made. Symlinks on the way (a package may bring some) count.

    Raises:
        PrepareFailed: it would lead out of the directory; `what` is named.
        OSError: the parents cannot be made.
    """
    path = directory / relative
    if not relative or Path(relative).is_absolute() or ".." in Path(relative).parts or path == directory:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} is not a path inside the revision's directory")
    # Looked at before a directory is made: a link that leads out must not be followed even for that.
    try:
        stays = path.parent.resolve().is_relative_to(directory.resolve())
    except RuntimeError:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} is a loop of symbolic links") from None
    if not stays:
        raise PrepareFailed("BadPath", f"{what}: {relative!r} points outside the revision's directory")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
