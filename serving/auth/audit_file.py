"""The file of an audit log: only its owner reads it, one process writes it, and it is renamed when it is full."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from serving.auth.audit_chain import link_of
from serving.auth.watched_files import BadSecurity

log = logging.getLogger(__name__)

_MAX_BYTES: Final = 64 << 20
_KEPT: Final = 10
_MODE: Final = 0o600
_TAIL_BYTES: Final = 128 * 1024  # the longest line is far shorter
_PARTLY: Final = "only part of a line was written"


class FileSink:
    """Appends to a file; `kept` full ones are kept. A file that was removed is created again.

    Attributes:
        last: the last whole line that was there at the start, in this file or in the one before; empty: none.
    """

    is_file = True

    def __init__(self, path: Path, max_bytes: int = _MAX_BYTES, kept: int = _KEPT) -> None:
        """Raises BadSecurity."""
        self._path, self._max_bytes, self._kept = path, max_bytes, kept
        self._descriptor = -1
        self._size, self._full_at = 0, max_bytes
        self._is_regular = False
        self._broken_off = b""
        try:
            self._open()
            if link_of(self._broken_off) is not None:  # all of a line except its end
                self._size += os.write(self._descriptor, b"\n")
                self._found, self._broken_off = self._broken_off, b""
            self.last = self._found
            if not self.last and self._is_regular and (before := self._numbered_path(1)).exists():
                self.last = _tail(before)[0]
        except OSError as error:
            self.close()
            raise BadSecurity(
                f"--audit-log {path}: cannot be written: {error.strerror}: choose a file that this user can write"
            ) from error

    def ready(self) -> bytes:
        """Make the file ready for a line; return what is at its end, if that is not a whole line. Raises OSError."""
        if self._descriptor < 0 or not self._is_in_place():
            self.close()
            self._open()
        return self._broken_off

    def write(self, line: str) -> None:
        """Append a line. Raises OSError: then it is not there, or only a part of it, which `ready` gives back."""
        data = line.encode() + b"\n"
        if self._broken_off:
            data = b"\n" + data
        elif self._is_regular and self._size and self._size + len(data) > self._full_at:
            self._rotate()
        written = os.write(self._descriptor, data)
        if written < len(data):
            self._give_up(data[:written])
        self._size += written
        self._broken_off = b""

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with suppress(OSError):
                os.close(descriptor)

    def _give_up(self, part: bytes) -> None:
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:  # say, of an append-only file
            self._broken_off += part
            self._size += len(part)
        raise OSError(errno.ENOSPC, _PARTLY)

    def _open(self) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)
        self._descriptor = descriptor
        found = os.fstat(descriptor)
        self._is_regular, self._size = stat.S_ISREG(found.st_mode), found.st_size
        self._found = self._broken_off = b""
        if self._is_regular:
            self._lock()
            if found.st_mode & 0o777 & ~_MODE:
                self._hide(found.st_mode & 0o777)
            self._found, self._broken_off = _tail(self._path)

    def _lock(self) -> None:
        """Lock the file: two writers would break each other's chain."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise OSError(errno.EBUSY, "another process is writing to it: give each process its own file") from error

    def _hide(self, mode: int) -> None:
        try:
            os.fchmod(self._descriptor, _MODE)
        except OSError as error:
            log.warning("the audit log %s has mode %o, which cannot be changed: %s", self._path, mode, error.strerror)
        else:
            log.warning("the audit log %s had mode %o: now only its owner may read it", self._path, mode)

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def _rotate(self) -> None:
        try:
            for number in range(self._kept - 1, 0, -1):
                if (older := self._numbered_path(number)).exists():
                    older.replace(self._numbered_path(number + 1))
            self._path.replace(self._numbered_path(1))
        except OSError as error:  # say, a directory that is another user's: better a long file than lost lines
            self._full_at = self._size + self._max_bytes
            log.warning("the audit log %s is full and cannot be renamed, so it grows: %s", self._path, error)
            return
        self._full_at = self._max_bytes
        self.close()
        self._open()

    def _numbered_path(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")


def _tail(path: Path) -> tuple[bytes, bytes]:
    """The last whole line, and what comes after it."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        whole, end, rest = file.read().rpartition(b"\n")
    return (whole.rpartition(b"\n")[2] if end else b""), rest
