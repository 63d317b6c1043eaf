"""The audit log: one JSON line for each write; of what was denied or refused, the first of a minute, and a sum."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

from serving.auth.audit_chain import Chain
from serving.clock import Clock
from serving.errors import AuditUnavailable, ServiceError

log = logging.getLogger(__name__)

_LONGEST: Final = 512  # characters of a word that a caller chose
_MAX_OWED: Final = 10_000


class AuditLine(NamedTuple):
    """The record of a call; times and kinds are added. It holds no content of requests and answers.

    Attributes:
        key: the instance or node that it was about.
        decision: allow or deny.
        outcome: OK, or the reason of the error; "begun" before an order.
        version: at which it was stored; 0: it was not, or that is not known.
        calls: how many calls, or items of batches, the line stands for; it describes the last of them.
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


class AuditSink(Protocol):
    """Where lines go.

    Attributes:
        last: the last line that was there before; empty: none.
        is_file: it is separate from the log, which can then say how far the file has come.
    """

    last: bytes
    is_file: bool

    def ready(self) -> bytes:
        """Make the sink ready for a line; return the unfinished rest of one that was broken off. Raises OSError."""
        ...

    def write(self, line: str) -> None:
        """Append a line. Raises OSError."""
        ...

    def close(self) -> None: ...


