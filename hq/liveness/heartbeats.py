"""Heartbeats: reports that change nothing but the time, packed many to a batch, one batch to a transaction.

A heartbeat names a status record by the version that it repeats. Every replica, the sender included, ignores it unless
that version is current at the batch's place in the store's order; so a replica that was behind can neither swallow a
change nor renew the wrong revision. The sender acknowledges a heartbeat only when it came back through its own watch
and was current.

A report with the same digest as the stored one was checked when that was stored, so `heartbeat_of` looks only at what
the digest does not cover."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from typing import NamedTuple

from hq.keys import HEARTBEATS, HqKeys
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2
from serving.clock import Clock
from serving.errors import ServiceError, StoreUnavailable
from store.epoch import Epoch
from store.keys import new_word
from store.port import Store, StoreError, UnknownOutcome, Write
from store.session import WriterSession

log = logging.getLogger(__name__)

_MAX_BATCH = 50_000  # heartbeats; some 0.7 MiB
BUSY_PER_S = 5_000  # heartbeats; from here on five batches a second (decision 018)
BUSY_INTERVAL_S = 0.2


class Heartbeat(NamedTuple):
    """One heartbeat: which status record it repeats, and the revision's position in it."""

    uid: int
    status_version: int
    position: int


class _HeartbeatBatch(NamedTuple):
    """Heartbeats answered together: True for each that was current. Their versions are valid only in this epoch."""

    heartbeats: list[Heartbeat]
    epoch: str
    done: asyncio.Future[list[bool]]


class BatchPace:
    """How long to wait between two batches: few heartbeats need not wait, many share few transactions. Pure."""

    def __init__(self, most_per_s: float) -> None:
        """`most_per_s`: batches, while there are few heartbeats."""
        self._quick_s = 1.0 / most_per_s
        self._second: deque[tuple[float, int]] = deque()  # batches of the last second
        self._is_busy = False

    def interval_s(self, now: float, heartbeats: int) -> float:
        """Seconds from the beginning of the batch that just ended, which had `heartbeats`, to that of the next one."""
        self._second.append((now, heartbeats))
        while now - self._second[0][0] > 1.0:
            self._second.popleft()
        rate = sum(count for _, count in self._second)
        self._is_busy = rate >= (BUSY_PER_S / 2 if self._is_busy else BUSY_PER_S)
        return max(BUSY_INTERVAL_S, self._quick_s) if self._is_busy else self._quick_s


