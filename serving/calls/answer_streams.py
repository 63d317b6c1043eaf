"""Streams of answers end in time: at their deadline or age, and at once when their call is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from serving.calls.methods import Answer
from serving.errors import DeadlineExceeded, Retry


class ClosingStream:
    """Closes a stream of answers at once when its call ends, however it ends."""

    __slots__ = ("_answers",)

    def __init__(self, answers: AsyncIterator[Answer]) -> None:
        self._answers = answers

    async def __aenter__(self) -> AsyncIterator[Answer]:
        return self._answers

    async def __aexit__(self, *_: object) -> None:
        if isinstance(self._answers, AsyncGenerator):
            await self._answers.aclose()


class StreamTimeout:
    """Ends a stream at its caller's deadline, or when it is too old: with DeadlineExceeded, or Retry.

    Like `ClosingStream` it is not a generator: there would be one for each idle watch. Nor is it an `asyncio.timeout`,
    which can be put off, and takes more time and memory for that.
    """

    __slots__ = ("_age_s", "_is_late", "_task", "_timeout_s", "_timer")

    def __init__(self, timeout_s: float | None, age_s: float) -> None:
        self._timeout_s, self._age_s, self._is_late = timeout_s, age_s, False

    async def __aenter__(self) -> None:
        age_s, timeout_s = self._age_s, self._timeout_s
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        after_s = age_s if timeout_s is None else min(timeout_s, age_s)
        self._timer = asyncio.get_running_loop().call_later(after_s, self._end)

    def _end(self) -> None:
        self._is_late = True
        self._task.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: Any) -> None:
        self._timer.cancel()
        # If somebody else cancelled the task as well, it stays cancelled.
        if not self._is_late or self._task.uncancel() > 0 or kind is not asyncio.CancelledError:
            return
        if self._timeout_s is not None and self._timeout_s <= self._age_s:
            raise DeadlineExceeded(f"the stream has reached its deadline, after {self._timeout_s:g} s") from error
        raise Retry(f"the stream ends after {self._age_s:g} s: reconnect to any replica", 0.0) from error
