"""The controller under test: orders append ids to books, and each id is printed once, in order, in the world."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Coroutine
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from google.protobuf import wrappers_pb2

from control import Change, Controller, EffectIntent, Kind
from control.acting import ACTING, WORD

BOOK = Kind("book", wrappers_pb2.StringValue)
NOTE = Kind("note", wrappers_pb2.StringValue)
Order = wrappers_pb2.StringValue


@dataclass
class Book:
    """A record.

    Attributes:
        ids: of the orders that took effect, in order.
        intended, printed: how many of them a process began to print, and has printed.
        word: the acting word of whoever wrote this.
    """

    ids: list[str] = field(default_factory=list)
    intended: int = 0
    printed: int = 0
    word: int = 0

    @classmethod
    def parse(cls, record: wrappers_pb2.StringValue | None) -> Book:
        return cls(**json.loads(record.value)) if record and record.value else cls()


class World(Protocol):
    """Where effects happen. They take no time, but nothing guards them."""

    def print(self, book: str, place: int, order_id: str, word: int) -> None: ...

    async def count(self, book: str) -> int:
        """How many ids of a book are printed. Raises OSError."""
        ...


class Printer:
    """One process."""

    def __init__(self, controller: Controller, world: World) -> None:
        self.controller, self._world = controller, world
        self._rng = random.Random(controller.config.process)
        self.books = controller.records(BOOK)
        controller.records(NOTE)
        self.orders = controller.events("book", Order, self._append)
        self._printing = controller.reconcile("print", self._print, lambda: list(self.books))
        self.books.listen(self._printing.trigger)
        self.controller.reconcile("note", self._note, lambda: ["all"])
        self.work: set[asyncio.Task[None]] = set()

    def _put(self, change: Change, name: str, book: Book) -> None:
        change.put(BOOK, name, self._stamped(book))

    def _stamped(self, book: Book) -> wrappers_pb2.StringValue:
        book.word = self.controller.records(ACTING)[WORD].word
        return wrappers_pb2.StringValue(value=json.dumps(asdict(book)))

    def _append(self, change: Change, name: str, order: Order) -> None:
        book = Book.parse(change.get(BOOK, name))
        book.ids.append(order.value)
        self._put(change, name, book)

    async def _print(self, name: str) -> float | None:
        """The next id: intend, print, note. What was intended before is looked up in the world first."""
        change = self.controller.change()
        book = Book.parse(change.get(BOOK, name))
        if book.printed == len(book.ids):
            return None
        book.printed = max(book.printed, await self._world.count(name))
        book.intended = min(book.printed + 1, len(book.ids))
        self._put(change, name, book)
        intent = await self.controller.intend(change)
        if book.printed < book.intended:
            await self._apart(self._effect(intent, name, book))
        return 0.0

    async def _apart(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what goes on when the run is cancelled, as a call in a thread does."""
        task = asyncio.create_task(work)
        self.work.add(task)
        task.add_done_callback(self._ended)
        await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.work.discard(task)
        if not task.cancelled():
            task.exception()  # nobody may be there to look at it

    async def _dawdle(self) -> None:
        """Mostly not at all, sometimes for longer than a successor waits."""
        if self._rng.random() < 0.2:
            await asyncio.sleep(self._rng.choice([0.05, 0.2, 2.0]) * self.controller.config.term_s)

    async def _effect(self, intent: EffectIntent, name: str, book: Book) -> None:
        await self._dawdle()
        intent.check()
        self._world.print(name, book.printed, book.ids[book.printed], book.word)

    async def _note(self, key: str) -> float:
        """A record that nobody else ever touches: only the acting word keeps a late one out."""
        change = self.controller.change()
        note = f"{self.controller.config.process}-{self.controller.version}"
        change.get(NOTE, note)
        change.put(NOTE, note, self._stamped(Book()))
        await self._apart(self._stored_late(change))
        return 0.1 * self.controller.config.term_s

    async def _stored_late(self, change: Change) -> None:
        await self._dawdle()
        await change.commit()
