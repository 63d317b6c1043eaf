"""Records as callers see them, with progress as HQ shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from control import Controller, Events
from nanny.actions.activation import progress_of
from nanny.actions.levels import Level, levels_of
from nanny.actions.stages import stages_of
from nanny.actions.subject import ServiceContext
from nanny.automaton.service_state import ServiceState, service_state
from nanny.automaton.states import ACTIONS, Action
from nanny.records import kinds
from nanny.records.services import CURRENT, service_of
from nanny.rollout.failures import failures
from nanny.rollout.views import RolloutProgress, Stage, Stages
from nanny.snapshots.content import Content
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ActionRecord, RolloutRecord, ServiceEvent, TupleRecord

STATE_NUMBER: Final[Mapping[ServiceState, int]] = {
    state: pb.ServiceState.Value(f"SERVICE_STATE_{state.upper()}") for state in ServiceState
}
_LEFT: Final = (Stage.SILENT, Stage.HELD, Stage.LOST, Stage.GONE, Stage.AWAY)


class NannyMessages:
    """Makes messages of records."""

    def __init__(self, controller: Controller, events: Events[ServiceEvent]) -> None:
        self._controller, self._events = controller, events
        self._services = controller.records(kinds.SERVICE)
        self._actions = controller.records(kinds.ACTION)
        self._rollouts = controller.records(kinds.ROLLOUT)
        self._snapshots = controller.records(kinds.SNAPSHOT)

    def service(self, service_id: str) -> pb.Service:
        """A service without progress. Raises KeyError."""
        record = self._services[service_id]
        service = pb.Service(
            id=service_id,
            info=record.info,
            state=STATE_NUMBER[service_state(service_of(record))],  # type: ignore[arg-type]
            head=record.head,
            version=self._services.version(service_id),
            pending_events=len(self._events.pending(service_id)),
            stuck=self._stuck(service_id),
            drift=record.drift,
            creation_time=record.created.time,
            ready=record.health.ready,
            wanted=record.health.wanted,
            remark=record.health.remark,
            info_version=record.info_version or 1,
        )
        if record.HasField("paused"):
            service.paused.CopyFrom(record.paused)
        tuples = sorted(record.snapshot, key=lambda one: (-one.target, one.snapshot_id))
        service.snapshot.extend(self._tuple(service_id, one) for one in tuples)
        return service

    def _tuple(self, service_id: str, one: TupleRecord) -> pb.SnapshotState:
        shown = pb.SnapshotState(
            snapshot_id=one.snapshot_id,
            current=one.current,
            target=one.target,
            target_set=one.target_set,
            fill_pods_configuration=one.fill,
            has_instance_targets=bool(one.overrides),
            message=one.message,
            has_served=one.has_served,
        )
        shown.current_since.FromMilliseconds(one.since_unix_ms)
        if (stored := self._snapshots.get(kinds.of_snapshot(service_id, one.snapshot_id))) is not None:
            shown.restart_of = stored.snapshot.restart_of
        if one.HasField("order"):
            shown.order.CopyFrom(one.order)
        if action := ACTIONS.get(CURRENT[one.current]):
            shown.action.CopyFrom(self._progress(service_id, one, action))
        return shown

    def _progress(self, service_id: str, one: TupleRecord, action: Action) -> pb.ActionProgress:
        progress = pb.ActionProgress(action=action, number=one.action)
        stored = self._actions.get(kinds.of_snapshot(service_id, one.snapshot_id), ActionRecord())
        if stored.number == one.action:
            progress.message, progress.batches_done = stored.message, stored.batches_done
            progress.cms_task = stored.cms_task
            progress.step.extend(stored.step)
            over = max(stored.steps_over, one.promoted)
            progress.step_number = over + 1 if over < len(stored.step) else 0
            progress.step_ms, progress.check_result = stored.step_ms, stored.check_result
            progress.since.FromMilliseconds(stored.since_unix_ms)
        else:
            progress.since.FromMilliseconds(one.since_unix_ms)
            if stored.cms_task:  # the worker begins once that task has ended at the CMS
                progress.message = f"waits for the end of the earlier order's task {stored.cms_task} at the CMS"
        return progress

    def _stuck(self, service_id: str) -> str:
        failures = [self._controller.failures(name).get(service_id) for name in ("work", "events.service")]
        told = [failure.error for failure in failures if failure is not None]
        if not self._controller.acting_process:
            told.append("no Nanny process is the leader")
        if not self._controller.is_open:
            told.append(
                "Nanny's store was restored or replaced: compare the targets with HQ, then run `nanny control open`"
            )
        if (frozen := self._controller.frozen) is not None:
            told.append(f"Nanny is frozen by {frozen.by}: {frozen.reason}")
        return "; ".join(dict.fromkeys(told))

    def rollout(self, service_id: str, one: TupleRecord) -> pb.Rollout:
        """The time line of a tuple's last roll-out."""
        shown = pb.Rollout(
            snapshot_id=one.snapshot_id,
            current=one.current,
            ordered=one.target_set,
            order=one.order,
            message=one.message,
        )
        if CURRENT[one.current] in ACTIONS:
            shown.message = self._progress(service_id, one, ACTIONS[CURRENT[one.current]]).message
        stored = self.rollout_record(service_id, one.snapshot_id)
        if stored.number:
            shown.begin_time.FromMilliseconds(stored.since_unix_ms)
        if stored.end_unix_ms:
            shown.end_time.FromMilliseconds(stored.end_unix_ms)
        shown.batch.extend(stored.batch)
        shown.judged.extend(stored.judged)
        shown.step.extend(stored.step)
        if stored.HasField("aborted"):
            shown.aborted.CopyFrom(stored.aborted)
        return shown

    def rollout_record(self, service_id: str, snapshot: str) -> RolloutRecord:
        return self._rollouts.get(kinds.of_snapshot(service_id, snapshot), RolloutRecord())

    def action_record(self, service_id: str, snapshot: str) -> ActionRecord:
        return self._actions.get(kinds.of_snapshot(service_id, snapshot), ActionRecord())


