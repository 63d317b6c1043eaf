"""Container output: each process appends to a file itself, so that it never waits for us; we keep the file short.

A process that an agent of an earlier version started writes to a named pipe: what comes from there is copied, for as
long as that process lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from instancectl.background import start_in_own_thread
from instancectl.processes.confinement import ProcessUser

_CHUNK_BYTES = 64 * 1024  # the capacity of a pipe
_LAST_LINES, _LAST_BYTES = 20, 8192
_LOOK_S = 1.0
_LOOK_AGAIN_S = 0.25  # after a file was too long: a flood
_WRITE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """How much of the output is kept: `kept + 1` files of about `file_bytes` each."""

    file_bytes: int = 10 << 20
    kept: int = 3


class Output:
    """The output of one container, errors included. Open it in the event loop; it is readable by its owner only.

    Args:
        pipe: where an agent of an earlier version would have made the container's pipe.
    """

    def __init__(self, path: Path, settings: OutputSettings, pipe: Path) -> None:
        self._path = path
        self._settings = settings
        self._pipe = PipeCopy(pipe, path)
        self._task: asyncio.Task[None] | None = None
        self._is_rotating = False

    def open(self) -> None:
        """Begin to keep it short, unless that has begun. Raises OSError."""
        if self._task is not None:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(self.writer())
        self._pipe.open()
        self._task = asyncio.create_task(self._keep_short(), name=f"trim {self._path.name}")

    def writer(self, user: ProcessUser | None = None) -> int:
        """A descriptor for a new process to write to; the caller closes it. Raises OSError.

        Args:
            user: whose process it is, if not ours, so that it can open its /dev/stdout, too.
        """
        file = os.open(self._path, _WRITE, 0o600)
        if user is not None:
            os.fchown(file, user.uid, user.gid)
        return file

    @contextmanager
    def open_writer(self, user: ProcessUser | None = None) -> Iterator[int]:
        """Open, provide a writer, close both."""
        self.open()
        try:
            writer = self.writer(user)
            try:
                yield writer
            finally:
                os.close(writer)
        finally:
            self.close()

    def last_lines(self) -> str:
        """The last 20 lines of what was written, at most 8 KiB; characters that would control a terminal are `?`."""
        try:
            with self._path.open("rb") as file:
                file.seek(-min(_LAST_BYTES, os.fstat(file.fileno()).st_size), os.SEEK_END)
                text = file.read(_LAST_BYTES).decode(errors="replace")
        except OSError:
            return ""
        lines = text.splitlines()[-_LAST_LINES:]
        return "\n".join("".join(c if c.isprintable() or c == "\t" else "?" for c in line) for line in lines)

    def close(self) -> None:
        """Leave the file to a container that keeps running, and to whoever is next."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            self._pipe.close()
            with contextlib.suppress(OSError):
                if self._is_long() and not self._is_rotating:
                    rotate(self._path, self._settings)

    def _is_long(self) -> bool:
        return self._path.stat().st_size > self._settings.file_bytes

    def _rotate(self) -> None:
        try:
            rotate(self._path, self._settings)
        finally:
            self._is_rotating = False

    async def _keep_short(self) -> None:
        while True:
            is_long = False
            try:
                if is_long := self._is_long():  # in a thread: the disk may be slow, or hang
                    self._is_rotating = True
                    await start_in_own_thread(self._rotate)
            except OSError as error:
                log.warning("%s cannot be kept short: %s", self._path, error.strerror)
            await asyncio.sleep(_LOOK_AGAIN_S if is_long else _LOOK_S)


def rotate(path: Path, settings: OutputSettings) -> None:
    """Move the newest content of a file, to which others append, to `path`.1, that to `path`.2, ... Raises OSError."""
    names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, settings.kept + 1))]
    for older, newer in zip(names[:0:-1], names[-2:0:-1], strict=False):
        if newer.exists():
            newer.replace(older)
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(file, "rb+") as source:
        source.seek(-min(settings.file_bytes, os.fstat(file).st_size), os.SEEK_END)
        with os.fdopen(os.open(names[1], _WRITE | os.O_TRUNC, 0o600), "wb") as copy:
            left = 2 * settings.file_bytes  # who writes faster than we copy loses the rest
            while left > 0 and (chunk := source.read(_CHUNK_BYTES)):
                copy.write(chunk)
                left -= len(chunk)
        os.ftruncate(file, 0)


class PipeCopy:
    """Copies what comes through a named pipe to a file, if there is such a pipe."""

    def __init__(self, pipe: Path, into: Path) -> None:
        self._pipe = pipe
        self._into = into
        self._reader: int | None = None

    def open(self) -> None:
        """Begin to copy. Raises OSError."""
        try:
            if not stat.S_ISFIFO(self._pipe.lstat().st_mode):
                return
        except FileNotFoundError:
            return
        # Opened read-write, so that it never reaches end of file.
        self._reader = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(self._reader, self._copy)

    def close(self) -> None:
        """Copy no more. The pipe stays for a container that keeps running."""
        if self._reader is not None:
            asyncio.get_running_loop().remove_reader(self._reader)
            self._copy()
            os.close(self._reader)
            self._reader = None

    def _copy(self) -> None:
        """Copy one chunk. On a full disk it is lost: the container must not wait for us."""
        assert self._reader is not None
        try:
            chunk = os.read(self._reader, _CHUNK_BYTES)
            file = os.open(self._into, _WRITE, 0o600)
        except OSError:
            return
        try:
            os.write(file, chunk)
        except OSError:
            return
        finally:
            os.close(file)