class Heartbeats:
    """Collects this replica's heartbeats, and takes in those of all replicas.

    Attributes:
        failing: why the last batch was not stored, or did not come back; empty: it did.
        flushes, sent, heard, outdated: for metrics: batches stored, heartbeats sent, heard, and ignored.
    """

    def __init__(
        self,
        store: Store,
        keys: HqKeys,
        replica: str,
        epoch: Epoch,
        session: WriterSession,
        cache: Cache,
        tracker: Tracker,
        clock: Clock,
        rng: random.Random,
        *,
        batches_per_s: float = 50.0,
        timeout_s: float = 3.0,
    ) -> None:
        self._store, self._epoch, self._session = store, epoch, session
        self._cache, self._tracker, self._clock, self._rng = cache, tracker, clock, rng
        self._replica, self._key = replica, keys.of(HEARTBEATS, replica)
        self._pace, self._timeout_s = BatchPace(batches_per_s), timeout_s
        self._waiting: deque[_HeartbeatBatch] = deque()
        self._arrived = asyncio.Event()
        self._taken: list[_HeartbeatBatch] = []
        self._flying = 0  # id of the batch that is under way
        self._came_back = asyncio.Event()
        self.failing = ""
        self.flushes = self.sent = self.heard = self.outdated = 0

    async def send(self, heartbeats: list[Heartbeat]) -> list[bool]:
        """Return which of the heartbeats were current when they took their place in the store's order.

        Raises:
            StoreUnavailable: it is not known which; the caller's agent reports again.
        """
        if self._tracker.deaf:
            raise StoreUnavailable("the heartbeat was not stored: the store does not respond")
        group = _HeartbeatBatch(heartbeats, self._epoch.current, asyncio.get_running_loop().create_future())
        self._waiting.append(group)
        self._arrived.set()
        return await group.done

    async def knock(self) -> None:
        """Return when a batch, perhaps an empty one, was stored and came back, which proves that reports can come in.

        It is a fence too: whatever was acknowledged anywhere before this call is in memory then.

        Raises:
            StoreUnavailable: it was not.
        """
        await self.send([])

    def observe(self, replica: str, value: bytes) -> None:
        """Take in a batch from the watch. Raises DecodeError."""
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
        """Flush for ever: at once if nothing is under way and the pace allows it."""
        while True:
            await self._arrived.wait()
            began = self._clock.now()
            self._taken = self._next_batch()
            size = sum(len(group.heartbeats) for group in self._taken)
            if self._taken:
                await self._try_flush()
                self._taken = []
            await self._pause(began, self._pace.interval_s(self._clock.now(), size))

    async def _pause(self, began: float, interval_s: float) -> None:
        """Wait out the interval. uvloop counts time from the start of its turn, so its timers come early."""
        for _ in range(2):
            left_s = began + interval_s - self._clock.now()
            if left_s > 0:
                await asyncio.sleep(left_s)

    async def drain(self) -> None:
        """Return when everything that was sent so far is answered."""
        pending = [group.done for group in (*self._waiting, *self._taken)]
        await asyncio.gather(*pending, return_exceptions=True)

    def _next_batch(self) -> list[_HeartbeatBatch]:
        """Take the waiting heartbeats, except those of callers who are gone: they would be written too late."""
        taken: list[_HeartbeatBatch] = []
        size = 0
        while self._waiting and (not taken or size + len(self._waiting[0].heartbeats) <= _MAX_BATCH):
            group = self._waiting.popleft()
            if group.epoch != self._epoch.current:
                _fail([group], "the store was replaced")
            elif not group.done.done():
                taken.append(group)
                size += len(group.heartbeats)
        if not self._waiting:
            self._arrived.clear()
        return taken

    async def _try_flush(self) -> None:
        try:
            await self._flush([heartbeat for group in self._taken for heartbeat in group.heartbeats])
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

    async def _flush(self, heartbeats: list[Heartbeat]) -> None:
        """Store a batch; return when it came back and its senders were answered."""
        epoch = self._epoch.guard()
        await self._session.ready(self._timeout_s)
        self._flying = new_word(self._rng)
        self._came_back.clear()
        batch = storage_pb2.BeatBatch(
            uid=[heartbeat.uid for heartbeat in heartbeats],
            status_version=[heartbeat.status_version for heartbeat in heartbeats],
            position=[heartbeat.position for heartbeat in heartbeats],
            unix_ms=self._clock.wall_ms(),
            batch_id=self._flying,
        )
        put = Write((), ((self._key, batch.SerializeToString()),))
        commit = await self._store.commit((epoch, self._session.guard()), (put,), self._timeout_s)
        if not commit.guarded:
            self._session.doubt()
            raise StoreUnavailable("the store changed before this batch was written")
        self.flushes += 1
        self.sent += len(heartbeats)
        async with asyncio.timeout(self._timeout_s):
            await self._came_back.wait()

    async def _shut_out(self, error: str) -> None:
        """Shut out a batch without an answer: minutes later it would renew revisions that fell silent long before."""
        log.warning("the outcome of a batch of heartbeats is unknown (%s): opening a new session", error)
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
        self._tracker.heartbeat(entry, entry.heartbeat(position, unix_ms, replica), now)
        return True

    def _answer(self, current: list[bool]) -> None:
        start = 0
        for group in self._taken:
            end = start + len(group.heartbeats)
            if not group.done.done():
                group.done.set_result(current[start:end])
            start = end


def _fail(groups: list[_HeartbeatBatch], error: str) -> None:
    for group in groups:
        if not group.done.done():
            group.done.set_exception(StoreUnavailable(f"the heartbeat was not stored: {error}"))
            group.done.exception()  # the caller may be gone


def heartbeat_of(entry: Entry, report: service_pb2.ReportStatusRequest, digest: int) -> Heartbeat | None:
    """A report of this instance as a heartbeat; None: it says something new, or is not the current reporter's."""
    revision, traits = report.revision, entry.traits
    wanted = revision.id
    position = next((i for i, mark in enumerate(entry.marks) if mark.id == wanted), -1)
    if position < 0:
        return None
    mark = entry.marks[position]
    sequence = revision.sequence
    plain = (
        digest == mark.digest
        # Unsettled: an earlier report got no answer. If this one has the stored sequence, HQ refuses the earlier one.
        and (not report.unsettled or sequence == mark.sequence)
        and report.uid == traits.uid
        and report.node == traits.node
        and revision.incarnation == mark.incarnation
        and sequence >= mark.sequence
        and sequence > 0
        and wanted in traits.revisions
        and mark.liveness == traits.liveness
    )
    return Heartbeat(traits.uid, entry.status_version, position) if plain else None


def heartbeat_of_stored(entry: Entry, report: service_pb2.ReportStatusRequest, digest: int) -> Heartbeat | None:
    """A repetition of the very report that is stored, as a heartbeat; None: it is something else.

    It must not be written as a status: HQ rewrites statuses too, so a record without a newer report renews nobody.
    """
    found = heartbeat_of(entry, report, digest)
    is_same = found is not None and report.revision.sequence == entry.marks[found.position].sequence
    return found if is_same else None