def by_location(subject: ServiceContext, content: Content, state: pb.SnapshotState, stored: ActionRecord) -> None:
    """Fill in the progress of a tuple's action, location by location."""
    stages = _stages(subject, content, Action(state.action.action))
    progress = progress_of(stored) if stored.number == state.action.number else RolloutProgress()
    failed = failures(stages, progress) - stages.get(Stage.DONE, set())
    counts = {stage: Counter(key[0] for key in keys - failed) for stage, keys in stages.items()}
    totals, failed_in = Counter(key[0] for key in content.placements), Counter(key[0] for key in failed)
    for location in sorted({*totals, *subject.picture.seen}):

        def count(*wanted: Stage, location: str = location) -> int:
            return sum(counts[stage][location] for stage in wanted if stage in counts)

        state.action.location.append(
            pb.LocationProgress(
                location=location,
                total=totals[location],
                done=count(Stage.DONE),
                under_way=count(Stage.UNDER_WAY, Stage.UNHEARD, Stage.UNTOUCHED, Stage.SETTLING),
                left=count(*_LEFT),
                failed=failed_in[location],
                error=_error(subject, location),
            )
        )


def _error(subject: ServiceContext, location: str) -> str:
    if location in subject.policy.leave_out:
        return "left out by the roll-out policy"
    return subject.away.get(location, "")


def _stages(subject: ServiceContext, content: Content, action: Action) -> Stages:
    """The stages of a roll-out, or the fewer ones of another action."""
    if action is Action.ACTIVATE:
        return stages_of(subject, content)
    levels = levels_of(subject, content, action)
    away = {key for key in content.placements if key[0] in subject.away}
    at_work = set().union(*(levels.get(level, ()) for level in (Level.WRITE, Level.COSTLY, Level.WAITING)))
    silent = set(levels.get(Level.SILENT, ()))
    under_way = at_work.intersection(content.placements) - away
    done = set(content.placements) - under_way - silent - away
    return {Stage.DONE: done, Stage.UNDER_WAY: under_way, Stage.SILENT: silent - away, Stage.AWAY: away}
