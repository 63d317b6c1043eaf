"""Beats: reports that change nothing but the time, packed many to a batch, one batch to a transaction.

A beat names a status record by the version that it repeats. Every replica, the sender included, ignores it unless that
version is current at the batch's place in the store's order; so a replica that was behind can neither swallow a change
nor renew the wrong revision. The sender acknowledges a beat only when it came back through its own watch and was
current.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from typing import NamedTuple

from google.protobuf.message import DecodeError

from hq.keys import BEATS, Keys
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from hqpb.storage.v1 import storage_pb2
from serving.clock import Clock
from serving.errors import ServiceError, StoreUnavailable
from store.epoch import Epoch
from store.keys import new_word
from store.port import Store, StoreError, UnknownOutcome, Write
from store.session import Session

log = logging.getLogger(__name__)

_MAX_BATCH = 50_000  # beats; some 0.7 MiB


class Beat(NamedTuple):
    """One beat: which status record it repeats, and the revision's position in it."""

    uid: int
    status_version: int
    position: int


class _Group(NamedTuple):
    """Beats that are answered together: True for each that was current. Their versions mean something in one epoch."""

    beats: list[Beat]
    epoch: str
    done: asyncio.Future[list[bool]]


class Beats:
    """Collects this replica's beats, and takes in everybody's.

    Attributes:
        failing: why the last batch was not stored, or did not come back; empty: it did.
        flushes, sent, heard, outdated: counters for metrics: batches and beats sent, beats heard, beats ignored.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        session: Session,
        cache: Cache,
        tracker: Tracker,
        clock: Clock,
        rng: random.Random,
        *,
        interval_s: float = 0.2,
        timeout_s: float = 3.0,
    ) -> None:
        self._store, self._epoch, self._session = store, epoch, session
        self._cache, self._tracker, self._clock, self._rng = cache, tracker, clock, rng
        self._replica, self._key = replica, keys.of(BEATS, replica)
        self._interval_s, self._timeout_s = interval_s, timeout_s
        self._waiting: deque[_Group] = deque()
        self._arrived = asyncio.Event()
        self._taken: list[_Group] = []
        self._flying = 0  # id of the batch that is under way
        self._came_back = asyncio.Event()
        self.failing = ""
        self.flushes = self.sent = self.heard = self.outdated = 0

    async def send(self, beats: list[Beat]) -> list[bool]:
        """Return which of the beats were current when they took their place in the store's order.

        Raises:
            StoreUnavailable: nobody knows; the caller's agent reports again.
        """
        if self._tracker.deaf:
            raise StoreUnavailable("the heartbeat was not stored: the store does not respond")
        group = _Group(beats, self._epoch.current, asyncio.get_running_loop().create_future())
        self._waiting.append(group)
        self._arrived.set()
        return await group.done

    async def knock(self) -> None:
        """Return when a batch, perhaps an empty one, was stored and came back: what agents report can come in.

        It is a fence too: whatever was acknowledged anywhere before this call is in memory then.

        Raises:
            StoreUnavailable: it was not.
        """
        await self.send([])

    def observe(self, replica: str, value: bytes) -> None:
        """A batch came through the watch. Raises DecodeError."""
        batch = storage_pb2.BeatBatch.FromString(value)
        now = self._clock.now()
        current = [
            self._take(uid, status_version, position, batch.unix_ms, replica, now)
            for uid, status_version, position in zip(batch.uid, batch.status_version, batch.position, strict=False)
        ]
        if replica == self._replica and batch.batch_id == self._flying:
            self._answer(current)
            self._came_back.set()

    async def run(self) -> None:
        """Flush for ever: at most one batch per interval, none while nobody beats."""
        while True:
            await self._arrived.wait()
            began = self._clock.now()
            self._taken = self._next_batch()
            if self._taken:
                await self._try_flush()
                self._taken = []
            await self._pause(began)

    async def _pause(self, began: float) -> None:
        """Until an interval has passed. uvloop counts time from the start of its turn, so its timers come early."""
        for _ in range(2):
            left_s = began + self._interval_s - self._clock.now()
            if left_s > 0:
                await asyncio.sleep(left_s)

    async def drain(self) -> None:
        """Return when everything that was sent so far is answered."""
        pending = [group.done for group in (*self._waiting, *self._taken)]
        await asyncio.gather(*pending, return_exceptions=True)

    def _next_batch(self) -> list[_Group]:
        """What waits, but for callers who are gone: their beat would arrive long after it was meant."""
        taken: list[_Group] = []
        size = 0
        while self._waiting and (not taken or size + len(self._waiting[0].beats) <= _MAX_BATCH):
            group = self._waiting.popleft()
            if group.epoch != self._epoch.current:
                _fail([group], "the store was replaced")
            elif not group.done.done():
                taken.append(group)
                size += len(group.beats)
        if not self._waiting:
            self._arrived.clear()
        return taken

    async def _try_flush(self) -> None:
        try:
            await self._flush([beat for group in self._taken for beat in group.beats])
            self.failing = ""
        except UnknownOutcome as error:
            self.failing = str(error) or "unknown whether it was stored"
            await self._shut_out(str(error))
        except (ServiceError, StoreError, TimeoutError) as error:
            self.failing = str(error) or "it was not confirmed in time"
            log.warning("a batch of heartbeats was lost: %s", self.failing)
            _fail(self._taken, self.failing)
        finally:
            self._flying = 0

    async def _flush(self, beats: list[Beat]) -> None:
        """Store a batch; return when it came back and its senders were answered."""
        epoch = self._epoch.guard()
        await self._session.ready(self._timeout_s)
        self._flying = new_word(self._rng)
        self._came_back.clear()
        batch = storage_pb2.BeatBatch(
            uid=[beat.uid for beat in beats],
            status_version=[beat.status_version for beat in beats],
            position=[beat.position for beat in beats],
            unix_ms=self._clock.wall_ms(),
            batch_id=self._flying,
        )
        put = Write((), ((self._key, batch.SerializeToString()),))
        commit = await self._store.commit((epoch, self._session.guard()), (put,), self._timeout_s)
        if not commit.guarded:
            self._session.doubt()
            raise StoreUnavailable("the store changed before this batch was written")
        self.flushes += 1
        self.sent += len(beats)
        async with asyncio.timeout(self._timeout_s):
            await self._came_back.wait()

    async def _shut_out(self, error: str) -> None:
        """A batch without an answer must not arrive minutes later and renew who fell silent long before."""
        log.warning("a batch of heartbeats was lost (%s): opening a new session", error)
        self._tracker.deaf = True
        _fail([*self._taken, *self._waiting], error)
        self._waiting.clear()
        self._arrived.clear()
        await self._session.change()
        self._tracker.deaf = False

    def _take(self, uid: int, status_version: int, position: int, unix_ms: int, replica: str, now: float) -> bool:
        entry = self._cache.by_uid(uid)
        if entry is None or entry.status_version != status_version or position >= len(entry.marks):
            self.outdated += 1
            return False
        self.heard += 1
        self._tracker.beat(entry, entry.beat(position, unix_ms, replica), now)
        return True

    def _answer(self, current: list[bool]) -> None:
        start = 0
        for group in self._taken:
            end = start + len(group.beats)
            if not group.done.done():
                group.done.set_result(current[start:end])
            start = end


def _fail(groups: list[_Group], error: str) -> None:
    for group in groups:
        if not group.done.done():
            group.done.set_exception(StoreUnavailable(f"the heartbeat was not stored: {error}"))
            group.done.exception()  # the caller may be gone


__all__ = ["Beat", "Beats", "DecodeError"]
