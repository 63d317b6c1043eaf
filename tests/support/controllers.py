"""A small controller for tests of the kit: words that are appended to books, over any store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from google.protobuf import wrappers_pb2

from control import Change, ControlConfig, Controller, Kind, Refused, UnreadableEvent
from serving.clock import Clock
from store.port import Store
from tests.support.virtual_time import VirtualClock

PREFIX = "/books/v1/"
BOOK = Kind("book", wrappers_pb2.StringValue)
Word = wrappers_pb2.StringValue


@asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[None]:
    """Run it beside what is done within; leave at its end. Raises what `run` raises."""
    task = asyncio.create_task(controller.run(), name="controller")
    try:
        yield
        if not task.done():
            await controller.leave()
    finally:
        died = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if died and not task.cancelled():
            task.result()


class Books:
    """One process of it. An event appends a word to a book; `no` is refused, `?` means nothing.

    Use as a context manager: entered when reads are served.
    """

    def __init__(
        self,
        store: Store,
        process: str = "one",
        *,
        seed: int = 1,
        term_s: float = 10.0,
        clock: Clock | None = None,
        prefix: str = PREFIX,
    ) -> None:
        config = ControlConfig(prefix, process, term_s)
        self.unrecorded = ""
        rng = random.Random(seed)
        self.controller = Controller(config, store, clock or VirtualClock(), rng, lambda: self.unrecorded)
        self.books = self.controller.records(BOOK)
        self.words = self.controller.events("book", Word, self.handle)
        self.task: asyncio.Task[None] | None = None

    def handle(self, change: Change, book: str, word: Word) -> None:
        if word.value == "?":
            raise UnreadableEvent("it means nothing")
        text = change.get(BOOK, book) or Word()
        text.value += word.value + " "
        change.put(BOOK, book, text)
        if word.value == "no":
            raise Refused(f"{book} does not take it", "NOT_FOUND")

    async def write(self, book: str, word: str, request_id: str = "", timeout_s: float = 30.0) -> None:
        await self.words.submit(book, Word(value=word), request_id=request_id, timeout_s=timeout_s)

    def read(self, book: str) -> list[str]:
        return self.books.get(book, Word()).value.split()

    async def acting(self) -> None:
        """Return when this process acts."""
        while not self.controller.is_acting:
            await asyncio.sleep(0.01)

    # --- running ----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.controller.run())
        loading = asyncio.create_task(self.controller.loaded.wait())
        await asyncio.wait((self.task, loading), return_when=asyncio.FIRST_COMPLETED)
        if self.task.done():
            self.task.result()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.task is not None
        if self.task.done() and not self.task.cancelled():
            self.task.result()
        await self.kill()

    async def kill(self) -> None:
        """Crash: nothing is given back."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
