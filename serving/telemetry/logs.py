"""How a server logs: lines for people or JSON for programs, each with the call that it is about. See docs/logs.md."""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime
from typing import Any, Final, TextIO

from serving.calls import current
from serving.telemetry.quiet import Quiet

FORMATS: Final = ("text", "json")


class OfCall(logging.Filter):
    """Notes on each record which call it is about: `request_id` and `trace_id`; empty outside of calls."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id, record.trace_id = current.request_id(), current.trace_id()
        return True


class ToStream(logging.StreamHandler[TextIO]):
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


class ForPeople(logging.Formatter):
    """One line, with the call at its end."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        line = super().formatMessage(record)
        request_id = getattr(record, "request_id", "")
        return f"{line} [{request_id}]" if request_id else line


def for_programs() -> logging.Formatter:
    """One JSON object: time (RFC 3339, UTC), level, logger, message, request_id, trace_id, exc_info."""
    from pythonjsonlogger.json import JsonFormatter  # 20 ms that only those pay who want JSON

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
    target = ToStream(stream or sys.stderr)
    target.setFormatter(for_programs() if form == "json" else ForPeople())
    handler = Quiet(target, time.monotonic)
    handler.addFilter(OfCall())
    logging.basicConfig(level=level.upper(), handlers=[handler])
    # A warning for every malformed request of some scanner: the refusals are counted on /metrics.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
