"""The audit log: one JSON line for each write and for each call that was denied (of floods, a sum: `denials.py`)."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from serving.auth.errors import AuditUnavailable, BadSecurity
from serving.clock import Clock

log = logging.getLogger(__name__)

_MAX_BYTES: Final = 64 << 20
_KEPT: Final = 10
_LONGEST: Final = 512  # characters of a word that a caller chose


class Line(NamedTuple):
    """What is recorded of a call; times and kinds are added. Nothing of what requests and answers hold.

    Attributes:
        key: the instance or node that it was about.
        decision: allow or deny.
        outcome: OK, or the reason of the error; "begun" before an order.
        version: at which it was stored; 0: it was not, or that is not known.
        calls: that the line stands for: it is the last of so many that the caller was denied.
    """

    identity: str
    peer: str
    method: str
    key: str
    decision: str
    rule: str
    outcome: str
    version: int
    request_id: str
    calls: int = 1


class Sink(Protocol):
    """Where lines go."""

    def write(self, line: str) -> None:
        """Append a line. Raises OSError."""
        ...

    def close(self) -> None: ...


class Audit:
    """Writes the lines; a failure is remembered until a line is written again.

    Attributes:
        fault: why the last line could not be written; empty: it was.
        lines, lost: how many were written, and how many not.
    """

    def __init__(self, sink: Sink, clock: Clock) -> None:
        self._sink, self._clock = sink, clock
        self.fault = ""
        self.lines = self.lost = 0

    def record(self, line: Line) -> bool:
        """Append a line; whether it was written."""
        try:
            self._sink.write(self._encoded(line))
        except (OSError, ValueError) as error:
            self._failed(str(error))
            return False
        if self.fault:
            log.warning("the audit log can be written again; %d lines were lost", self.lost)
        self.fault = ""
        self.lines += 1
        return True

    def require(self, line: Line) -> None:
        """Append a line without which the call must not go on. Raises AuditUnavailable."""
        if not self.record(line):
            raise AuditUnavailable(self.fault)

    def close(self) -> None:
        """No line comes after this."""
        self._sink.close()

    def _encoded(self, line: Line) -> str:
        now = datetime.fromtimestamp(self._clock.wall_ms() / 1000, UTC)
        fields: dict[str, Any] = {"time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
        for name, value in line._asdict().items():
            fields[name] = value[:_LONGEST] if isinstance(value, str) else value
        return json.dumps(fields, separators=(",", ":"))

    def _failed(self, fault: str) -> None:
        if not self.fault:
            log.error("the audit log cannot be written: %s; orders of operators are refused until it can", fault)
        self.fault = fault or "no reason is known"
        self.lost += 1


class _Handler(RotatingFileHandler):
    """The library's rotation, but errors are raised instead of printed, and a file that was taken away is made anew."""

    def emit(self, record: logging.LogRecord) -> None:
        stream = self.stream
        if stream is not None and not self._is_in_place(stream.fileno()):
            self.stream = None
            stream.close()
        super().emit(record)

    def _is_in_place(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(Path(self.baseFilename).stat(), os.fstat(descriptor))
        except FileNotFoundError:
            return False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        if self.stream is not None:  # what is left in its buffer belongs to a line that counts as lost
            stream, self.stream = self.stream, None
            with suppress(OSError):
                stream.close()
        raise  # called while the error is being handled


class FileSink:
    """Appends to a file, which is renamed when it is full; so many full ones are kept."""

    def __init__(self, path: Path, max_bytes: int = _MAX_BYTES, kept: int = _KEPT) -> None:
        """Raises BadSecurity."""
        try:
            self._handler = _Handler(path, maxBytes=max_bytes, backupCount=kept, encoding="utf-8")
        except OSError as error:
            raise BadSecurity(f"--audit-log {path}: it cannot be written: {error.strerror}") from error
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def write(self, line: str) -> None:
        self._handler.emit(logging.makeLogRecord({"msg": line}))

    def close(self) -> None:
        self._handler.close()


class LogSink:
    """Beside everything else that is logged, where no file was named; whatever the level of the log."""

    def __init__(self) -> None:
        log.setLevel(logging.INFO)

    def write(self, line: str) -> None:
        log.info("%s", line)
        for handler in logging.getLogger().handlers:  # logging itself swallows errors
            if fault := getattr(handler, "fault", ""):
                raise OSError(fault)

    def close(self) -> None:
        pass
