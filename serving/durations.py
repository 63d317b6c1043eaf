"""Durations as people write them in requests and files: 10s, 1.5m, 500ms; and times of requests."""

from __future__ import annotations

import re
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from serving.errors import invalid

_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:\d{1,9}(?:\.\d{1,9})?(?:ms|s|m|h))+")
_PART: Final = re.compile(r"([\d.]+)(ms|s|m|h)")


def duration_s(text: str, field: str) -> float:
    """Seconds of a duration like 10s, 1.5m, 500ms or 1m30s.

    Raises:
        InvalidRequest: it is not one; `field` is where it was written.
    """
    if not _DURATION.fullmatch(text):
        raise invalid(field, f"{text[:40]!r} is not a duration like 10s, 1.5m or 500ms")
    return sum(float(number) * _UNITS_S[unit] for number, unit in _PART.findall(text))


def span(seconds: int) -> str:
    """A whole number of seconds in the largest unit that says it exactly: 7d, 24h, 90s."""
    for size_s, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= 2 * size_s and seconds % size_s == 0:
            return f"{seconds // size_s}{unit}"
    return f"{seconds}s"


def milliseconds(field: str, value: Timestamp | Duration) -> int:
    """A time or duration in milliseconds. Raises InvalidRequest for what is none: nanos below 0, years beyond 9999."""
    try:
        return value.ToMilliseconds()
    except ValueError as error:
        raise invalid(field, str(error)) from None
