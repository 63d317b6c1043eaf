"""Requests that come before the one ahead of them is answered: few of them wait, and no more is read meanwhile.

uvicorn reads on with every answer, so that a sender that is faster than its answers would fill the memory: a request of
twenty bytes takes two kilobytes while it waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sized
from typing import TypeVar

from uvicorn.protocols.http.flow_control import FlowControl

T = TypeVar("T")

_MOST = 100


class Waiting(deque[T]):
    """The requests that wait on one connection, the newest first."""

    def appendleft(self, request: T) -> None:
        """Raises OverflowError: a hundred are waiting already."""
        if len(self) >= _MOST:
            raise OverflowError
        super().appendleft(request)


class OneByOne(FlowControl):
    """Reads nothing as long as a request waits."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


class Trailers(list[tuple[bytes, bytes]]):
    """Takes header lines that come behind a body, and keeps none: they are not those that a proxy has looked at."""

    def append(self, line: tuple[bytes, bytes]) -> None:
        pass
