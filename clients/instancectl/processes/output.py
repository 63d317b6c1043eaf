"""Container output: through a named pipe into a rotated log, so that a flood costs neither disk nor time.

The pipe has a name so that a container outlives us: it holds both ends itself, blocks when the pipe is full, and
continues when the next supervisor opens the pipe again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

_CHUNK_BYTES = 64 * 1024  # the capacity of a pipe
_PAUSE_S = 0.002
_LAST_CHUNKS = 16


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """How much of the output is kept: `kept + 1` files of `file_bytes` each."""

    file_bytes: int = 10 << 20
    kept: int = 3


class Output:
    """The output of one container, errors included. Open it in the event loop; it is readable by its owner only."""

    def __init__(self, pipe: Path, log: Path, settings: OutputSettings) -> None:
        self._pipe = pipe
        self._log = log
        self._settings = settings
        self._reader: int | None = None
        self._handler: RotatingFileHandler | None = None

    def open(self) -> None:
        """Begin to copy, unless it has begun. Raises OSError."""
        if self._reader is not None:
            return
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (self._pipe.exists() and stat.S_ISFIFO(self._pipe.stat().st_mode)):
            self._pipe.unlink(missing_ok=True)
            os.mkfifo(self._pipe, 0o600)
        # Opened read-write, so that it never reaches end of file.
        reader = os.open(self._pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._handler = _handler(self._log, self._settings)
        except OSError:
            os.close(reader)
            raise
        self._reader = reader
        self._listen()

    def writer(self) -> int:
        """A descriptor for a new process to write to; the caller closes it. Raises OSError."""
        # Read-write, too: a process with a write-only end would die of SIGPIPE when we die.
        return os.open(self._pipe, os.O_RDWR | os.O_CLOEXEC)

    @contextmanager
    def open_writer(self) -> Iterator[int]:
        """Open, provide a writer, close both; the pipe is removed."""
        self.open()
        try:
            writer = self.writer()
            try:
                yield writer
            finally:
                os.close(writer)
        finally:
            self.close()
            self._pipe.unlink(missing_ok=True)

    def close(self) -> None:
        """Copy what is there and stop. The pipe stays for a container that keeps running."""
        if self._reader is None or self._handler is None:
            return
        asyncio.get_running_loop().remove_reader(self._reader)
        for _ in range(_LAST_CHUNKS):
            if not self._copy():
                break
        os.close(self._reader)
        self._handler.close()
        self._reader = None

    def _listen(self) -> None:
        if self._reader is not None:
            asyncio.get_running_loop().add_reader(self._reader, self._on_readable)

    def _on_readable(self) -> None:
        """One chunk, then a pause if there is more: a flood is slowed down to about 30 MB/s."""
        if self._copy() >= _CHUNK_BYTES and self._reader is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._reader)
            loop.call_later(_PAUSE_S, self._listen)

    def _copy(self) -> int:
        """Copy what is there, at most one chunk; return how many bytes."""
        assert self._reader is not None
        assert self._handler is not None
        try:
            chunk = os.read(self._reader, _CHUNK_BYTES)
        except BlockingIOError:
            return 0
        text = chunk.decode(errors="backslashreplace")
        self._handler.handle(logging.LogRecord("", logging.INFO, "", 0, text, None, None))
        return len(chunk)


def _handler(log: Path, settings: OutputSettings) -> RotatingFileHandler:
    handler = _Quiet(log, maxBytes=settings.file_bytes, backupCount=settings.kept, encoding="utf-8")
    handler.terminator = ""
    return handler


class _Quiet(RotatingFileHandler):
    """A full disk must not fill our own log with complaints about the output of others."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """The output is lost."""
