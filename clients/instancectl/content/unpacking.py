"""Unpacking archives that somebody else made: nothing is written, or linked, outside the directory. Blocking.

The libraries only read. Their extraction is not used: a chain of links escaped tarfile's own filter in Python 3.11.7,
and zipfile writes links as files. Every member is checked here. Links are made last, so that nothing is written through
one, and where they lead is decided when all of them are known.
"""

from __future__ import annotations

import contextlib
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from instancectl.background import Cancel
from instancectl.content import PrepareFailed
from instancectl.content.archives import ArchiveMember, BadMember, MemberKind, read_members
from instancectl.content.fetch import is_public

Parts = tuple[str, ...]

_CHUNK_BYTES = 1 << 20
_MAX_HOPS = 40  # as Linux
# zipfile passes on what its decoders raise, and raises RuntimeError for what it cannot read (passwords, other methods).
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, RuntimeError, ValueError)


def unpack(archive: Path, into: Path, what: str, cancel: Cancel) -> None:
    """Unpack into a directory, which is made or is empty.

    Modes lose set-uid, set-gid and the right of others to write; owners are not restored. Of two members with one name,
    the last one stays. If the archive is not public, only the owner may enter the directory.

    Raises:
        PrepareFailed: it is not such an archive, is damaged, or has a member that is refused (`Unpacking`).
        OSError: the disk is full, or the like.
    """
    into.mkdir(mode=0o777 if is_public(archive) else 0o700, parents=True, exist_ok=True)
    if any(into.iterdir()):
        raise PrepareFailed("UnpackFailed", f"{what}: its directory is not empty: give each package its own")
    try:
        unpacking = Unpacking(into, cancel)
        for member in read_members(archive):
            unpacking.add(member)
        unpacking.make_links()
    except (*_DAMAGED, OSError) as error:
        if getattr(error, "errno", None) is not None:
            raise  # a disk error, not a bad archive (bz2 reports that as OSError, too)
        raise PrepareFailed("UnpackFailed", f"{what}: cannot be unpacked: {error}") from None


class Unpacking:
    """Writes members below `root`, which holds nothing else; refuses what would reach out of it."""

    def __init__(self, root: Path, cancel: Cancel) -> None:
        self._root = root
        self._cancel = cancel
        self._links: dict[Parts, str] = {}

    def add(self, member: ArchiveMember) -> None:
        """Write a file or directory; keep a symbolic link for `make_links`. Raises BadMember, OSError."""
        self._cancel.check()
        place = _parts_inside(member.name, member.name)
        if member.kind is MemberKind.DIRECTORY:
            self._make_directory(place, member.name)
            return
        if not place:
            raise BadMember(member.name, "is the directory itself, but not a directory")
        self._make_directory(place[:-1], member.name)
        self._make_way(place, member.name)
        if member.kind is MemberKind.SYMLINK:
            self._links[place] = member.target
        elif member.kind is MemberKind.HARD_LINK:
            self._link_again(place, member)
        elif member.kind is MemberKind.FILE:
            self._write(self._path(place), member)
        else:
            raise BadMember(member.name, "is not a file, directory or link")

    def make_links(self) -> None:
        """Make the symbolic links. Raises BadMember: one leads out of the directory; then none is made."""
        for place in self._links:
            self._cancel.check()
            self._check_link(place)
        for place, target in self._links.items():
            self._path(place).symlink_to(target)

    def _path(self, place: Parts) -> Path:
        return self._root.joinpath(*place)

    def _make_directory(self, place: Parts, name: str) -> None:
        for depth in range(1, len(place) + 1):
            if place[:depth] in self._links:
                raise BadMember(name, "would be written through a link")
        try:
            self._path(place).mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise BadMember(name, "would be written into a file") from None

    def _make_way(self, place: Parts, name: str) -> None:
        """Remove an earlier member of this name."""
        self._links.pop(place, None)
        try:
            self._path(place).unlink(missing_ok=True)
        except (IsADirectoryError, PermissionError):
            raise BadMember(name, "takes the place of a directory") from None

    def _link_again(self, place: Parts, member: ArchiveMember) -> None:
        target = _parts_inside(member.target, member.name)
        if target in self._links:
            self._links[place] = self._links[target]
            return
        try:
            is_file = stat.S_ISREG(self._path(target).lstat().st_mode)
        except OSError:
            is_file = False
        if not is_file:
            raise BadMember(
                member.name, f"is a hard link to {member.target!r}, which is not a file before it in the archive"
            )
        os.link(self._path(target), self._path(place))

    def _write(self, path: Path, member: ArchiveMember) -> None:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "wb") as stream, member.content() as content:
            os.fchmod(file, _file_mode(member.mode))
            while chunk := content.read(_CHUNK_BYTES):
                self._cancel.check()
                stream.write(chunk)
            stream.flush()
            if member.mtime_s is not None:
                with contextlib.suppress(OverflowError, ValueError):  # a time that no file can have
                    os.utime(file, (member.mtime_s, member.mtime_s))

    def _check_link(self, link: Parts) -> None:
        """Follow a link as the kernel would once all links are there. Raises BadMember."""
        name = "/".join(link)
        at, left, hops = link[:-1], [link[-1]], 0
        while left:
            part = left.pop()
            if part == "..":
                if not at:
                    raise BadMember(name, "is a link that leads out of the directory")
                # If the directory before `..` is made later, e.g. as a link, the path could lead anywhere.
                if not self._path(at).is_dir():
                    raise BadMember(name, f"is a link by way of {'/'.join(at)!r}, which is not a directory here")
                at = at[:-1]
                continue
            at = (*at, part)
            if (target := self._links.get(at)) is None:
                continue
            hops += 1
            if hops > _MAX_HOPS:
                raise BadMember(name, "is a link that leads in circles")
            left.extend(reversed(_parts(target, name)))
            at = at[:-1]


def _parts(path: str, name: str) -> Parts:
    """The parts of a path. Raises BadMember: it is absolute."""
    if path.startswith("/"):
        raise BadMember(name, "is absolute, or a link to an absolute path")
    return PurePosixPath(path).parts


def _parts_inside(path: str, name: str) -> Parts:
    """The parts of a path. Raises BadMember: it is absolute or has `..`."""
    parts = _parts(path, name)
    if ".." in parts:
        raise BadMember(name, "points outside the directory: it has '..'")
    return parts


def _file_mode(mode: int) -> int:
    """File mode as tarfile's `data` filter sets it: readable and writable for the owner, never writable for others."""
    if not mode:
        return 0o644
    return mode & (0o755 if mode & 0o100 else 0o644) | 0o600
