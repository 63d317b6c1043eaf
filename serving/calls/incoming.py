"""Data of a call beside its request: an id, how long the caller waits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Final

from serving.errors import invalid

_REQUEST_ID: Final = re.compile(r"[!-~]{1,128}")
_CONNECT_TIMEOUT: Final = re.compile(rb"[0-9]{1,10}")


class RequestIds:
    """Made-up ids of calls: unique within the process, and across processes by their prefix."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


def acceptable_request_id(text: str) -> str:
    """The caller's id if it is printable ASCII of at most 128 characters, else nothing: ids go into logs."""
    return text if _REQUEST_ID.fullmatch(text) else ""


def connect_timeout_s(headers: Mapping[bytes, bytes]) -> float | None:
    """How long a caller over Connect waits; None: it did not say. The protocol's version is checked, too.

    Raises:
        InvalidRequest: the version is not 1, or the timeout is not a number of at most ten digits.
    """
    version = headers.get(b"connect-protocol-version")
    if version is not None and version != b"1":
        raise invalid("", "connect-protocol-version must be 1")
    timeout_ms = headers.get(b"connect-timeout-ms")
    if timeout_ms is None:
        return None
    if not _CONNECT_TIMEOUT.fullmatch(timeout_ms):
        raise invalid("", "connect-timeout-ms must be a whole number of at most ten digits")
    return int(timeout_ms) / 1000
