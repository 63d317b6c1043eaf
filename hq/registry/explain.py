"""Why an instance is ready or not, as far as this replica knows."""

from __future__ import annotations

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from hq.liveness.deadlines import RevisionKey
from hq.liveness.liveness import Liveness
from hq.memory import frames
from hq.memory.cache import Cache
from hq.memory.entry import Entry, Mark
from hq.registry.guard_state import guard_state
from hq.registry.reads import Reads, Sees, sees_all
from hqpb.v1 import instance_pb2, service_pb2
from serving.clock import Clock

_WORDS = {1: "ready", 2: "not ready"}
_NO_TARGET = instance_pb2.REVISION_TARGET_UNSPECIFIED  # the revision is not in the spec
_INSTALLED = instance_pb2.REVISION_TARGET_INSTALLED


class Explain:
    """The explaining call."""

    def __init__(self, cache: Cache, liveness: Liveness, clock: Clock, reads: Reads) -> None:
        self._cache, self._liveness, self._clock, self._reads = cache, liveness, clock, reads

    async def explain(
        self, instance_id: str, deadline: float | None, sees: Sees = sees_all
    ) -> service_pb2.ExplainInstanceResponse:
        """Explain why an instance is ready or not. Raises NotFound or OutOfReach, after a fence."""
        entry, source = await self._reads.get(instance_id, service_pb2.ReadOptions(), deadline, sees)
        instance = entry.instance()
        answer = service_pb2.ExplainInstanceResponse(
            meta=instance.meta,
            node_name=entry.traits.node,
            ready=instance.status.ready,
            agent=instance.status.agent,
            guard=guard_state(self._liveness, self._cache, self._clock),
            sources=[source.message()],
        )
        targets = {revision.id: revision.target or _INSTALLED for revision in instance.spec.revision}
        told = {revision.id: revision for revision in instance.status.revision}
        for revision_id in [*targets, *(other for other in told if other not in targets)]:
            status = told.get(revision_id, instance_pb2.RevisionStatus(id=revision_id))
            answer.revision.append(self._revision(entry, status, targets.get(revision_id, _NO_TARGET)))
        suspension = self._liveness.orders.suspension(entry.traits.node)
        if suspension is not None:
            answer.node_suspended_until.FromMilliseconds(suspension.until_ms)
        answer.summary = _summary(instance, list(answer.revision))
        return answer

    def _revision(
        self, entry: Entry, status: instance_pb2.RevisionStatus, target: instance_pb2.RevisionTarget
    ) -> service_pb2.RevisionExplanation:
        now, key, mark = self._clock.now(), RevisionKey(entry.traits.id, status.id), entry.mark(status.id)
        deadlines = self._liveness.tracker.deadlines.of(key)
        told = service_pb2.RevisionExplanation(
            id=status.id,
            target=target,
            incarnation=status.incarnation,
            sequence=mark.sequence if mark else 0,
            heard_by=mark.heard_by if mark else "",
            container=status.container,
        )
        for name in ("installed", "ready"):
            if status.HasField(name):
                getattr(told, name).CopyFrom(getattr(status, name))
        if mark is not None and mark.heard_ms:
            told.last_heartbeat_time.ParseFromString(frames.timestamp(mark.heard_ms))
        silence_s, deadline = deadlines.silence_s(key, now), deadlines.deadline(key)
        listening_since = deadlines.listening_since(key)
        if listening_since is not None:
            told.not_since.FromMilliseconds(self._clock.wall_ms() - round((now - listening_since) * 1000))
        self._add_times(told, mark)
        if silence_s is not None and deadline is not None:
            told.silent_for.FromMilliseconds(round(silence_s * 1000))
            told.deadline_in.FromMilliseconds(round((deadline - now) * 1000))
            if deadline in (deadlines.floor, deadlines.chance_until):
                told.postponed_because = deadlines.postponed_because
            elif deadlines.is_refused(key):
                told.postponed_because = "HQ refused its reports"
        left_s = None if deadline is None else deadline - now
        told.summary = self._words(status, mark, silence_s, left_s, told.not_since)
        return told

    def _add_times(self, told: service_pb2.RevisionExplanation, mark: Mark | None) -> None:
        """Add the times that its reporter was given, if it has one."""
        if mark is not None and mark.incarnation:
            times = self._liveness.tracker.deadlines.times_of(mark.liveness)
            told.report_interval.FromMilliseconds(round(times.report_interval_s * 1000))
            told.timeout.FromMilliseconds(round(times.timeout_s * 1000))

    def _words(
        self,
        status: instance_pb2.RevisionStatus,
        mark: Mark | None,
        silence_s: float | None,
        left_s: float | None,
        not_since: Timestamp,
    ) -> str:
        if mark is None or not mark.heard_ms:
            return "no agent has reported this revision"
        # A mark stays expired until it is ready; after a newer report the condition is the agent's, without a receipt.
        if mark.expired and not mark.ready and status.ready.HasField("receipt"):
            return f"expired: {status.ready.message}; the next report of its agent can make it ready again"
        if silence_s is None or left_s is None:
            state = _WORDS.get(status.ready.status, "unknown")
            return f"{state}, reported by its agent: {status.ready.message or status.ready.reason or 'no reason given'}"
        words = f"ready; last report {silence_s:.0f} s ago"
        if not_since.seconds:
            began = f"{datetime.fromtimestamp(not_since.seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
            words = f"ready; no report since this replica started to listen at {began}"
            words += f", silent for {silence_s:.0f} s or more"
        if left_s >= 0:
            return f"{words}; {left_s:.0f} s until it expires"
        verdict = self._liveness.sweep.verdict
        held = f", expiry held: {verdict.words}" if verdict.hold else ""
        return f"{words}; its deadline passed {-left_s:.0f} s ago{held}"


def _summary(instance: instance_pb2.Instance, revisions: list[service_pb2.RevisionExplanation]) -> str:
    wanted = [r for r in revisions if r.target == instance_pb2.REVISION_TARGET_READY]
    state = _WORDS.get(instance.status.ready.status, "readiness was never reported")
    if not wanted:
        return f"{state}; the spec wants no revision READY"
    return f"{state}; revision {wanted[0].id} should be READY: {wanted[0].summary}"
