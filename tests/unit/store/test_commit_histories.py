"""Random histories of writes under faults: what each writer was told is checked against the store's own log."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.commit import Conflict
from store.keys import new_word, word_of
from store.memory import MemoryStore
from store.port import Compare, KeyChange, StoreError, UnknownOutcome
from tests.support.faulty_store import Fate, FaultyStore
from tests.support.store_parts import Parts
from tests.support.virtual_time import run_virtually

FAULTS = [Fate.AWAY, Fate.LOST, Fate.UNANSWERED, Fate.LATE]
NAMES = "abcdef"


@dataclass
class Story:
    """The outcomes that writers got: puts by write ID, deletions by name; a version, or None for unknown."""

    puts: dict[int, int | None] = field(default_factory=dict)
    deletions: list[tuple[str, int | None]] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)


class History:
    """One run: writers at one replica, another replica that replaces the epoch now and then, and faults."""

    def __init__(self, seed: int, writers: int, rate: float, cut_chance: float, epochs: int) -> None:
        self.rng = random.Random(seed)
        self.store = FaultyStore(MemoryStore(), random.Random(seed + 1))
        self.story = Story()
        self.writers, self.rate, self.cut_chance, self.epochs = writers, rate, cut_chance, epochs
        self.timeouts_s = [0.05, 0.5, 3.0, 30.0]

    async def run(self) -> None:
        async with Parts(self.store) as self.parts, Parts(self.store, "two", seed=2) as self.other:
            self.store.chances = {fate: self.rate / len(FAULTS) for fate in FAULTS}
            self.store.delay_s, self.store.cut_chance = 0.05, self.cut_chance
            async with asyncio.TaskGroup() as group:
                for _ in range(self.writers):
                    group.create_task(self._write())
                for _ in range(self.epochs):
                    group.create_task(self._replace_the_epoch())
                for _ in range(self.rng.randrange(3)):
                    group.create_task(self._change_the_session())
            self.store.chances, self.store.cut_chance = {}, 0.0
            await self.store.arrived()
        self.check()

    async def _write(self) -> None:
        await asyncio.sleep(self.rng.uniform(0, 10))
        name = self.rng.choice(NAMES)
        timeout_s = self.rng.choice(self.timeouts_s)
        if self.rng.random() < 0.3:
            await self._delete(name, timeout_s)
        else:
            await self._put(name, timeout_s)

    async def _put(self, name: str, timeout_s: float) -> None:
        write_id = new_word(self.rng)
        when = [self.parts.at(name, self._version_of(name))] if self.rng.random() < 0.5 else []
        answer = await self._answer(self.parts.write(name, *when, timeout_s=timeout_s, write_id=write_id))
        if answer != 0:
            self.story.puts[write_id] = answer

    async def _delete(self, name: str, timeout_s: float) -> None:
        # As replicas delete: only what is there, so that a deletion that took place is an event.
        there = Compare(self.parts.spec(name), "modified", 0, ">")
        answer = await self._answer(self.parts.delete(name, there, timeout_s=timeout_s))
        if answer != 0:
            self.story.deletions.append((name, answer))

    async def _answer(self, write: Awaitable[int]) -> int | None:
        """The version; None if the outcome is unknown; 0 if nothing was stored."""
        try:
            version = await write
        except UnknownOutcome:
            self.story.told["unknown"] += 1
            return None
        except (StoreError, Conflict) as error:
            self.story.told[type(error).__name__] += 1
            return 0
        self.story.told["stored"] += 1
        return version

    def _version_of(self, name: str) -> int:
        record = self.parts.records.get(self.parts.spec(name))
        return record.modified if record else 0

    async def _change_the_session(self) -> None:
        """Change the session, as heartbeats do."""
        await asyncio.sleep(self.rng.uniform(0, 10))
        await self.parts.session.change()

    async def _replace_the_epoch(self) -> None:
        await asyncio.sleep(self.rng.uniform(0, 10))
        try:
            await self.other.epoch.on_history_changed()
        except StoreError:
            return

    def check(self) -> None:
        changes = [c for b in self.store.store._log for c in b.changes if c.key.startswith(self.parts.spec(""))]
        self._check_puts([c for c in changes if c.value is not None])
        self._check_deletions([c for c in changes if c.value is None])

    def _check_puts(self, puts: list[KeyChange]) -> None:
        found = {word_of(c.value or b""): c.revision for c in puts}
        assert len(found) == len(puts), "a write took place twice"
        for write_id, revision in found.items():
            assert write_id in self.story.puts, "a write took place whose writer was told that nothing was stored"
            assert self.story.puts[write_id] in (None, revision), "a write was answered with another version"
        for write_id, version in self.story.puts.items():
            assert version is None or found.get(write_id) == version, "an acknowledged write is not in the log"

    def _check_deletions(self, gone: list[KeyChange]) -> None:
        happened = Counter((c.key, c.revision) for c in gone)
        acknowledged = Counter((self.parts.spec(n), v) for n, v in self.story.deletions if v is not None)
        assert acknowledged <= happened, "an acknowledged deletion is not in the log"
        unknown = Counter(self.parts.spec(n) for n, v in self.story.deletions if v is None)
        rest = Counter(key for key, _ in (happened - acknowledged).elements())
        assert rest <= unknown, "a deletion took place whose writer was told that nothing was stored"


@given(
    seed=st.integers(0, 2**32),
    writers=st.integers(1, 120),
    rate=st.sampled_from([0.0, 0.1, 0.4]),
    cut_chance=st.sampled_from([0.0, 0.1]),
    epochs=st.integers(0, 2),
)
def test_what_writers_are_told_is_what_the_store_did(
    seed: int, writers: int, rate: float, cut_chance: float, epochs: int
) -> None:
    history = History(seed, writers, rate, cut_chance, epochs)
    run_virtually(history.run)
    assert sum(history.story.told.values()) == writers


def test_without_faults_and_with_long_deadlines_every_write_is_stored_or_a_conflict() -> None:
    history = History(seed=1, writers=100, rate=0.0, cut_chance=0.0, epochs=0)
    history.timeouts_s = [30.0]
    run_virtually(history.run)
    assert set(history.story.told) <= {"stored", "Conflict"}
    assert history.story.told["stored"] > 50


def test_with_faults_most_writes_are_still_settled() -> None:
    told: Counter[str] = Counter()
    for seed in range(5):
        history = History(seed, writers=100, rate=0.3, cut_chance=0.05, epochs=0)
        run_virtually(history.run)
        told += history.story.told
    assert told["stored"] > 100
    assert told["unknown"] < 150


@pytest.mark.long
@pytest.mark.timeout(900)
def test_over_hundreds_of_histories_what_writers_are_told_is_what_the_store_did() -> None:
    for seed in range(400):
        history = History(seed, writers=1 + seed % 120, rate=seed % 5 / 10, cut_chance=0.1, epochs=seed % 3)
        run_virtually(history.run)
        assert sum(history.story.told.values()) == 1 + seed % 120
