"""What waits in an HTTP/1.1 connection: requests behind the one ahead of them, answers that nobody reads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sized
from typing import TypeVar

from uvicorn.protocols.http.flow_control import FlowControl

from serving.limiting.admission import Admission

T = TypeVar("T")

_MOST = 100


class Waiting(deque[T]):
    """The requests that wait on one connection, the newest first."""

    def appendleft(self, request: T) -> None:
        """Raises OverflowError: a hundred are waiting already."""
        if len(self) >= _MOST:
            raise OverflowError
        super().appendleft(request)


class ReadPausing(FlowControl):
    """Reads nothing as long as a request waits."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not self._waiting:
            super().resume_reading()


class Trailers(list[tuple[bytes, bytes]]):
    """Takes header lines that come after a body, and keeps none: a proxy may not have checked them."""

    def append(self, line: tuple[bytes, bytes]) -> None:
        pass


class Stall:
    """Watches what one connection still has to send, and ends the connection if none of it is taken in time."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, admission: Admission, wait_s: float
    ) -> None:
        self._loop, self._transport, self._admission, self._wait_s = loop, transport, admission, wait_s
        self._timer: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        """Whether it is watching."""
        return self._timer is not None

    def watch(self) -> None:
        """Begin, if there is anything to send and it is not watching yet."""
        left_bytes = self._transport.get_write_buffer_size()
        if left_bytes and self._timer is None:
            self._timer = self._loop.call_later(self._wait_s, self._look, left_bytes)

    def end(self) -> None:
        """All was taken, or the connection is gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, left_bytes: int) -> None:
        self._timer = None
        if self._transport.get_write_buffer_size() < left_bytes:
            self.watch()
            return
        self._admission.refused["stalled_write_s"] += 1
        self._transport.abort()
