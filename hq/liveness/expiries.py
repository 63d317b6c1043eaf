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

from hq.keys import OPS, HqKeys, prefix_end
from hq.liveness.deadlines import RevisionKey
from hq.liveness.replay import AGENT
from hq.liveness.tracker import Tracker
from hq.memory import frames
from hq.memory.cache import Cache
from hq.memory.entry import Entry, Mark
from hq.memory.statuses import HEARTBEAT_TIMEOUT, NEVER_REPORTED, REPORTS_REFUSED, StatusDraft, status_draft_of
from hqpb.v1 import instance_pb2
from serving.clock import Clock
from serving.errors import TooLarge
from store.commit import Committer, Conflict
from store.keys import new_word
from store.port import Compare, Write

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0


class ExpiryOutcome(Enum):
    """The outcome of an expiry."""

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
        keys: HqKeys,
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
    ) -> dict[RevisionKey, ExpiryOutcome]:
        """Expire revisions and agents found due just now, with no await in between; return what became of each.

        Raises ServiceError when the store does not answer.
        """
        revisions: dict[str, list[str]] = {}
        for key in keys:
            revisions.setdefault(key.instance_id, []).append(key.revision_id)
        writes = [
            self._prepare_expiry(instance_id, ids, verdict, in_two_steps) for instance_id, ids in revisions.items()
        ]
        found = await asyncio.gather(*writes, return_exceptions=True)
        for outcome in found:
            if isinstance(outcome, BaseException):
                raise outcome
        by_instance = dict(zip(revisions, found, strict=True))
        return {key: outcome for key in keys if isinstance(outcome := by_instance[key.instance_id], ExpiryOutcome)}

    def _prepare_expiry(
        self, instance_id: str, revision_ids: list[str], verdict: str, in_two_steps: bool
    ) -> asyncio.Future[ExpiryOutcome]:
        entry = self._cache.get(instance_id)
        if entry is None:
            gone: asyncio.Future[ExpiryOutcome] = asyncio.get_running_loop().create_future()
            gone.set_result(ExpiryOutcome.CHANGED)
            return gone
        # The version in the store, not memory's last good one: a broken record must not keep a revision ready.
        _, status_at = self._cache.stored_versions(instance_id)
        judged = [mark.id for mark in entry.marks] if AGENT in revision_ids else revision_ids
        marks = [entry.mark(revision_id) for revision_id in judged]
        is_void = entry.status_version == status_at and all(mark is not None and not mark.digest for mark in marks)
        step = ExpiryOutcome.VOIDED if in_two_steps and not is_void else ExpiryOutcome.EXPIRED
        write_id, wall_ms = new_word(self._rng), self._clock.wall_ms()
        draft = status_draft_of(entry, self._cache.epoch_at)
        if step is ExpiryOutcome.VOIDED:
            for revision_id in judged:
                draft.void(revision_id)
        else:
            self._expire(draft, entry, revision_ids, verdict, wall_ms)
        value = draft.record(write_id, wall_ms).SerializeToString()
        unchanged = Compare(self._keys.status(instance_id), "modified", status_at)
        news = [self._keys.of(OPS, ""), self._keys.hearing] + ([] if is_void else [self._keys.heartbeats])
        looked_at = self._cache.version
        nothing_newer = [Compare(start, "modified", looked_at + 1, "<", prefix_end(start)) for start in news]
        when = (unchanged,) if step is ExpiryOutcome.VOIDED else (unchanged, *nothing_newer)
        write = Write(when, ((unchanged.key, value),))
        return asyncio.ensure_future(self._commit(instance_id, write, write_id, status_at, step))

    def _expire(
        self, draft: StatusDraft, entry: Entry, revision_ids: Sequence[str], verdict: str, wall_ms: int
    ) -> None:
        """Expire the revisions, then the agent: its judgement names their reports."""
        deadlines, instance_id = self._tracker.deadlines, entry.traits.id
        for revision_id in sorted(revision_ids, key=lambda revision_id: revision_id == AGENT):
            if revision_id == AGENT:
                self._silence_agent(draft, entry, verdict, wall_ms)
                continue
            key = RevisionKey(instance_id, revision_id)
            queue = deadlines.of(key)
            receipt = self._receipt(entry.mark(revision_id), queue.silence_s(key, self._clock.now()), verdict)
            draft.expire(revision_id, receipt, wall_ms, is_refused=queue.is_refused(key))

    def _silence_agent(self, draft: StatusDraft, entry: Entry, verdict: str, wall_ms: int) -> None:
        tracker, instance_id, now = self._tracker, entry.traits.id, self._clock.now()
        deadlines = tracker.agents.of(instance_id) if entry.has_reporter() else tracker.unbegun
        silence_s = deadlines.silence_s(instance_id, now) or 0.0
        last = max(entry.marks, key=lambda mark: mark.heard_ms, default=None)
        reason, message = HEARTBEAT_TIMEOUT, f"no report of any revision for {silence_s:.0f} s"
        if not entry.has_reporter():
            reason = NEVER_REPORTED
            message = f"no agent has begun to report it within {silence_s:.0f} s; others report from its node"
        elif deadlines.is_refused(instance_id):
            reason, message = REPORTS_REFUSED, f"HQ refused all reports of its agent for {silence_s:.0f} s"
        draft.silence_agent(reason, message, self._receipt(last, silence_s, verdict), wall_ms)

    async def _commit(
        self, instance_id: str, write: Write, write_id: int, status_at: int, step: ExpiryOutcome
    ) -> ExpiryOutcome:
        try:
            await self._committer.commit(instance_id, write, write_id, self._clock.now() + _TIMEOUT_S)
        except Conflict as conflict:
            unchanged = conflict.modified[self._keys.status(instance_id)] == status_at
            return ExpiryOutcome.OVERTAKEN if unchanged else ExpiryOutcome.CHANGED
        except TooLarge as error:
            log.info("%s is silent, but could not be marked not ready: %s", instance_id, error)
            return ExpiryOutcome.REFUSED
        if step is ExpiryOutcome.EXPIRED:
            log.info("expired: %s or its agent, after too long a silence", instance_id)
        return step

    def _receipt(self, mark: Mark | None, silence_s: float | None, verdict: str) -> instance_pb2.Receipt:
        receipt = instance_pb2.Receipt(
            heard_by=mark.heard_by if mark else "",
            decided_by=self._replica,
            guard_verdict=verdict,
            decided_at_version=self._cache.version,
        )
        if mark is not None and mark.heard_ms:
            receipt.last_heartbeat_time.ParseFromString(frames.timestamp(mark.heard_ms))
        receipt.silence.FromMilliseconds(round((silence_s or 0) * 1000))
        return receipt
