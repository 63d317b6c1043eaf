"""Records as callers see them, with progress as HQ shows it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from control import Controller, Events
from nanny.actions import reports
from nanny.actions.activation import views_of
from nanny.actions.effects import keys_of
from nanny.actions.subject import Subject
from nanny.automaton.showing import ServiceState, service_state
from nanny.automaton.states import ACTIONS, Action
from nanny.records import kinds
from nanny.records.services import CURRENT, service_of
from nanny.rollout.views import Key, Stage
from nanny.snapshots.content import Content
from nanny.snapshots.wanted import READY, target_of
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ActionRecord, ServiceEvent, TupleRecord

STATE_NUMBER: Final[Mapping[ServiceState, int]] = {
    state: pb.ServiceState.Value(f"SERVICE_STATE_{state.upper()}") for state in ServiceState
}
_LEFT: Final = (Stage.SILENT, Stage.HELD, Stage.LOST, Stage.AWAY)


class Shown:
    """Makes messages of records."""

    def __init__(self, controller: Controller, events: Events[ServiceEvent]) -> None:
        self._controller, self._events = controller, events
        self._services = controller.records(kinds.SERVICE)
        self._actions = controller.records(kinds.ACTION)

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
        )
        shown.current_since.FromMilliseconds(one.since_unix_ms)
        if action := ACTIONS.get(CURRENT[one.current]):
            shown.action.CopyFrom(self._progress(service_id, one, action))
        return shown

    def _progress(self, service_id: str, one: TupleRecord, action: Action) -> pb.ActionProgress:
        progress = pb.ActionProgress(action=action, number=one.action)
        stored = self._actions.get(kinds.of_snapshot(service_id, one.snapshot_id), ActionRecord())
        if stored.number == one.action:
            progress.message, progress.batches_done = stored.message, stored.batches_done
            progress.cms_task = stored.cms_task
            progress.since.FromMilliseconds(stored.since_unix_ms)
        else:
            progress.since.FromMilliseconds(one.since_unix_ms)
        return progress

    def _stuck(self, service_id: str) -> str:
        failures = [self._controller.failures(name).get(service_id) for name in ("work", "events.service")]
        told = [failure.error for failure in failures if failure is not None]
        if not self._controller.acting_process:
            told.append("no process of Nanny acts")
        if not self._controller.is_open:
            told.append(
                "Nanny's store was restored or replaced: compare the targets with HQ, then run `nanny control open`"
            )
        if (frozen := self._controller.frozen) is not None:
            told.append(f"Nanny is frozen by {frozen.by}: {frozen.reason}")
        return "; ".join(dict.fromkeys(told))

    def action_record(self, service_id: str, snapshot: str) -> ActionRecord:
        return self._actions.get(kinds.of_snapshot(service_id, snapshot), ActionRecord())


def by_location(subject: Subject, content: Content, state: pb.SnapshotState, stored: ActionRecord) -> None:
    """Fill in how far the action of a tuple is, location by location."""
    stages = _stages(subject, content, state.action.action)
    failed = set(keys_of(stored.failed)) if stored.number == state.action.number else set()
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for key, stage in stages.items():
        counts[key[0]]["total"] += 1
        counts[key[0]]["failed" if key in failed and stage is not Stage.DONE else stage] += 1
    for location in sorted({*counts, *subject.picture.seen}):
        found = counts[location]
        state.action.location.append(
            pb.LocationProgress(
                location=location,
                total=found["total"],
                done=found[Stage.DONE],
                under_way=found[Stage.UNDER_WAY] + found[Stage.SETTLING],
                left=sum(found[stage] for stage in _LEFT),
                failed=found["failed"],
                error=subject.away.get(location, ""),
            )
        )


def _stages(subject: Subject, content: Content, action: str) -> dict[Key, Stage]:
    if action == Action.ACTIVATE:
        return {view.key: view.stage for view in views_of(subject, content)}
    return {key: _level_stage(subject, content.id, key, action) for key in content.placements}


def _level_stage(subject: Subject, snapshot: str, key: Key, action: str) -> Stage:
    instance = subject.instances.get(key)
    if key[0] in subject.away:
        return Stage.AWAY
    if instance is None:
        return Stage.UNDER_WAY if action in (Action.PREPARE, Action.GENERATE) else Stage.DONE
    there = {
        Action.GENERATE: target_of(instance, snapshot) is not None,
        Action.PREPARE: reports.is_installed(instance, snapshot),
        Action.DEACTIVATE: target_of(instance, snapshot) != READY and not reports.is_ready(instance, snapshot),
        Action.REMOVE: not reports.is_installed(instance, snapshot),
        Action.DESTROY: target_of(instance, snapshot) is None,
    }
    return Stage.DONE if there[Action(action)] else Stage.UNDER_WAY
