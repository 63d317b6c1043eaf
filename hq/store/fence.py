"""The fence: proof that the cache has caught up.

A random word is put under a key of this replica's own; when it comes back through the watch, everything that was
acknowledged anywhere before the put was sent has come back before it. A fence serves only callers who asked before its
put was sent; one is in flight at a time; one runs every few seconds even if nobody asks, since nothing else proves
freshness while the store is idle.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass

from hq.clock import Clock
from hq.errors import StoreUnavailable
from hq.store.epoch import Epoch
from hq.store.follow import Follower
from hq.store.keys import FENCE, Keys
from hq.store.port import NoSpace, Rejected, Store, Unavailable, UnknownOutcome, Write
from hq.store.words import encode_word, new_word

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FenceTimes:
    """Seconds.

    Attributes:
        idle_s: a fence runs at least so often.
        spacing_s: between two fences that only serve negative answers; five a second are enough.
        timeout_s: for the put, and again for its way back.
        retry_s: after a failure.
    """

    idle_s: float = 3.0
    spacing_s: float = 0.2
    timeout_s: float = 2.0
    retry_s: float = 0.3


class Fence:
    """Runs fences, and knows how fresh the cache is.

    Attributes:
        proven_at: when the last fence that came back had been sent, on the injected clock; None: none has.
        error: why the last one failed; empty: it did not.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        follower: Follower,
        clock: Clock,
        rng: random.Random,
        times: FenceTimes | None = None,
    ) -> None:
        self._store, self._keys, self._epoch, self._follower = store, keys, epoch, follower
        self._clock, self._rng, self._times = clock, rng, times or FenceTimes()
        self._key = keys.of(FENCE, replica)
        self._waiting: list[asyncio.Future[int]] = []
        self._asked = asyncio.Event()
        self._hurry = asyncio.Event()
        self._awaited: tuple[int, asyncio.Future[int]] | None = None
        self._word = 0
        self.proven_at: float | None = None
        self.error = ""

    def staleness_s(self) -> float | None:
        """For how long at most the cache may have missed changes; None: it was never proven fresh."""
        return None if self.proven_at is None else self._clock.now() - self.proven_at

    async def passed(self, *, hurry: bool = True) -> int:
        """Return the version of a fence that was sent after this call, once it has come back.

        Without `hurry` it may wait a fraction of a second to be shared.

        Raises:
            StoreUnavailable: it did not come back; nothing is known.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._asked.set()
        if hurry:
            self._hurry.set()
        return await future

    def seen(self, key: bytes, word: int, version: int) -> None:
        """A fence key came through the watch."""
        if key == self._key and self._awaited is not None and self._awaited[0] == word:
            future = self._awaited[1]
            if not future.done():
                future.set_result(version)

    def forget(self) -> None:
        """The history is another one: nothing that was proven holds."""
        self.proven_at = None

    async def run(self) -> None:
        """Run fences for ever."""
        while True:
            await self._next_round()
            callers, self._waiting = self._waiting, []
            self._asked.clear()
            self._hurry.clear()
            sent_at = self._clock.now()
            try:
                version = await self._round()
            except (StoreUnavailable, NoSpace, UnknownOutcome, Rejected, TimeoutError) as error:
                self._failed(callers, error)
                await asyncio.sleep(self._times.retry_s)
            else:
                self.proven_at, self.error = sent_at, ""
                _resolve(callers, version)

    async def _next_round(self) -> None:
        """Wait until a caller asks or the idle time is over; negative answers alone wait to be shared."""
        idle_s = self._times.idle_s if self.proven_at is not None else 0.05
        try:
            async with asyncio.timeout(idle_s):
                await self._asked.wait()
            async with asyncio.timeout(self._times.spacing_s):
                await self._hurry.wait()
        except TimeoutError:
            pass

    async def _round(self) -> int:
        async with asyncio.timeout(self._times.timeout_s):
            await self._follower.following.wait()
        word = new_word(self._rng)
        came_back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._awaited = (word, came_back)
        put = Write((), ((self._key, encode_word(word)),))
        self._follower.own_fence(self._key, encode_word(word))
        try:
            commit = await self._store.commit((self._epoch.guard(),), (put,), self._times.timeout_s)
        except NoSpace:
            return await self._without_writing()
        if not commit.guarded:
            raise StoreUnavailable("the store has another epoch")
        try:
            async with asyncio.timeout(self._times.timeout_s):
                return await came_back
        except TimeoutError:
            # The put went through and the watch did not bring it: the watch is dead, whatever its connection says.
            self._follower.cut()
            raise StoreUnavailable("the watch is behind: the own fence did not come back") from None

    async def _without_writing(self) -> int:
        """A full store takes no puts: read how far it is instead, and see whether everything up to there has come."""
        follower = self._follower
        _, head = await self._store.get(self._keys.epoch)
        async with asyncio.timeout(self._times.timeout_s):
            while follower.applied < head:
                count, modified, head = await self._store.newest(self._keys.prefix, self._keys.end)
                if modified <= follower.applied and count == follower.key_count:
                    break  # what moved the head lies outside the prefix
                await asyncio.sleep(0.1)
        return follower.applied

    def _failed(self, callers: Sequence[asyncio.Future[int]], error: Exception) -> None:
        self.error = str(error) or "the store did not answer in time"
        failure = error if isinstance(error, StoreUnavailable) else Unavailable(self.error)
        for future in callers:
            if not future.done():
                future.set_exception(StoreUnavailable(str(failure)))


def _resolve(callers: Sequence[asyncio.Future[int]], version: int) -> None:
    for future in callers:
        if not future.done():
            future.set_result(version)
