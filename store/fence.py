"""The fence: proof that the cache has caught up.

A random word is put under a key of this replica's own; when it comes back through the watch, everything that was
acknowledged anywhere before the put was sent has come back before it. A fence serves everyone who asked before its put
was sent, and nobody else. One is in flight at a time, and they are spaced, so that more callers do not cost the store
more writes. One runs every few seconds even if nobody asks, since nothing else proves freshness while the store is
idle.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from store.epoch import Epoch
from store.flight import Closed
from store.follow import StoreFollower
from store.keys import FENCE, Keys, encode_word, new_word
from store.port import NoSpace, Store, StoreClock, StoreError, Unavailable, UnknownOutcome, Write

log = logging.getLogger(__name__)

_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class FenceTimes:
    """Seconds.

    Attributes:
        idle_s: a fence runs at least this often.
        spacing_s: between the beginnings of two fences; one asked for after a quiet time begins at once.
        timeout_s: for the put, and again for its way back.
        retry_s: after a failure.
    """

    idle_s: float = 3.0
    spacing_s: float = 0.02
    timeout_s: float = 2.0
    retry_s: float = 0.3


class Fence:
    """Runs fences, and knows how fresh the cache is.

    Attributes:
        proven_at: when the last fence that came back had been sent, on the injected clock; None: none has.
        error: why the last one failed; empty: it did not.
        store_is_full: the last one could not be put: memory may be fresh, but nothing can be stored.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        follower: StoreFollower,
        clock: StoreClock,
        rng: random.Random,
        times: FenceTimes | None = None,
        errors: Callable[[StoreError], Exception] = lambda error: error,
    ) -> None:
        """`errors`: makes what callers of `passed` see instead of a StoreError."""
        self._store, self._keys, self._epoch, self._follower = store, keys, epoch, follower
        self._clock, self._rng, self._times, self._errors = clock, rng, times or FenceTimes(), errors
        self._key = keys.of(FENCE, replica)
        self._waiting: list[asyncio.Future[int]] = []
        self._asked = asyncio.Event()
        self._callers: list[asyncio.Future[int]] = []
        self._awaited: tuple[int, asyncio.Future[int]] | None = None
        self._proven_head = 0
        self._sent_at = float("-inf")
        self._closed = False
        self.proven_at: float | None = None
        self.error = ""
        self.store_is_full = False

    def staleness_s(self) -> float | None:
        """For how long at most the cache may have missed changes; None: it was never proven fresh."""
        return None if self.proven_at is None else self._clock.now() - self.proven_at

    async def wait_for_fence(self) -> int:
        """Return the version of a fence that was sent after this call, once it has come back.

        Raises:
            Unavailable: it did not come back; nothing is known.
            Closed: it will not come back any more.
        """
        if self._closed:
            raise self._errors(Closed("this replica is shutting down"))
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._asked.set()
        return await future

    def on_fence_key(self, key: bytes, word: int, version: int) -> None:
        """Take note of a fence key from the watch, perhaps the one that is awaited."""
        if key == self._key and self._awaited is not None and self._awaited[0] == word:
            future = self._awaited[1]
            if not future.done():
                future.set_result(version)

    def forget(self) -> None:
        """Forget what was proven: the history is another one."""
        self.proven_at, self._proven_head = None, 0

    async def run(self) -> None:
        """Run fences for ever."""
        try:
            while True:
                await self._next_round()
                await self._serve()
        finally:
            self._closed = True
            self._fail([*self._callers, *self._waiting], Closed("this replica is shutting down"))

    async def _serve(self) -> None:
        """Run one fence, for all who asked before it."""
        self._callers, self._waiting = self._waiting, []
        self._asked.clear()
        sent_at = self._sent_at = self._clock.now()
        try:
            version = await self._round()
        except StoreError as error:
            self.error = str(error)
            self._fail(self._callers, Unavailable(self.error))
            await asyncio.sleep(self._times.retry_s)
        else:
            self.proven_at, self.error = sent_at, ""
            for future in self._callers:
                if not future.done():
                    future.set_result(version)

    async def _next_round(self) -> None:
        """Wait until a caller asks or the idle time is over, and until the last fence is long enough ago."""
        idle_s = self._times.idle_s if self.proven_at is not None else 0.05
        with suppress(TimeoutError):
            async with asyncio.timeout(idle_s):
                await self._asked.wait()
        if (left_s := self._sent_at + self._times.spacing_s - self._clock.now()) > 0:
            await asyncio.sleep(left_s)

    async def _round(self) -> int:
        try:
            async with asyncio.timeout(self._times.timeout_s):
                await self._follower.following.wait()
        except TimeoutError:
            raise Unavailable("no watch on the store is open") from None
        word = new_word(self._rng)
        came_back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._awaited = (word, came_back)
        before = self._follower.applied
        try:
            await self._put_word(word)
            self.store_is_full = False
        except NoSpace:
            self.store_is_full = True
            return await self._without_writing()
        except UnknownOutcome:
            if not came_back.done():
                raise
        try:
            async with asyncio.timeout(self._times.timeout_s):
                return await came_back
        except TimeoutError:
            raise self._behind(before) from None

    async def _put_word(self, word: int) -> None:
        value = encode_word(word)
        self._follower.own_fence(self._key, value)
        put = Write((), ((self._key, value),))
        commit = await self._store.commit((self._epoch.guard(),), (put,), self._times.timeout_s)
        if not commit.guarded:
            raise Unavailable("the store has another epoch")

    async def _without_writing(self) -> int:
        """A full store takes no puts: read its head revision instead, and check that everything up to it has come."""
        follower = self._follower
        before = follower.applied
        record, head = await self._store.get(self._keys.epoch)
        if not self._epoch.stands_in(record):
            raise Unavailable("the store has another epoch")
        try:
            async with asyncio.timeout(self._times.timeout_s):
                while max(follower.applied, self._proven_head) < head:
                    if await self._is_complete():
                        self._proven_head = head
                    else:
                        await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise self._behind(before) from None
        return follower.applied

    async def _is_complete(self) -> bool:
        """Whether what moved the store's head lies outside the prefix. Costs etcd a look at every key."""
        count, modified, _ = await self._store.newest(self._keys.prefix, self._keys.end)
        return modified <= self._follower.applied and count == self._follower.key_count

    def _behind(self, before: int) -> Unavailable:
        """The error that a fence did not come back. Cuts a watch that brought nothing else either: it is dead."""
        if self._follower.applied == before:
            self._follower.cut()
        return Unavailable(
            "the watch on the store is lagging: a marker that this replica wrote did not come back: retry"
        )

    def _fail(self, futures: Sequence[asyncio.Future[int]], error: StoreError) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(self._errors(type(error)(str(error))))
                future.exception()  # the caller may be gone
