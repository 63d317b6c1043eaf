"""The contents of a revision's directories: unpacked archives (tar, zip), paths that stay inside. Blocking."""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path

from instancectl.background import Cancel
from instancectl.content import PrepareFailed

_MODE_SHIFT = 16
# zipfile passes on what its decoders raise, and raises RuntimeError for what it cannot read (passwords, other methods);
# so does pathlib for a symlink loop.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError, ValueError)


def unpack(archive: Path, into: Path, what: str, cancel: Cancel) -> None:
    """Unpack into a directory, which is made. Nothing is written outside of it.

    Raises:
        PrepareFailed: it is not such an archive, is damaged, or points outside the directory.
        OSError: the disk is full, or the like.
    """
    into.mkdir(parents=True, exist_ok=True)
    try:
        if zipfile.is_zipfile(archive):
            _unzip(archive, into, cancel)
        else:
            _untar(archive, into, cancel)
    except (*_DAMAGED, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # a disk error, not a bad archive (bz2 reports that as OSError, too)
        raise PrepareFailed("UnpackFailed", f"{what}: cannot be unpacked: {error}") from None


def _untar(archive: Path, into: Path, cancel: Cancel) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            cancel.check()
            if hasattr(tarfile, "data_filter"):
                # The filter refuses devices and paths and links that lead outside, and drops set-uid.
                tar.extract(member, into, filter="data")
            else:
                _check(member, into.resolve())
                tar.extract(member, into)


def _check(member: tarfile.TarInfo, root: Path) -> None:
    """What the filter does, for Python before 3.11.4. Raises TarError."""
    member.name = member.name.lstrip("/")
    target = (root / member.name).resolve()
    linked = target
    if member.issym():
        # Resolve from the link's future place: it replaces what is there now, which may be a link to elsewhere.
        linked = ((root / member.name).parent.resolve() / member.linkname).resolve()
    elif member.islnk():
        linked = (root / member.linkname).resolve()
    if not (target.is_relative_to(root) and linked.is_relative_to(root)):
        raise tarfile.TarError(f"{member.name!r} points outside the directory")
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise tarfile.TarError(f"{member.name!r} is not a file, directory or link")
    member.mode &= 0o755


def _unzip(archive: Path, into: Path, cancel: Cancel) -> None:
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            cancel.check()
            target = Path(packed.extract(member, into))
            mode = member.external_attr >> _MODE_SHIFT & 0o777
            if mode and not member.is_dir():
                target.chmod(mode)


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
