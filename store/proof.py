"""Continuous proof that memory holds what the store holds: keys are counted, and their versions compared, for ever.

A follower is told each change once. If one is lost all the same (etcd has lost deletions at a compacted revision, and
no code is free of faults), nothing that is followed afterwards shows it. So all keys are counted after each opening of
the watch and now and then, and slice by slice their versions are read (anti-entropy).

What is read at a revision R is judged when memory has reached R. It differs only if memory has a key at a version up to
R which the store does not have; or both have it, at different versions, memory's up to R; or the store has it, memory
has not, and no deletion of it was applied since the read began. A count finds keys that were not deleted, a slice keys
that are missing or old; either has all keys compared, because a count cannot see one key too many beside one too few.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, suppress

from google.protobuf.message import DecodeError

from store.epoch import Epoch
from store.etcd_versions import advice
from store.fence import Fence
from store.follow import Mend, StoreFollower
from store.keys import MENDED, Keys, encode_word, new_word
from store.listing import Stride, listing
from store.port import Compacted, FutureRevision, Store, StoreClock, StoreError, StoreSink, Unavailable, Write
from storepb.v1 import store_pb2

log = logging.getLogger(__name__)

SLICE_KEYS = 2_000
_POLL_S = 0.5
_LEAST_COUNT_S = 60.0  # between two counts while one watch stays open
_COUNT_SHARE = 200  # all replicas together keep etcd counting for at most 1/200 of the time: slices cost as much again
_PASS_S = 3_000.0  # all slices, once: an hour at most, with what pauses and reads add
_SLICE_S = (0.7, 60.0)
_COMPACTION_S = 60.0
_RETRY_S = (1.0, 60.0)
_TIMEOUT_S = 5.0
_MENDED_AT_ONCE = 500
_NAMED = 20


class Proof:
    """Compares memory with the store, and mends what differs.

    Attributes:
        mended: how many keys were wrong in memory and were mended.
        counted_at, compared_at: when memory last had as many keys as the store, and when the last whole pass over all
            versions ended, on the injected clock; None: not yet.
        foreign_compaction_at: when it was last noticed that somebody else compacts the store's history; None: never.
    """

    def __init__(
        self,
        store: Store,
        keys: Keys,
        process: str,
        epoch: Epoch,
        follower: StoreFollower,
        sink: StoreSink,
        fence: Fence,
        clock: StoreClock,
        rng: random.Random,
        processes: Callable[[], int] = lambda: 1,
    ) -> None:
        """`processes`: how many follow this store."""
        self._store, self._keys, self._epoch, self._follower, self._sink = store, keys, epoch, follower, sink
        self._fence, self._clock, self._rng, self._processes = fence, clock, rng, processes
        self._mark = keys.of(MENDED, process)
        self._opened = -1  # restarts of the follower when keys were last counted
        self._count_due = self._slice_due = self._compaction_due = float("-inf")
        self._stride, self._start = Stride(keys.prefix, keys.end), keys.prefix
        self._foreign_mark = 0  # the compaction mark at which a foreign compaction was noticed last
        self._incurable: dict[bytes, tuple[int, int]] = {}  # versions in the store and in memory, after a mend
        self.mended = 0
        self.counted_at: float | None = None
        self.compared_at: float | None = None
        self.foreign_compaction_at: float | None = None

    async def run(self) -> None:
        """Compare for ever."""
        with suppress(StoreError):
            await self._warn_of_versions()
        delay_s = _RETRY_S[0]
        while True:
            await self._follower.following.wait()
            self._follower.opened.clear()
            try:
                await self._do_what_is_due()
                delay_s = _RETRY_S[0]
            except (StoreError, Compacted, FutureRevision) as error:
                # Wait ever longer: if a mend cannot be stored (etcd is full), all keys would be listed again and again.
                log.info("comparing memory with the store was interrupted: %s", error)
                await asyncio.sleep(delay_s * self._rng.uniform(0.5, 1.0))
                delay_s = min(delay_s * 2, _RETRY_S[1])
            await self._pause()

    async def _pause(self) -> None:
        """Until something is due, or the watch is opened again."""
        due = min(self._count_due, self._compaction_due, self._slice_due)
        pause_s = max(_POLL_S, due - self._clock.now()) * self._rng.uniform(1.0, 1.1)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._follower.opened.wait()

    async def _warn_of_versions(self) -> None:
        for member in await self._store.members():
            if words := advice(member.version):
                log.warning("%s: %s", member.endpoint, words)

    async def _do_what_is_due(self) -> None:
        now = self._clock.now()
        if now >= self._count_due or self._opened != self._follower.restarts:
            await self.count()
        elif now >= self._compaction_due:
            self._compaction_due = now + _COMPACTION_S
            await self.check_compaction()
        elif now >= self._slice_due:
            # Counted from when it was due, so that what comes in between does not make a pass longer.
            self._slice_due = max(self._slice_due + self._slice_interval_s(), now + _SLICE_S[0])
            await self.compare_slice()

    def _slice_interval_s(self) -> float:
        least, most = _SLICE_S
        return max(least, min(most, _PASS_S / (self._follower.key_count / SLICE_KEYS + 1)))

    # --- looking ----------------------------------------------------------------------------------------------------

    async def count(self) -> None:
        """Compare the numbers of keys in store and memory, at memory's version; if they differ, all keys."""
        follower, began, opened = self._follower, self._clock.now(), self._follower.restarts
        self._count_due = began + _LEAST_COUNT_S
        applied, expected, listings = follower.applied, follower.key_count, follower.listings
        counted = await self._store.count(self._keys.prefix, self._keys.end, revision=applied)
        took_s = self._clock.now() - began
        self._count_due = began + max(_LEAST_COUNT_S, _COUNT_SHARE * took_s * self._processes())
        self._opened = opened
        if follower.listings != listings:
            return
        if counted != expected:
            log.warning("memory has %d keys at version %d and the store %d: comparing all", expected, applied, counted)
            await self.compare_all()
        self.counted_at = self._clock.now()

    async def compare_slice(self) -> None:
        """Compare the next slice of keys; all of them if one differs."""
        start, stop, listings = self._start, self._stride.reach(self._start), self._follower.listings
        with self._follower.noting_deletions() as deleted:
            page = await self._store.page(start, stop, revision=0, limit=SLICE_KEYS, keys_only=True)
            await self._caught_up(page.revision)
            if self._follower.listings != listings:
                return
            found = [record.key for record in page.records]
            differing = self._differing({r.key: r.modified for r in page.records}, page.revision, deleted)
        end = found[-1] + b"\0" if page.more else stop
        self._stride.saw(found, end, SLICE_KEYS)
        self._start = end
        if not found:  # a gap between two kinds of keys, which costs nothing
            self._slice_due = self._clock.now()
        if not page.more and stop == self._keys.end:
            self._start, self.compared_at = self._keys.prefix, self._clock.now()
        if differing:
            log.warning("memory differs from the store in %s: comparing all", _key_names(differing))
            await self.compare_all()

    async def check_compaction(self) -> None:
        """Compare at once if somebody else gave up history beyond this server's own last compaction."""
        mark, at = await self._own_compaction()
        if not at or mark == self._foreign_mark:
            return
        try:
            await self._store.get(self._keys.compaction, revision=at)
        except Compacted:
            if (await self._own_compaction())[0] != mark:  # a process of ours has compacted meanwhile
                return
            self._foreign_mark, self.foreign_compaction_at = mark, self._clock.now()
            log.warning("somebody else compacts the store's history: comparing memory with the store")
            await self.count()
            await self.compare_all()

    async def _own_compaction(self) -> tuple[int, int]:
        """The revision of the newest mark, and the one at which history was given up with it; 0: there is none."""
        record, _ = await self._store.get(self._keys.compaction)
        try:
            mark = store_pb2.CompactionRecord.FromString(record.value) if record else None
        except DecodeError:
            mark = None
        return (record.modified, max(0, mark.revision)) if record and mark else (0, 0)

    async def compare_all(self) -> None:
        """Compare every key, in both directions, and mend what differs."""
        follower, listings, revision = self._follower, self._follower.listings, 0
        differing: dict[bytes, int] = {}
        seen: set[bytes] = set()
        with follower.noting_deletions() as deleted:
            parts = listing(self._store, self._keys.prefix, self._keys.end, keys_only=True)
            async with aclosing(parts):
                async for records, at in parts:
                    if not revision:
                        revision = at
                        await self._caught_up(revision)
                    differing |= self._differing({r.key: r.modified for r in records}, revision, deleted)
                    seen.update(record.key for record in records)
            if follower.listings != listings:
                return
            for key in list(self._sink.keys()):
                known = self._sink.version_of(key) or 0
                if key not in seen and 0 < known <= revision and self._incurable.get(key) != (0, known):
                    differing[key] = 0
            keys = list(differing)
            for first in range(0, len(keys), _MENDED_AT_ONCE):
                await self._mend(keys[first : first + _MENDED_AT_ONCE], deleted, listings)
        if follower.listings != listings:
            return
        # Each mend makes watches start over: what stays wrong all the same is not mended for ever.
        now = {key: self._sink.version_of(key) or 0 for key in keys}
        self._incurable = {key: (differing[key], now[key]) for key in keys if now[key] != differing[key]}
        await self._correct_count()
        self.compared_at = self._clock.now()

    def _differing(self, stored: Mapping[bytes, int], revision: int, deleted: Iterable[bytes]) -> dict[bytes, int]:
        """The keys that memory lacks or has at another version; it has reached the revision at which they were read."""
        differing = {}
        for key, modified in stored.items():
            known = self._sink.version_of(key)
            if known is None or known == modified or known > revision or (not known and key in deleted):
                continue
            if self._incurable.get(key) == (modified, known):
                continue
            differing[key] = modified
        return differing

    async def _caught_up(self, revision: int) -> None:
        """Return when memory has everything up to this revision, the store's head when it was read before this call.

        Where others' keys have moved the head no event of ours reaches it; a fence sent from now on proves the same.
        """
        asked = self._clock.now()
        while self._follower.applied < revision and (self._fence.proven_at or 0.0) < asked:
            await asyncio.sleep(_POLL_S / 2)

    # --- mending ----------------------------------------------------------------------------------------------------

    async def _mend(self, keys: list[bytes], deleted: Iterable[bytes], listings: int) -> None:
        """Give the sink the store's state of these keys, at the version of a mark that all processes see."""
        log.error("memory differs from the store in %s: mending", _key_names(keys))
        records = [await self._store.get(key) for key in keys]
        mend = Mend(encode_word(new_word(self._rng)), dict(zip(keys, records, strict=True)), deleted, listings)
        self._follower.mending = mend
        try:
            put = Write((), ((self._mark, mend.word),))
            commit = await self._store.commit((self._epoch.guard(),), (put,), _TIMEOUT_S)
            if not commit.guarded:
                raise Unavailable("the store has another epoch")
            async with asyncio.timeout(_TIMEOUT_S):
                self.mended += await mend.done
        except TimeoutError:
            raise Unavailable("the mark of the mend did not come back") from None
        finally:
            self._follower.mending = None

    async def _correct_count(self) -> None:
        """Take the number of keys from the store, after a repair."""
        follower = self._follower
        applied, known, listings = follower.applied, follower.key_count, follower.listings
        counted = await self._store.count(self._keys.prefix, self._keys.end, revision=applied)
        if follower.listings == listings:
            follower.key_count += counted - known


def _key_names(keys: Iterable[bytes]) -> str:
    """Some of the keys, for the log."""
    names = [key.decode("utf-8", "replace") for key in keys]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{len(names)} keys ({', '.join(names[:_NAMED])}{more})"
