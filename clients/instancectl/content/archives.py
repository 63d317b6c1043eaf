"""The members of archives (tar, zip), read one by one, unchecked: `unpacking.py` checks them. Blocking."""

from __future__ import annotations

import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import IO

_MODE_SHIFT = 16
_MAX_TARGET_BYTES = 4096


class BadMember(ValueError):
    """A member that is not unpacked; names it and why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name!r} {why}")


class MemberKind(Enum):
    """The types of members that are unpacked."""

    FILE = auto()
    DIRECTORY = auto()
    SYMLINK = auto()
    HARD_LINK = auto()


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A member of an archive.

    Attributes:
        kind: None: of another kind, e.g. a device.
        mode: permission bits; 0: not recorded.
        mtime_s: None: not recorded.
        target: where a link leads, as written there.
        content: opens a file's content.
    """

    name: str
    kind: MemberKind | None
    mode: int
    mtime_s: float | None
    target: str
    content: Callable[[], IO[bytes]]


def read_members(archive: Path) -> Iterator[ArchiveMember]:
    """Yield the members in their order.

    Raises:
        BadMember: a link cannot be read.
        TarError, BadZipFile, ...: what the libraries raise for what is no archive, or a damaged one.
    """
    # Tar first: a tar whose last file is a zip looks like a zip, too.
    if tarfile.is_tarfile(archive):
        yield from _tar_members(archive)
    elif zipfile.is_zipfile(archive):
        yield from _zip_members(archive)
    else:
        raise tarfile.ReadError("it is neither a tar (plain, gzip, bzip2, xz) nor a zip")


def _tar_members(archive: Path) -> Iterator[ArchiveMember]:
    with tarfile.open(archive) as tar:
        for info in tar:
            yield ArchiveMember(
                info.name, _tar_kind(info), info.mode, info.mtime, info.linkname, partial(_tar_content, tar, info)
            )


def _tar_content(tar: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(info)
    assert content is not None, "asked of files only"
    return content


def _tar_kind(info: tarfile.TarInfo) -> MemberKind | None:
    checks = ((info.isreg, MemberKind.FILE), (info.isdir, MemberKind.DIRECTORY), (info.issym, MemberKind.SYMLINK))
    if info.islnk():
        return MemberKind.HARD_LINK
    return next((kind for is_such, kind in checks if is_such()), None)


_ZIP_KINDS = {
    0: MemberKind.FILE,
    stat.S_IFREG: MemberKind.FILE,
    stat.S_IFDIR: MemberKind.DIRECTORY,
    stat.S_IFLNK: MemberKind.SYMLINK,
}


def _zip_members(archive: Path) -> Iterator[ArchiveMember]:
    with zipfile.ZipFile(archive) as packed:
        for info in packed.infolist():
            mode = info.external_attr >> _MODE_SHIFT
            kind = MemberKind.DIRECTORY if info.is_dir() else _ZIP_KINDS.get(stat.S_IFMT(mode))
            target = _zip_target(packed, info) if kind is MemberKind.SYMLINK else ""
            yield ArchiveMember(info.filename, kind, stat.S_IMODE(mode), None, target, partial(packed.open, info))


def _zip_target(packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> str:
    if info.file_size > _MAX_TARGET_BYTES:
        raise BadMember(info.filename, "is a link with a target that is too long")
    return os.fsdecode(packed.read(info))
