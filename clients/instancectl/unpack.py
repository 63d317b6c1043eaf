"""Unpacking archives: tar (plain, gz, bz2, xz) and zip. Blocking; called in a thread."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from pathlib import Path

from clients.instancectl.failure import PrepareFailed
from clients.instancectl.threads import Cancel

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
            # The filter refuses absolute paths, `..`, links to outside, devices, and drops set-uid.
            tar.extract(member, into, filter="data")


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
