"""A short play of a whole installation in the test's own loop, written down for tests/checker.

Replicas over one faulty store in memory, clients, agents, watches; an observer of the store itself. In virtual time.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import TracebackType

from hq import keys as k
from hq.config import ReplicaConfig
from hq.registry.registry import Registry
from hq.replica import Replica
from store.memory import MemoryStore
from tests.checker import marks
from tests.checker.check import violations
from tests.checker.history import Cut, Final, Item, Range
from tests.checker.story import Limits
from tests.checker.violation import Violation
from tests.support.faulty_store import Fate, FaultyStore, forget_compacted
from tests.support.recording import Diary, item_of
from tests.support.recording_agent import Agent
from tests.support.recording_client import Client
from tests.support.recording_watch import Watch
from tests.support.simulation import Running
from tests.support.store_link import Link
from tests.support.virtual_time import VirtualClock, run_virtually


class RecordedRun:
    """Use as a context manager; `end` makes the history complete.

    Attributes:
        diary: what happened. store: what replicas reach through links of their own.
    """

    def __init__(self, seed: int = 1, timeout_s: float = 60.0, **settings: object) -> None:
        self.rng = random.Random(seed)
        self.store = FaultyStore(MemoryStore(), self.rng)
        self.store.delay_s = 0.002
        self.diary, self.keys = Diary(), k.HqKeys()
        self.replicas: list[Running] = []
        self._settings = {"liveness_timeout_s": timeout_s, "report_interval_s": timeout_s * 0.3} | settings
        self._settings.setdefault("compact_every_s", 0.0)
        self.limits = Limits(stale_after_s=10.0, liveness_timeout_s=timeout_s)
        self._noted = 0
        self._started = 0
        self._watches: list[Watch] = []

    async def __aenter__(self) -> RecordedRun:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watch in self._watches:
            await watch.close()
        for running in list(self.replicas):
            await self.stop(running)

    # --- who plays --------------------------------------------------------------------------------------------------

    async def start(self) -> Running:
        """One more replica, loaded."""
        self._started += 1
        config = ReplicaConfig(replica=f"replica-{self._started}", **self._settings)  # type: ignore[arg-type]
        link = Link(self.store)
        replica = Replica(config, link, VirtualClock(), random.Random(self.rng.random()))
        task = asyncio.create_task(replica.run())
        self.replicas.append(Running(link, Registry(replica, self.rng), task))
        await replica.loading.loaded.wait()
        return self.replicas[-1]

    async def stop(self, running: Running) -> None:
        """Crash."""
        self.replicas.remove(running)
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)
        for late in list(running.link._late):
            late.cancel()

    def at(self, number: int) -> Registry:
        return self.replicas[number].registry

    def client(self, name: str, number: int | None = None) -> Client:
        """At one replica, or at any."""
        return Client(self.diary, name, self._chooser(number))

    def agent(self, instance_id: str, number: int | None = None) -> Agent:
        return Agent(self.diary, self._chooser(number), instance_id)

    def watch(self, name: str, **wanted: str) -> Watch:
        self._watches.append(Watch(self.diary, name, wanted))
        return self._watches[-1]

    def _chooser(self, number: int | None) -> Callable[[], Registry]:
        return lambda: (self.rng.choice(self.replicas) if number is None else self.replicas[number]).registry

    # --- what happens to the store ----------------------------------------------------------------------------------

    def observe(self) -> None:
        """Write down what the store did since the last time."""
        for batch in self.store.store._log[self._noted :]:
            self.diary.events.append(marks.raw_of(batch.revision, batch.changes, self.keys, self.diary.now_ns()))
            self._noted += 1

    async def pause(self, seconds: float) -> None:
        """Time passes; the observer looks on."""
        ends = asyncio.get_running_loop().time() + seconds
        while (left := ends - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(min(left, 0.5))
            self.observe()

    @property
    def head(self) -> int:
        """The store's newest revision."""
        return self.store.store._revision

    def lose(self, fate: Fate) -> None:
        """What becomes of the next transaction that writes a spec."""
        self.store.plan(fate, touching=self.keys.spec(""))

    def disconnect(self) -> None:
        """Every watch on the store ends."""
        self.store.store.disconnect()

    async def restart(self, number: int) -> None:
        """A crash, and a new process in its place."""
        await self.stop(self.replicas[number])
        await self.start()
        self.replicas.insert(number, self.replicas.pop())

    async def compact(self) -> None:
        """What the store did so far is gone for whoever has not seen it."""
        self.observe()
        if self.store.store._compacted < self.head:
            await self.store.store.compact(self.head)
            for watch in self.store.store._watches:
                forget_compacted(watch, self.head)
        self._noted = len(self.store.store._log)

    async def restore(self, undo: int) -> None:
        """The store goes away, and comes back as it was some revisions ago."""
        self.observe()
        self.store.go_away()
        await asyncio.sleep(1)
        self.observe()
        old, new = self.store.store, MemoryStore()
        new._revision = old._revision - undo
        new._log = [copy.copy(batch) for batch in old._log if batch.revision <= new._revision]
        new._base, new._compacted = old._base, old._compacted
        new._live = new._past_state(new._revision)
        self.diary.events.append(Cut(new._revision, self.diary.now_ns()))
        self._noted = len(new._log)
        await asyncio.sleep(1)
        self.store.store, self.store.away = new, False

    # --- the end ----------------------------------------------------------------------------------------------------

    async def end(self) -> list[Violation]:
        """Everything comes to rest; what the history breaks."""
        self.store.chances, self.store.cut_chance = {}, 0.0
        await self.store.arrived()
        await self.pause(8)
        for running in self.replicas:
            self._finish(running.registry.replica)
        self.observe()
        page = await self.store.store.page(self.keys.prefix, self.keys.end, revision=0, limit=1 << 30)
        records = tuple(marks.stored_of(record, self.keys) for record in page.records)
        self.diary.events.append(Range(page.revision, records, gapless=True))
        return self.checked()

    def checked(self) -> list[Violation]:
        """What the history breaks, as it stands."""
        return violations(self.diary.events, self.limits)

    def _finish(self, replica: Replica) -> None:
        items: dict[str, Item] = {entry.traits.id: item_of(entry) for entry in replica.cache.entries()}
        final = Final(replica.config.replica, replica.cache.version, replica.cache.epoch, items)
        self.diary.events.append(final)


def played(scene: Callable[[RecordedRun], Awaitable[None]], replicas: int = 2, seed: int = 1) -> list[Violation]:
    """Play a scene to its end in virtual time; what it breaks."""

    async def play() -> list[Violation]:
        async with RecordedRun(seed) as theatre:
            for _ in range(replicas):
                await theatre.start()
            theatre.limits = replace(theatre.limits, ghost_s=120.0, gone_s=72.0)
            await scene(theatre)
            return await theatre.end()

    return run_virtually(play)
