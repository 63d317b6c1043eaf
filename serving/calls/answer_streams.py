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

    Like `ClosingStream` it is not a generator: there would be one for each idle watch.
    """

    __slots__ = ("_age_s", "_limit", "_timeout_s")

    def __init__(self, timeout_s: float | None, age_s: float) -> None:
        self._timeout_s, self._age_s = timeout_s, age_s
        self._limit = asyncio.timeout(age_s if timeout_s is None else min(timeout_s, age_s))

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        try:
            await self._limit.__aexit__(*raised)
        except TimeoutError as error:
            if self._timeout_s is not None and self._timeout_s <= self._age_s:
                raise DeadlineExceeded(f"the stream has reached its deadline, after {self._timeout_s:g} s") from error
            raise Retry(f"the stream ends after {self._age_s:g} s: reconnect to any replica", 0.0) from error
