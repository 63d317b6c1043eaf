"""Processes of the controller under test over a real etcd, killed, paused and cut off in the middle of their work."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from control.acting import ACTING, WORD
from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from store.port import Compacted, Disconnected
from tests.control.judge import final_books
from tests.control.story import Printed, Story
from tests.support.faulty_proxy import Proxy
from tests.support.process_ids import wait_until_stopped

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "/printers/v1/"
QUIET_S = 90.0


class Seat:
    """A process, always the same way to etcd, always a new name."""

    def __init__(self, number: int, directory: Path, proxy: Proxy, term_s: float) -> None:
        self._number, self._directory, self.proxy, self._term_s = number, directory, proxy, term_s
        self._starts = 0
        self.is_struck = False
        self.name = ""
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._starts += 1
        self.name = f"process-{self._number}-{self._starts}"
        path = os.pathsep.join(str(ROOT / folder) for folder in ("", "proto", "clients"))
        arguments = ["--etcd", self.proxy.endpoint, "--prefix", PREFIX, "--process", self.name]
        arguments += ["--term", f"{self._term_s}", "--directory", str(self._directory)]
        with (self._directory / f"{self.name}.log").open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.control.printer_process", *arguments),
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": path},
            )

    async def pause(self, seconds: float) -> None:
        assert self._process is not None
        assert self._process.returncode is None, f"{self.name} ended by itself: see its log"
        self._process.send_signal(signal.SIGSTOP)
        wait_until_stopped(self._process.pid)
        await asyncio.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    async def end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            await self._process.wait()

    async def order(self, order_id: str, book: str, timeout_s: float) -> bool:
        """Whether it is known to have taken effect."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_unix_connection(self._directory / f"{self.name}.sock")
                try:
                    writer.write(json.dumps({"order_id": order_id, "book": book}).encode() + b"\n")
                    answer = await reader.readline()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return False
        return bool(answer) and json.loads(answer) == ""


class FaultRun:
    """So many faults, then a quiet time.

    Attributes:
        struck: how often, by kind.
    """

    def __init__(self, directory: Path, seed: int, faults: int, etcd: EmbeddedEtcd, *, term_s: float = 1.5) -> None:
        self._directory, self._faults, self._etcd, self._term_s = directory, faults, etcd, term_s
        self.rng = random.Random(seed)
        self.story = Story(PREFIX)
        self.struck: dict[str, int] = {}
        self._seats: list[Seat] = []
        self._clients_over = False
        self._orders = 0
        self._holder = ""

    async def run(self, processes: int = 4, clients: int = 4, orders: int = 0) -> Story:
        """However slow the machine, clients go on until more than `orders` have taken effect."""
        (self._directory / "world").mkdir()
        store = EtcdStore(EtcdConfig((self._etcd.endpoint,)))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            watching = asyncio.create_task(self._watch(store))
            for number in range(processes):
                proxy = await stack.enter_async_context(Proxy(self._etcd.endpoint))
                self._seats.append(Seat(number, self._directory, proxy, self._term_s))
                await self._seats[-1].start()
                stack.push_async_callback(self._seats[-1].end, signal.SIGKILL)
            work = [asyncio.create_task(self._client(f"client-{n}")) for n in range(clients)]
            await self._strike_all()
            while self.story.acks <= orders:
                await asyncio.sleep(0.1)
            self._clients_over = True
            await asyncio.gather(*work)
            await self._until_printed()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
        return self.story

    # --- faults -----------------------------------------------------------------------------------------------------

    async def _strike_all(self) -> None:
        """Two processes at most are struck at once: some of the others can act."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._faults):
                while sum(seat.is_struck for seat in self._seats) >= 2:
                    await asyncio.sleep(0.05)
                await asyncio.sleep(self.rng.uniform(0, self._term_s / 2))
                free = [seat for seat in self._seats if not seat.is_struck]
                acting = [seat for seat in free if seat.name == self._holder]
                seat = acting[0] if acting and self.rng.random() < 0.7 else self.rng.choice(free)
                seat.is_struck = True
                tasks.create_task(self._strike(seat))

    async def _strike(self, seat: Seat) -> None:
        kind = self.rng.choice(["kill", "pause", "pause", "cut", "stall", "delay", "leave"])
        self.struck[kind] = self.struck.get(kind, 0) + 1
        long_s = self.rng.uniform(0.2, 2.2) * self._term_s
        if kind in ("kill", "leave"):
            await seat.end(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            await asyncio.sleep(self.rng.uniform(0, self._term_s))
            await seat.start()
        elif kind == "pause":
            await seat.pause(2 * self._term_s if self.rng.random() < 0.7 else long_s)
        else:
            self._disturb(seat.proxy, kind)
            await asyncio.sleep(long_s)
            seat.proxy.heal()
        seat.is_struck = False

    def _disturb(self, proxy: Proxy, kind: str) -> None:
        if kind == "cut":
            proxy.cut()
        elif kind == "stall":
            proxy.stall()
        else:
            proxy.delay(0.2)

    # --- work -------------------------------------------------------------------------------------------------------

    async def _client(self, name: str) -> None:
        """Send orders one after the other, each again until its outcome is known."""
        acked = self.story.acked.setdefault(name, [])
        while not self._clients_over:
            self._orders += 1
            order_id, book = f"{name}-{self._orders}", f"book-{self.rng.randrange(12)}"
            self.story.sent[order_id] = book
            while not await self.rng.choice(self._seats).order(order_id, book, 4 * self._term_s):
                await asyncio.sleep(self.rng.uniform(0, 0.3))
            acked.append(order_id)
            await asyncio.sleep(self.rng.uniform(0, 0.2))

    async def _until_printed(self) -> None:
        """All that was ordered is printed, or that takes too long: the judge says what is missing."""
        until = time.monotonic() + QUIET_S
        while time.monotonic() < until:
            self._read_world()
            ordered = sum(len(book.ids) for book in final_books(self.story).values())
            if ordered == len(self.story.printed) and ordered >= self.story.acks:
                return
            await asyncio.sleep(0.5)

    def _read_world(self) -> None:
        self.story.printed = [
            Printed(*json.loads(line))
            for path in sorted((self._directory / "world").iterdir())
            for line in path.read_text().splitlines()
        ]

    async def _watch(self, store: EtcdStore) -> None:
        """Note every revision, and who acts as soon as it is known."""
        _, seen = await store.get(b"nothing")
        start, word = PREFIX.encode(), f"{PREFIX}{ACTING.name}/{WORD}".encode()
        while True:
            with suppress(Disconnected, Compacted):
                async with store.watch(start, start[:-1] + b"0", after=seen) as stream:
                    async for batch in stream:
                        seen = batch.revision
                        self.story.batches.append(batch)
                        for change in batch.changes:
                            if change.key == word and change.value:
                                acting = ACTING.message.FromString(change.value)
                                self._holder = acting.process
                                self.story.acting_since.append((time.monotonic(), acting.word))
            await asyncio.sleep(0.1)
