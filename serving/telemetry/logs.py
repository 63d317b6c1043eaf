"""How a server logs: lines for people or JSON for programs, each with the call that it belongs to. See docs/logs.md."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from serving.calls import current

FORMATS: Final = ("text", "json")


class CallFields(logging.Filter):
    """Notes on each record which call it belongs to: `request_id` and `trace_id`; empty outside of calls."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id, record.trace_id = current.request_id(), current.trace_id()
        return True


class LogStream(logging.StreamHandler[TextIO]):
    """Remembers as `fault` why its last record could not be written; empty: it was."""

    fault = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.fault = ""
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            self.fault = str(error)
        else:
            super().handleError(record)


_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class TextFormatter(logging.Formatter):
    """One line, with the call at its end. Callers' words cannot begin a new line, which would look like ours."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        line = _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], super().formatMessage(record))
        request_id = getattr(record, "request_id", "")
        return f"{line} [{request_id}]" if request_id else line


def json_formatter() -> logging.Formatter:
    """One JSON object: time (RFC 3339, UTC), level, logger, message, request_id, trace_id, exc_info."""
    from pythonjsonlogger.json import JsonFormatter  # takes 20 ms, which only JSON logs need

    class Formatter(JsonFormatter):
        def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
            at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            log_data.update(time=at, level=record.levelname.lower(), logger=record.name)
            super().add_fields(log_data, record, message_dict)
            for name in ("request_id", "trace_id"):
                if not log_data.get(name):
                    log_data.pop(name, None)

    return Formatter("%(message)s %(request_id)s %(trace_id)s", defaults={"request_id": "", "trace_id": ""})


def set_up_logs(level: str, form: str, stream: TextIO | None = None) -> None:
    """Send everything from this level on to a stream (standard error), in one of FORMATS."""
    target = LogStream(stream or sys.stderr)
    target.setFormatter(json_formatter() if form == "json" else TextFormatter())
    handler = RepeatFilter(target, time.monotonic)
    handler.addFilter(CallFields())
    logging.basicConfig(level=level.upper(), handlers=[handler])


_MOST_KINDS: Final = 1_000


class _LogSource:
    """Records of one place in the code: since when, how many were let through, the last one that was not."""

    __slots__ = ("last", "left_out", "since", "told")

    def __init__(self, since: float) -> None:
        self.since, self.told, self.left_out = since, 0, 0
        self.last: logging.LogRecord | None = None


class RepeatFilter(logging.Handler):
    """Hands records on to another handler: of each kind at most `most` per window, then one that counts the rest.

    A kind is a logger, a level and a message without its arguments.
    """

    def __init__(self, target: logging.Handler, now: Callable[[], float], *, most: int = 10, window_s: float = 10.0):
        """`now`: seconds on a clock that never steps."""
        super().__init__()
        self._target, self._now, self._most, self._window_s = target, now, most, window_s
        self._kinds: dict[tuple[str, int, str], _LogSource] = {}  # in order of `since`

    @property
    def fault(self) -> str:
        """Why the other handler could not write its last record; empty: it could, or does not say."""
        return str(getattr(self._target, "fault", ""))

    def emit(self, record: logging.LogRecord) -> None:
        now = self._now()
        self._tell_old(now)
        # A message passed on as it is ("%s") is a kind of its own: lines of the audit log must not be left out.
        key = (record.name, record.levelno, record.getMessage() if record.msg == "%s" else str(record.msg))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _LogSource(now)
        if kind.told < self._most:
            kind.told += 1
            self._target.handle(record)
        else:
            kind.left_out, kind.last = kind.left_out + 1, record

    def close(self) -> None:
        """Report the rest."""
        self._tell_old(float("inf"))
        self._target.close()
        super().close()

    def _tell_old(self, now: float) -> None:
        while self._kinds:
            key, kind = next(iter(self._kinds.items()))
            if kind.since + self._window_s > now and len(self._kinds) <= _MOST_KINDS:
                return
            del self._kinds[key]
            if kind.last is not None:
                self._target.handle(self._summary(kind.last, kind.left_out))

    def _summary(self, last: logging.LogRecord, left_out: int) -> logging.LogRecord:
        words = f"repeated {left_out} times within {self._window_s:.0f} s: {last.getMessage()}"
        return logging.LogRecord(last.name, last.levelno, last.pathname, last.lineno, words, None, None)
