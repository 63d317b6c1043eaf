"""gRPC requests that have begun and are not here yet: gRPC itself would wait for them for ever."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from grpc import aio

from serving.errors import HqError, invalid
from serving.errors.exchanges import SlowRequest

_TICKS = 4  # a late request is given up at most a quarter of the patience too late


class Arrivals:
    """Reads the one message of each call, and gives up those that do not come.

    One timer for all calls: a timer of its own would cost each call a tenth of its time.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._since: dict[asyncio.Task[Any], float] = {}  # oldest first
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._since)

    async def request(self, context: aio.ServicerContext[Any, Any]) -> bytes:
        """The message of the call that the current task serves.

        Raises:
            SlowRequest: it did not come in time.
            InvalidRequest: it is not coming: the caller sent none, or gRPC refused it as too large and said so.
        """
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._since[task] = self._loop.time()
        if self._timer is None:
            self._tick_later()
        try:
            message = await context.read()
        except asyncio.CancelledError:
            if task not in self._late or task.uncancel():
                raise
            raise self._slow() from None
        finally:
            del self._since[task]
            self._late.discard(task)
        if message is aio.EOF:
            error = invalid("", "the call ended without a request")
            error.limit = "max_request_bytes"
            raise error
        return cast("bytes", message)

    def _slow(self) -> HqError:
        return SlowRequest(f"the request did not arrive within {self._patience_s:g} s")

    def _tick_later(self) -> None:
        self._timer = self._loop.call_later(self._patience_s / _TICKS, self._tick)

    def _tick(self) -> None:
        self._timer = None
        oldest = self._loop.time() - self._patience_s
        for task, since in self._since.items():
            if since > oldest:
                break
            if task not in self._late:
                self._late.add(task)
                task.cancel()
        if self._since:
            self._tick_later()
