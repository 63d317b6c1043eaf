"""Expiries: the writes that mark silent revisions not ready, correct whoever else writes.

One compare says that no batch of heartbeats is newer than what was looked at, another that the status record is
unchanged: a report always wins. A third says that operators have given no order since. Everything that an expiry is
made from is read without an await in between: otherwise it could expire a revision that was heard meanwhile.

Where many replicas write heartbeats there is hardly a moment without a newer batch, so an expiry that keeps being
overtaken is made in two steps. The first voids the last report in the status record: heartbeats under way, or from a
replica that has not seen this yet, repeat an older record and are ignored; a replica that has seen it writes the next
report as a status. From then on only the status record tells of reports, so the second step, an expiry of what is still
silent when the first has come back, need not compare the heartbeats.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from enum import Enum

from hq.keys import OPS, Keys, prefix_end
from hq.liveness.deadlines import RevisionKey
from hq.liveness.tracker import Tracker
from hq.memory import frames
from hq.memory.cache import Cache
from hq.memory.entry import Entry
from hq.memory.statuses import status_draft_of
from hqpb.v1 import instance_pb2
from serving.clock import Clock
from serving.errors import TooLarge
from store.commit import Committer, Conflict
from store.keys import new_word
from store.port import Compare, Write

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0


class Outcome(Enum):
    """What became of an expiry."""

    EXPIRED = 0
    CHANGED = 1  # the status has changed since
    OVERTAKEN = 2  # heartbeats or refusals came meanwhile, of this revision or of any other, or an order: look again
    REFUSED = 3  # the store takes no such record, whoever tries
    VOIDED = 4  # from now on heartbeats cannot overtake it: look again


class Expiries:
    """Writes the expiries of one replica."""

    def __init__(
        self,
        cache: Cache,
        keys: Keys,
        tracker: Tracker,
        committer: Committer,
        clock: Clock,
        rng: random.Random,
        replica: str,
    ) -> None:
        self._cache, self._keys, self._tracker, self._committer = cache, keys, tracker, committer
        self._clock, self._rng, self._replica = clock, rng, replica

    async def write(
        self, keys: Sequence[RevisionKey], verdict: str, *, in_two_steps: bool = False
    ) -> dict[RevisionKey, Outcome]:
        """Expire revisions that were found due just now, with no await in between; return what became of each.

        Raises ServiceError when the store does not answer.
        """
        revisions: dict[str, list[str]] = {}
        for key in keys:
            revisions.setdefault(key.instance_id, []).append(key.revision_id)
        writes = [self._prepared(instance_id, ids, verdict, in_two_steps) for instance_id, ids in revisions.items()]
        found = await asyncio.gather(*writes, return_exceptions=True)
        for outcome in found:
            if isinstance(outcome, BaseException):
                raise outcome
        by_instance = dict(zip(revisions, found, strict=True))
        return {key: outcome for key in keys if isinstance(outcome := by_instance[key.instance_id], Outcome)}

    def _prepared(
        self, instance_id: str, revision_ids: list[str], verdict: str, in_two_steps: bool
    ) -> asyncio.Future[Outcome]:
        entry = self._cache.get(instance_id)
        if entry is None:
            gone: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            gone.set_result(Outcome.CHANGED)
            return gone
        # The version in the store, not that of memory's last good record: a broken record must not keep it ready.
        _, status_at = self._cache.stored_versions(instance_id)
        marks = [entry.mark(revision_id) for revision_id in revision_ids]
        is_void = entry.status_version == status_at and all(mark is not None and not mark.digest for mark in marks)
        step = Outcome.VOIDED if in_two_steps and not is_void else Outcome.EXPIRED
        write_id, wall_ms = new_word(self._rng), self._clock.wall_ms()
        draft = status_draft_of(entry, self._cache.epoch_at)
        for revision_id in revision_ids:
            if step is Outcome.VOIDED:
                draft.void(revision_id)
            else:
                is_refused = self._tracker.deadlines.is_refused(RevisionKey(instance_id, revision_id))
                draft.expire(revision_id, self._receipt(entry, revision_id, verdict), wall_ms, is_refused=is_refused)
        value = draft.record(write_id, wall_ms).SerializeToString()
        unchanged = Compare(self._keys.status(instance_id), "modified", status_at)
        news = [self._keys.of(OPS, ""), self._keys.hearing] + ([] if is_void else [self._keys.heartbeats])
        looked_at = self._cache.version
        nothing_newer = [Compare(start, "modified", looked_at + 1, "<", prefix_end(start)) for start in news]
        when = (unchanged,) if step is Outcome.VOIDED else (unchanged, *nothing_newer)
        write = Write(when, ((unchanged.key, value),))
        return asyncio.ensure_future(self._commit(instance_id, write, write_id, status_at, step))

    async def _commit(self, instance_id: str, write: Write, write_id: int, status_at: int, step: Outcome) -> Outcome:
        try:
            await self._committer.commit(instance_id, write, write_id, self._clock.now() + _TIMEOUT_S)
        except Conflict as conflict:
            unchanged = conflict.modified[self._keys.status(instance_id)] == status_at
            return Outcome.OVERTAKEN if unchanged else Outcome.CHANGED
        except TooLarge as error:
            log.info("%s is silent, but could not be marked not ready: %s", instance_id, error)
            return Outcome.REFUSED
        if step is Outcome.EXPIRED:
            log.info("expired: %s marked not ready after too long a silence", instance_id)
        return step

    def _receipt(self, entry: Entry, revision_id: str, verdict: str) -> instance_pb2.Receipt:
        mark = entry.mark(revision_id)
        receipt = instance_pb2.Receipt(
            heard_by=mark.heard_by if mark else "",
            decided_by=self._replica,
            guard_verdict=verdict,
            decided_at_version=self._cache.version,
        )
        if mark is not None and mark.heard_ms:
            receipt.last_heartbeat_time.ParseFromString(frames.timestamp(mark.heard_ms))
        silence_s = self._tracker.deadlines.silence_s(RevisionKey(entry.traits.id, revision_id), self._clock.now())
        receipt.silence.FromMilliseconds(round((silence_s or 0) * 1000))
        return receipt
