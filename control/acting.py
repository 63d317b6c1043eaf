"""Leader election: the acting process holds a random word in the store, and each of its transactions compares it.

A process that wakes up from a pause writes nothing: by then the word is another's. Refreshes are puts of another key
than the word's, else they would fail the holder's own transactions. A successor takes over when neither key changed
for a whole term on its own clock, counted only while its fences prove that its watch is fresh: a store that is away, or
a pause of its own, does not count as silence of the holder. It acts once its watch shows the takeover: then it has
seen everything that the previous holder stored.

The word guards records only. What a paused process may still do to the world is bounded in effects.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NamedTuple

from control.change import Changes
from control.errors import NotActing, RecordChanged
from control.records import Kind, Records
from controlpb.v1 import control_pb2
from serving.clock import Clock
from serving.errors import ServiceError
from store.keys import new_word
from store.port import Compare, Write

log = logging.getLogger(__name__)

ACTING: Final = Kind("acting", control_pb2.Acting)
WORD: Final = "word"
REFRESH: Final = "refresh"


class Sight(NamedTuple):
    """Versions of the word and its refresh; 0: there is none."""

    word: int
    refresh: int


class HolderSilence:
    """How long the holder has provably been silent. Pure."""

    def __init__(self, term_s: float) -> None:
        self._term_s = term_s
        self._sight = Sight(-1, -1)
        self._since = self._looked = float("-inf")

    def record_sight(self, sight: Sight, asked_at: float, now: float) -> None:
        """Note that memory shows `sight` after a fence, requested at `asked_at`, has returned by `now`."""
        # After a long gap (we were paused, or the store was away) start over: the holder could perhaps not refresh.
        if sight != self._sight or asked_at - self._looked > self._term_s / 2:
            self._sight, self._since = sight, now
        self._looked = asked_at

    def is_over(self, sight: Sight) -> bool:
        """Whether the word at this sight may be taken over: it is gone, or its holder was silent for a term."""
        return not sight.word or (sight == self._sight and self._looked - self._since >= self._term_s)


class Tenure:
    """For how long the holder of the word may act, by its own clock. Pure."""

    def __init__(self, term_s: float) -> None:
        self._term_s = term_s
        self._sent_at = float("-inf")

    def extend_term(self, sent_at: float) -> None:
        """Note that a takeover or refresh sent at `sent_at` was stored: nobody takes over within a term of that."""
        self._sent_at = sent_at

    def holds(self, now: float) -> bool:
        return now - self._sent_at < self._term_s

    def is_sure(self, now: float) -> bool:
        """Whether nobody else can act for another half term, so that even a pause of that length does no harm."""
        return now - self._sent_at < self._term_s / 2


class LeaderElection:
    """Takes the word, refreshes it, and knows whether this process holds it.

    Attributes:
        changed: set whenever the result of `holds` may have changed.
    """

    def __init__(
        self,
        process: str,
        changes: Changes,
        proven: Callable[[], Awaitable[object]],
        clock: Clock,
        rng: random.Random,
        term_s: float,
    ) -> None:
        """`proven` returns when a fence sent after the call has come back."""
        self._process, self._changes, self._proven = process, changes, proven
        self._clock, self._rng, self._term_s = clock, rng, term_s
        self._records: Records[control_pb2.Acting] = changes.memory.table(ACTING)
        self._silence, self._tenure = HolderSilence(term_s), Tenure(term_s)
        self._word = 0  # ours, once our watch shows the takeover; 0: we do not act
        self._refreshes = 0
        self._soon = asyncio.Event()
        self._leaving = False
        self._records.listen(self._on_word_changed)
        self.changed = asyncio.Event()

    @property
    def process(self) -> str:
        """Who holds the word, as far as memory knows; empty: nobody."""
        holder = self._records.get(WORD)
        return holder.process if holder else ""

    def holds(self) -> bool:
        """Whether this process acts. It stops after a term without a refresh, even if nobody took the word."""
        return self._is_ours() and self._tenure.holds(self._clock.now())

    def guard(self) -> Compare:
        """The condition that the word is still ours. Raises NotActing."""
        if not self.holds():
            raise NotActing(self.why_not())
        return self._guard_of_word()

    def why_not(self) -> str:
        """Why this process does not act; empty: it does."""
        if self.holds():
            return ""
        if self._is_ours():
            return f"this process could not renew its lease as leader for {self._term_s:g} s: the store does not answer"
        return f"{self.process} is the leader, not this process" if self.process else "no process is the leader"

    def why_no_effect(self) -> str:
        """Why no effect may begin; empty: no successor can act for half a term, even if this process pauses now."""
        if why := self.why_not():
            return why
        is_sure = self._tenure.is_sure(self._clock.now())
        return "" if is_sure else f"this process could not renew its lease as leader for {self._term_s / 2:g} s"

    def doubt(self) -> None:
        """Look at the word at once, as a transaction was refused by its guards."""
        self._soon.set()

    def forget(self) -> None:
        """No longer count the stored word as ours, as the store has another history."""
        self._lose()
        self._silence = HolderSilence(self._term_s)

    # --- running ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take the word whenever it is free, and refresh it while it is ours."""
        while True:
            self._soon.clear()
            if not self._leaving:
                try:
                    await self._step()
                except ServiceError as error:
                    log.info("acting: %s", error)
                    self._soon.clear()  # that this step was refused is no reason to repeat it at once
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rng.uniform(0.7, 1.0) * self._term_s / 4):
                    await self._soon.wait()

    async def leave(self) -> None:
        """Stop acting, and let the next process act at once. If the release fails, that takes a term."""
        self._leaving = True
        if not self._word:
            return
        guard = self._guard_of_word()
        self._lose()
        try:
            await self._changes.store("acting", Write((), deletes=(self._key(WORD),)), (guard,), self._term_s / 10)
        except ServiceError as error:
            log.info("the lease as leader was not released: %s", error)

    async def _step(self) -> None:
        if self._word:
            await self._refresh()
        else:
            await self._watch_the_holder()

    async def _watch_the_holder(self) -> None:
        asked_at = self._clock.now()
        await self._proven()
        self._silence.record_sight(self._sight(), asked_at, self._clock.now())
        if self._silence.is_over(self._sight()):
            await self._take(self._sight())

    async def _take(self, sight: Sight) -> None:
        sent_at, word = self._clock.now(), new_word(self._rng)
        acting = control_pb2.Acting(word=word, process=self._process, since_unix_ms=self._clock.wall_ms())
        keys = self._key(WORD), self._key(REFRESH)
        when = tuple(Compare(key, "modified", version) for key, version in zip(keys, sight, strict=True))
        value = acting.SerializeToString(deterministic=True)
        try:
            version = await self._store(Write(when, ((keys[0], value),)), ())
        except RecordChanged:
            return  # another one was faster, or the holder is back
        await self._changes.memory.shown_soon(version, self._term_s)
        stored = self._records.stored_record(WORD)
        if stored is not None and stored.message.word == word:
            log.info("this process is the leader from now on: it alone changes records")
            self._word, self._refreshes = word, 0
            self._tenure.extend_term(sent_at)
            self._tell()

    async def _refresh(self) -> None:
        sent_at, held = self._clock.now(), self.holds()
        self._refreshes += 1
        acting = control_pb2.Acting(word=self._word, process=self._process, refreshes=self._refreshes)
        write = Write((), ((self._key(REFRESH), acting.SerializeToString(deterministic=True)),))
        await self._store(write, (self._guard_of_word(),))
        if self._word:
            self._tenure.extend_term(sent_at)
            if not held:
                self._tell()

    async def _store(self, write: Write, guards: tuple[Compare, ...]) -> int:
        return await self._changes.store("acting", write, guards, self._term_s / 2)

    def _guard_of_word(self) -> Compare:
        stored = self._records.stored_record(WORD)
        if stored is None or stored.message.word != self._word:
            raise NotActing(self.why_not())
        # Compare the whole value: unlike a version, its random word cannot occur in another history.
        return Compare(self._key(WORD), "value", stored.message.SerializeToString(deterministic=True))

    def _key(self, name: str) -> bytes:
        return self._changes.names.of(ACTING.name, name)

    def _sight(self) -> Sight:
        return Sight(self._records.version(WORD), self._records.version(REFRESH))

    def _is_ours(self) -> bool:
        stored = self._records.stored_record(WORD)
        return bool(self._word) and stored is not None and stored.message.word == self._word

    def _on_word_changed(self, name: str) -> None:
        """The word changed, or its refresh."""
        if self._word and not self._is_ours():
            log.warning("%s took over: this process is no longer the leader", self.process or "nobody yet")
            self._lose()
        if name == WORD and not self._records.version(WORD):
            self._soon.set()  # the word was given back

    def _lose(self) -> None:
        if self._word:
            self._word = 0
            self._tell()

    def _tell(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
