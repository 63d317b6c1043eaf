"""Unpacking archives: tar (plain, gz, bz2, xz) and zip. Blocking; called in a thread."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

from clients.instancectl.content.failure import PrepareFailed
from clients.instancectl.content.threads import Cancel

_MODE_SHIFT = 16


def unpack(archive: Path, into: Path, what: str, cancel: Cancel) -> None:
    """Unpack into a directory, which is made. Nothing of an archive lands outside of it.

    Raises:
        PrepareFailed: it is no such archive, is damaged, or reaches out of the directory.
        OSError: the disk is full, or the like.
    """
    into.mkdir(parents=True, exist_ok=True)
    try:
        if zipfile.is_zipfile(archive):
            _unzip(archive, into, cancel)
        else:
            _untar(archive, into, cancel)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise PrepareFailed("UnpackFailed", f"{what}: cannot be unpacked: {error}") from None


def _untar(archive: Path, into: Path, cancel: Cancel) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            cancel.check()
            if hasattr(tarfile, "data_filter"):
                # The filter refuses paths and links to outside and devices, and drops set-uid.
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
        linked = (target.parent / member.linkname).resolve()
    elif member.islnk():
        linked = (root / member.linkname).resolve()
    if not (target.is_relative_to(root) and linked.is_relative_to(root)):
        raise tarfile.TarError(f"{member.name!r} reaches out of the directory")
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise tarfile.TarError(f"{member.name!r} is neither a file nor a directory nor a link")
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
