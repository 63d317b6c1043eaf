"""The audit log: one JSON line for each write and for each call that was denied; of floods of denials, a sum."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from serving.auth.audit_chain import Chain
from serving.clock import Clock
from serving.errors import AuditUnavailable

log = logging.getLogger(__name__)

_LONGEST: Final = 512  # characters of a word that a caller chose


class Line(NamedTuple):
    """What is recorded of a call; times and kinds are added. Nothing of what requests and answers hold.

    Attributes:
        key: the instance or node that it was about.
        decision: allow or deny.
        outcome: OK, or the reason of the error; "begun" before an order.
        version: at which it was stored; 0: it was not, or that is not known.
        calls: how many calls the line stands for: it is the last of that many that the caller was denied.
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
    """Where lines go.

    Attributes:
        last: the last line that was there before; empty: none.
        is_file: it is separate from the log, which can then say how far the file has come.
    """

    last: bytes
    is_file: bool

    def ready(self) -> bytes:
        """Make it ready for a line; return the unfinished rest of a line that was broken off. Raises OSError."""
        ...

    def write(self, line: str) -> None:
        """Append a line. Raises OSError."""
        ...

    def close(self) -> None: ...


class Audit:
    """Writes the lines; a failure is remembered until a line is written again.

    Attributes:
        fault: why the last line could not be written; empty: it was.
        lines, lost: how many were written, and how many not.
        chain: which line was the last, also of those that were written before this process began.
    """

    def __init__(self, sink: Sink, clock: Clock) -> None:
        self._sink, self._clock = sink, clock
        self.fault = ""
        self.lines = self.lost = 0
        self.chain = Chain(sink.last)
        self._marked, self._mark_at = "", 0.0
        if sink.last and not self.chain.sequence:
            log.error("the last line of the audit log was not written by HQ: a new chain begins after it")
        self.tell()

    def record(self, line: Line) -> bool:
        """Append a line; return whether it was written."""
        try:
            bound = self.chain.bound(self._fields(line), self._sink.ready())
            self._sink.write(bound)
        except (OSError, ValueError) as error:
            self._failed(str(error))
            return False
        if self.fault:
            log.warning("the audit log can be written again; %d lines were lost", self.lost)
        self.fault = ""
        self.lines += 1
        self.chain.wrote(bound)
        return True

    def require(self, line: Line) -> None:
        """Append a line without which the call must not go on. Raises AuditUnavailable."""
        if not self.record(line):
            raise AuditUnavailable(self.fault)

    def close(self) -> None:
        """Finish the log: no line comes after this."""
        self.tell()
        self._sink.close()

    def tell(self, every_s: float = 0.0) -> None:
        """Say in the log how far the file has come, if it has, so that who keeps the log knows what must be there."""
        mark, now = self.chain.mark, self._clock.now()
        if self._sink.is_file and self.chain.sequence and mark != self._marked and now >= self._mark_at + every_s:
            self._marked, self._mark_at = mark, now
            log.info("the audit log is at %s of chain %s", mark, self.chain.name)

    def _fields(self, line: Line) -> dict[str, Any]:
        now = datetime.fromtimestamp(self._clock.wall_ms() / 1000, UTC)
        fields: dict[str, Any] = {"time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
        for name, value in line._asdict().items():
            fields[name] = value[:_LONGEST] if isinstance(value, str) else value
        return fields

    def _failed(self, fault: str) -> None:
        if not self.fault:
            log.error(
                "the audit log cannot be written: %s; orders are refused until it can, except those that only stop",
                fault,
            )
        self.fault = fault or "no reason given"
        self.lost += 1


class LogSink:
    """Among everything else that is logged, if no file was named; whatever the level of the log."""

    last, is_file = b"", False

    def __init__(self) -> None:
        log.setLevel(logging.INFO)

    def ready(self) -> bytes:
        return b""

    def write(self, line: str) -> None:
        log.info("%s", line)
        for handler in logging.getLogger().handlers:  # logging itself swallows errors
            if fault := getattr(handler, "fault", ""):
                raise OSError(fault)

    def close(self) -> None:
        pass


_PER_S: Final = 10.0
_BURST: Final = 200.0
_MAX_CALLERS: Final = 10_000


class _Caller:
    """How many lines may be written, as of when; how many calls were left out since the last line, and the last one."""

    __slots__ = ("last", "left_out", "lines", "since")

    def __init__(self, now: float) -> None:
        self.lines, self.since, self.left_out = _BURST, now, 0
        self.last: Line | None = None


class Denials:
    """Hands lines on to `write`: of each caller 200 at once, then ten a second, each with the number of its calls."""

    def __init__(self, write: Callable[[Line], object], clock: Clock) -> None:
        self._write, self._clock = write, clock
        self._callers: dict[str, _Caller] = {}  # the one that was denied longest ago is first

    def callers(self) -> Collection[str]:
        """Those that were denied recently."""
        return self._callers.keys()

    def record(self, caller: str, line: Line) -> None:
        """A call of this caller (an identity, else a peer) was denied."""
        found = self._callers.pop(caller, None) or _Caller(self._clock.now())
        self._callers[caller] = found
        found.left_out, found.last = found.left_out + line.calls, line
        self._tell(found)
        if len(self._callers) > _MAX_CALLERS:
            oldest = self._callers.pop(next(iter(self._callers)))
            self._sum_up(oldest)

    def tell_rest(self, *, all_of_it: bool = False) -> None:
        """Write what was left out and may be written now; call it from time to time, and at the end."""
        for name, caller in list(self._callers.items()):
            if all_of_it:
                self._sum_up(caller)
            else:
                self._tell(caller)
            if caller.last is None and caller.lines >= _BURST:
                del self._callers[name]

    def _tell(self, caller: _Caller) -> None:
        now = self._clock.now()
        caller.lines = min(_BURST, caller.lines + (now - caller.since) * _PER_S)
        caller.since = now
        if caller.last is not None and caller.lines >= 1.0:
            caller.lines -= 1.0
            self._sum_up(caller)

    def _sum_up(self, caller: _Caller) -> None:
        if caller.last is not None:
            self._write(caller.last._replace(calls=caller.left_out))
        caller.left_out, caller.last = 0, None
