"""A run in one loop and virtual time: links that are cut, transactions that get lost or come late, kills."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

from control import ControlConfig, Controller, EventRefused
from control.acting import ACTING, WORD
from serving.errors import DeadlineExceeded, OutcomeUnknown, Retry, ServiceError
from store.memory import MemoryStore
from store.port import Batch
from tests.control.printers import Order, Printer
from tests.control.story import Printed, Story
from tests.support.faulty_store import Fate, FaultyStore
from tests.support.store_link import Link
from tests.support.virtual_time import VirtualClock

PREFIX = "/printers/v1/"
TERM_S = 10.0
FAULTS = {Fate.AWAY: 0.01, Fate.LOST: 0.01, Fate.UNANSWERED: 0.01, Fate.LATE: 0.02}


@dataclass
class Seat:
    """A process that runs, with its way to the store."""

    process: str
    link: Link
    printer: Printer
    task: asyncio.Task[None]


@dataclass
class SharedWorld:
    """Prints at once, and tells of it."""

    story: Story
    counts: dict[str, int] = field(default_factory=dict)

    def print(self, book: str, place: int, order_id: str, word: int) -> None:
        self.counts[book] = max(self.counts.get(book, 0), place + 1)
        self.story.printed.append(Printed(book, place, order_id, word, asyncio.get_running_loop().time()))

    async def count(self, book: str) -> int:
        await asyncio.sleep(0.01)
        return self.counts.get(book, 0)


class SeenStore(MemoryStore):
    """Notes who acts, at the moment it is stored."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        self._story = story

    def _append(self, batch: Batch) -> None:
        super()._append(batch)
        for change in batch.changes:
            if change.key == f"{PREFIX}{ACTING.name}/{WORD}".encode() and change.value:
                word = ACTING.message.FromString(change.value).word
                self._story.acting_since.append((asyncio.get_running_loop().time(), word))


class Run:
    """Processes and clients under faults, for so many seconds."""

    def __init__(self, seed: int, *, processes: int = 3, clients: int = 3, lasts_s: float = 150.0) -> None:
        self.rng = random.Random(seed)
        self.story = Story(PREFIX)
        self.memory = SeenStore(self.story)
        self.world = SharedWorld(self.story)
        self._processes, self._clients, self._lasts_s = processes, clients, lasts_s
        self.seats: list[Seat] = []
        self._started = self._orders = 0
        self._faulty: list[FaultyStore] = []
        self.faults = 0
        self._over = False

    async def run(self) -> Story:
        for _ in range(self._processes):
            self._start()
        clients = [asyncio.create_task(self._client(f"client-{n}")) for n in range(self._clients)]
        until = asyncio.get_running_loop().time() + self._lasts_s
        while asyncio.get_running_loop().time() < until:
            await self._strike()
        self._over = True
        for store in self._faulty:
            store.chances = {}
        await asyncio.gather(*clients)
        await asyncio.sleep(20 * TERM_S)
        for seat in self.seats:
            await self._end(seat)
        self.story.batches = list(self.memory._log)
        return self.story

    def _start(self) -> None:
        self._started += 1
        faulty = FaultyStore(self.memory, random.Random(self.rng.random()), FAULTS)
        faulty.delay_s = 0.05
        self._faulty.append(faulty)
        link, process = Link(faulty), f"process-{self._started}"
        controller = Controller(
            ControlConfig(PREFIX, process, TERM_S), link, VirtualClock(), random.Random(self._started)
        )
        printer = Printer(controller, self.world)
        self.seats.append(Seat(process, link, printer, asyncio.create_task(controller.run())))

    async def _end(self, seat: Seat) -> None:
        for task in (seat.task, *seat.printer.work):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await seat.task

    async def _strike(self) -> None:
        """One fault, mostly of the process that acts; then a while without."""
        self.faults += 1
        acting = [seat for seat in self.seats if seat.printer.controller.is_acting]
        seat = self.rng.choice(acting or self.seats) if self.rng.random() < 0.7 else self.rng.choice(self.seats)
        kind = self.rng.choice(["kill", "cut", "cut", "deaf", "leave"])
        if kind == "kill":
            self.seats.remove(seat)
            await self._end(seat)
            await asyncio.sleep(self.rng.uniform(0, 2 * TERM_S))
            self._start()
        elif kind == "cut":
            seat.link.cut()
            await asyncio.sleep(self.rng.uniform(0.2, 2.5) * TERM_S)
            seat.link.mend()
        elif kind == "deaf":
            seat.link.hold_watch()
            await asyncio.sleep(self.rng.uniform(0, 2 * TERM_S))
            seat.link.release_watch()
        else:
            self.seats.remove(seat)
            await seat.printer.controller.leave()
            await self._end(seat)
            self._start()
        await asyncio.sleep(self.rng.uniform(0, TERM_S))

    async def _client(self, name: str) -> None:
        """Send orders one after the other, each again until its outcome is known."""
        acked = self.story.acked.setdefault(name, [])
        while not self._over:
            self._orders += 1
            order_id, book = f"{name}-{self._orders}", f"book-{self.rng.randrange(12)}"
            self.story.sent[order_id] = book
            while not await self._sent(order_id, book):
                await asyncio.sleep(self.rng.uniform(0, 2.0))
            acked.append(order_id)
            await asyncio.sleep(self.rng.uniform(0, 2.0))

    async def _sent(self, order_id: str, book: str) -> bool:
        if not self.seats:
            return False
        printer = self.rng.choice(self.seats).printer
        try:
            await printer.orders.submit(book, Order(value=order_id), request_id=order_id, timeout_s=8.0)
        except EventRefused:
            raise AssertionError("nothing is refused here") from None
        except (Retry, OutcomeUnknown, DeadlineExceeded, ServiceError):
            return False
        return True