class Audit:
    """Writes the lines; a failure is remembered until a line is written again.

    Lines about what has happened already are owed meanwhile: they are written first as soon as that is possible.

    Attributes:
        fault: why the last line could not be written; empty: it was.
        lines, lost: how many were written, and how many never will be.
        keep: stores a line, as JSON, so that it outlives this process, or raises ServiceError; None: nothing does.
        chain: which line was the last, also of those that were written before this process began.
    """

    def __init__(self, sink: AuditSink, clock: Clock) -> None:
        self._sink, self._clock = sink, clock
        self.fault = ""
        self.lines = self.lost = 0
        self.keep: Callable[[str], Awaitable[None]] | None = None
        self._owed: deque[dict[str, Any]] = deque()
        self.chain = Chain(sink.last)
        self._marked, self._mark_at = "", 0.0
        if sink.last and not self.chain.sequence:
            log.error("the last line of the audit log was not written by HQ: a new chain begins after it")
        self.tell()

    def record(self, line: AuditLine) -> bool:
        """Append a line about what has happened, at once or as soon as possible; return whether it was at once."""
        return self._owe(self._fields(line))

    async def record_safely(self, line: AuditLine) -> None:
        """As `record`; a line that the log cannot take now goes to `keep`, if there is one, to outlive this process."""
        fields = self._fields(line)
        if self.keep is None:
            self._owe(fields)
            return
        if self.pay() and self._append(fields):
            return
        try:
            await self.keep(json.dumps(fields))
        except ServiceError as error:
            log.warning("a line of the audit log could not be kept in the store, only in memory: %s", error)
            self._owe(fields)

    def record_kept(self, line: str) -> bool:
        """Append a line that was kept; return whether it is in the log. Raises ValueError: it is not JSON."""
        return self.pay() and self._append(json.loads(line))

    def _owe(self, fields: dict[str, Any]) -> bool:
        self._owed.append(fields)
        if len(self._owed) > _MAX_OWED:
            self._owed.popleft()
            self.lost += 1
        return self.pay()

    def pay(self) -> bool:
        """Write the lines that are owed; return whether none is owed any more."""
        while self._owed:
            if not self._append(self._owed[0]):
                return False
            self._owed.popleft()
        return True

    def require(self, line: AuditLine) -> None:
        """Append a line without which the call must not go on. Raises AuditUnavailable."""
        if not (self.pay() and self._append(self._fields(line))):
            self.lost += 1
            raise AuditUnavailable(self.fault)

    def close(self) -> None:
        """Finish the log: no line comes after this."""
        if not self.pay():
            self.lost += len(self._owed)
            log.error("%d lines of the audit log were never written: %s", len(self._owed), self.fault)
        self.tell()
        self._sink.close()

    def tell(self, every_s: float = 0.0) -> None:
        """Log how far the audit file has come, if it has: whoever keeps the log then knows which lines it must have."""
        mark, now = self.chain.mark, self._clock.now()
        if self._sink.is_file and self.chain.sequence and mark != self._marked and now >= self._mark_at + every_s:
            self._marked, self._mark_at = mark, now
            log.info("the audit log is at %s of chain %s", mark, self.chain.name)

    def _append(self, fields: dict[str, Any]) -> bool:
        try:
            bound = self.chain.next_line(fields, self._sink.ready())
            self._sink.write(bound)
        except (OSError, ValueError) as error:
            self._on_write_failed(str(error))
            return False
        if self.fault:
            log.warning("the audit log can be written again; %d lines were lost", self.lost)
        self.fault = ""
        self.lines += 1
        self.chain.wrote(bound)
        return True

    def _fields(self, line: AuditLine) -> dict[str, Any]:
        now = datetime.fromtimestamp(self._clock.wall_ms() / 1000, UTC)
        fields: dict[str, Any] = {"time": now.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
        for name, value in line._asdict().items():
            fields[name] = value[:_LONGEST] if isinstance(value, str) else value
        return fields

    def _on_write_failed(self, fault: str) -> None:
        if not self.fault:
            log.error(
                "the audit log cannot be written: %s; until it can, writes and orders are refused, except those that "
                "only stop something, and automata begin nothing",
                fault,
            )
        self.fault = fault or "no reason given"


class LogSink:
    """Writes the lines into the process's own log, whatever its level: for a server without an audit file."""

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


_MINUTE_S: Final = 60.0
_MAX_SUMS: Final = 10_000


class _Sum:
    """Calls after the first line of a minute: how many, and the last of them."""

    __slots__ = ("began", "last", "more")

    def __init__(self, began: float) -> None:
        self.began, self.more = began, 0
        self.last: AuditLine | None = None


class Denials:
    """Hands lines about denials and refusals on to `write`, so few that nobody can rotate other lines out with them.

    For each caller, method and outcome, the first of a minute at once, then one line with the number of the others.
    Likewise for what agents may do again and again, by the instance or host that it is about.
    """

    def __init__(self, write: Callable[[AuditLine], object], clock: Clock) -> None:
        self._write, self._clock = write, clock
        self._sums: dict[tuple[str, str, str, str], _Sum] = {}  # in the order in which they began

    def callers(self) -> Collection[str]:
        """Callers that were denied recently."""
        return {caller for caller, *_ in self._sums}

    def record(self, caller: str, line: AuditLine, about: str = "") -> None:
        """Record a call of this caller (an identity, else a peer), or an item, that was denied, refused or repeated.

        `about`: the instance or host, if each is to be counted by itself.
        """
        key, now = (caller, line.method, line.outcome, about), self._clock.now()
        found = self._sums.get(key)
        if found is not None and now < found.began + _MINUTE_S:
            if len(line.key) > _LONGEST:  # kept for a minute, it may be megabytes
                line = line._replace(key=line.key[:_LONGEST])
            found.more, found.last = found.more + line.calls, line
            return
        if found is not None:
            self._end(key)
        self._write(line)
        self._sums[key] = _Sum(now)
        if len(self._sums) > _MAX_SUMS:
            self._end(next(iter(self._sums)))

    def tell_rest(self, *, all_of_it: bool = False) -> None:
        """Write the sums of minutes that are over; call it from time to time, and at the end."""
        before = self._clock.now() - _MINUTE_S
        for key, found in list(self._sums.items()):
            if not all_of_it and found.began > before:
                return
            self._end(key)

    def _end(self, key: tuple[str, str, str, str]) -> None:
        found = self._sums.pop(key)
        if found.last is not None:
            self._write(found.last._replace(calls=found.more))
