"""How an event changes its service's records: the handler that the kit calls. A pure function of what it reads.

It raises refusals (`Refused`), moves the automaton, and records who did what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from control import Change, Refused, UnreadableEvent
from control.order_rights import OrderRights
from nanny.automaton.service import ManagedService, SnapshotState
from nanny.automaton.service_state import ServiceState, service_state
from nanny.automaton.states import Current, SnapshotEvent, Target
from nanny.automaton.step import instance_refusal, refusal
from nanny.reach import rule_of_event
from nanny.records import kinds
from nanny.records.history import Story
from nanny.records.outcomes import has_served, note_outcomes
from nanny.records.service_update import ServiceUpdate
from nanny.records.services import TARGET, service_of, tuple_of, write_back
from nanny.records.step_orders import on_aborted, on_promoted
from nanny.records.stored_snapshots import (
    check_snapshot,
    delete_snapshot,
    find_copies,
    register_snapshot,
    store_snapshot,
)
from nannypb.v1 import records_pb2
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ServiceEvent, ServiceRecord

_OUTCOMES: Final[Mapping[int, SnapshotEvent]] = {
    records_pb2.OUTCOME_DONE: SnapshotEvent.DONE,
    records_pb2.OUTCOME_FAILED: SnapshotEvent.FAILED,
    records_pb2.OUTCOME_CANCELLED: SnapshotEvent.CANCELLED,
}


def handler(wall_ms: Callable[[], int], rights: OrderRights) -> Callable[[Change, str, ServiceEvent], None]:
    """The handler. Events carry no time of their own: the same request sent again must be the same event."""

    def handle_with_time(change: Change, service_id: str, event: ServiceEvent) -> None:
        rule, roles = rule_of_event(event.WhichOneof("event") or "")
        rights.check(event.access, rule, lambda access: access.check_service(service_id, roles))
        event.by.time.FromMilliseconds(wall_ms())
        handle(change, service_id, event)

    return handle_with_time


def handle(change: Change, service_id: str, event: ServiceEvent) -> None:
    """Handle one event of one service. Raises Refused, UnreadableEvent."""
    kind = event.WhichOneof("event")
    record = change.get(kinds.SERVICE, service_id)
    if kind in ("created", "adopted"):
        return _create(change, service_id, event, record)
    if record is None:
        raise Refused(f"there is no service {service_id}", "NOT_FOUND")
    if kind == "deleted":
        return _delete(change, service_id, record)
    move = _MOVES.get(kind or "")
    if move is None:
        raise UnreadableEvent("this version does not know the event")
    story = Story(change, service_id, event.by)
    move(ServiceUpdate(change, service_id, event, record, story))
    note_outcomes(record, service_of(record), event)
    story.store()
    return change.put(kinds.SERVICE, service_id, record)


def _create(change: Change, service_id: str, event: ServiceEvent, record: ServiceRecord | None) -> None:
    if record is not None:
        raise Refused(f"service {service_id} already exists", "ALREADY_EXISTS")
    made = ServiceRecord(info=event.created, created=event.by, generation=1, info_version=1)
    story = Story(change, service_id, event.by)
    if event.HasField("adopted"):
        _adopt(change, service_id, event, made)
        story.tell("adopted as it runs", made.head)
    else:
        story.tell("created")
    story.store()
    change.put(kinds.SERVICE, service_id, made)


def _adopt(change: Change, service_id: str, event: ServiceEvent, made: ServiceRecord) -> None:
    """Adopt a service: what runs is HEAD and ACTIVE from the start."""
    made.info.CopyFrom(event.adopted.info)
    key = kinds.of_snapshot(service_id, event.adopted.snapshot.snapshot.id)
    change.get(kinds.SNAPSHOT, key)
    stored = records_pb2.SnapshotRecord()
    stored.CopyFrom(event.adopted.snapshot)
    stored.snapshot.created.CopyFrom(event.by)
    stored.snapshot.created.comment = event.by.comment or "adopted as it ran"
    change.put(kinds.SNAPSHOT, key, stored)
    snapshot = stored.snapshot.id
    made.known.append(snapshot)
    made.chunks[snapshot] = stored.chunks
    active = SnapshotState(Current.ACTIVE, Target.ACTIVE)
    service = ManagedService({snapshot: active}, head=snapshot, last_active=snapshot)
    write_back(made, service, event.by.time.ToMilliseconds())
    made.snapshot[0].target_set.CopyFrom(event.by)


def _delete(change: Change, service_id: str, record: ServiceRecord) -> None:
    if record.snapshot:
        names = ", ".join(one.snapshot_id for one in record.snapshot)
        raise Refused(
            f"service {service_id} still has snapshots with a state ({names}): "
            "stop it, and set their targets to DESTROYED"
        )
    if record.HasField("paused"):  # managers paused it: owners could create it again, and go on
        raise Refused(f"service {service_id} is paused by {record.paused.author}: it is deleted once it is resumed")
    for snapshot in record.known:
        delete_snapshot(change, service_id, snapshot)
    change.get(kinds.HISTORY, service_id)
    change.delete(kinds.HISTORY, service_id)
    change.delete(kinds.SERVICE, service_id)


def _on_updated(update: ServiceUpdate) -> None:
    info, fields = update.record.info, update.event.updated_fields
    version = update.record.info_version or 1
    if update.event.info_version not in (0, version):
        raise Refused("its attributes were changed meanwhile: look at them and retry", "ABORTED")
    update.record.info_version = version + 1
    before = set(info.rollout.leave_out)
    if fields.paths:
        update.event.updated.rollout.SetInParent()  # else fields at their defaults would be passed over
        fields.MergeMessage(update.event.updated, info, replace_message_field=True, replace_repeated_field=True)
    else:
        info.CopyFrom(update.event.updated)
    after = set(info.rollout.leave_out)
    named = f": {', '.join(fields.paths)}" if fields.paths else ""
    update.story.tell(f"info attributes replaced{named}")
    if before != after:
        update.story.tell(f"roll-outs leave out {', '.join(sorted(after)) or 'no location'}")


def _on_snapshot(update: ServiceUpdate) -> None:
    """Add the snapshot, unless it is there already, and make it HEAD."""
    added = update.event.snapshot
    key = kinds.of_snapshot(update.service_id, added.snapshot.id)
    if added.snapshot.parent and added.snapshot.parent != update.record.head:
        raise Refused(
            f"HEAD is {update.record.head or 'none'}, not {added.snapshot.parent}: look at what changed and retry"
        )
    if update.change.get(kinds.SNAPSHOT, key) is None:
        store_snapshot(update, added)
    register_snapshot(update, added.snapshot.id, added.chunks)
    update.apply_service(update.step.add_snapshot(update.before, added.snapshot.id))
    update.story.tell("is HEAD", added.snapshot.id)


def _on_restarted(update: ServiceUpdate) -> None:
    """Roll out again what runs, under another id; of earlier copies keep only the one that runs now."""
    restart, before = update.event.restarted, update.before
    state, added = before.tuples.get(restart.of), restart.snapshot.snapshot
    if state is None or state.current is not Current.ACTIVE or state.target is not Target.ACTIVE:
        raise Refused(f"snapshot {restart.of} is not ACTIVE any more: look at what was ordered and retry", "ABORTED")
    added.created.CopyFrom(update.event.by)
    added.created.comment = update.event.by.comment or f"restart of {restart.of}"
    store_snapshot(update, restart.snapshot)
    register_snapshot(update, added.id, restart.snapshot.chunks)
    update.increment_generation()
    update.story.tell(f"restart of {restart.of}", added.id)
    service = before if before.head != restart.of else update.step.add_snapshot(before, added.id)
    for snapshot in find_copies(update, added.restart_of):
        if snapshot != restart.of and not refusal(service, snapshot, Target.DESTROYED):
            service = update.step.set_target(service, snapshot, Target.DESTROYED)
    update.apply_service(update.step.set_target(service, added.id, Target.ACTIVE))
    if (one := tuple_of(update.record, added.id)) is not None:
        one.target_set.CopyFrom(update.event.by)
        one.order.CopyFrom(pb.Order(id=restart.order_id, target=pb.TARGET_ACTIVE, outcome=pb.ORDER_OUTCOME_OPEN))
        one.order.skip_steps = True


def _on_target(update: ServiceUpdate) -> None:
    order = update.event.target
    target = TARGET[order.target]
    check_snapshot(update, order.snapshot_id)
    if why := refusal(update.before, order.snapshot_id, target):
        raise Refused(why)
    if order.roll_back and not has_served(tuple_of(update.record, order.snapshot_id)):
        raise Refused(
            f"snapshot {order.snapshot_id} was not ACTIVE before, or is not on the nodes any more, so nothing can be "
            "rolled back to it: order it without roll_back"
        )
    update.increment_generation()
    update.story.tell(f"target {target}" + (" with the fill flag" if order.fill else ""), order.snapshot_id)
    update.apply_service(update.step.set_target(update.before, order.snapshot_id, target, fill=order.fill))
    if (one := tuple_of(update.record, order.snapshot_id)) is not None:
        one.target_set.CopyFrom(update.event.by)
        one.order.CopyFrom(pb.Order(id=order.order_id, target=order.target, outcome=pb.ORDER_OUTCOME_OPEN))
        one.order.skip_steps, one.order.roll_back = order.skip_steps, order.roll_back


def _on_instance(update: ServiceUpdate) -> None:
    order = update.event.instance
    check_snapshot(update, order.snapshot_id)
    if why := instance_refusal(update.before, order.snapshot_id):
        raise Refused(why)
    update.increment_generation()
    after = update.step.override_instance_target(update.before, order.snapshot_id)
    key = kinds.of_instance(update.service_id, (order.instance.location, order.instance.id))
    stored = records_pb2.InstanceTargetRecord(
        snapshot_id=order.snapshot_id,
        target=order.target,
        set=update.event.by,
        overrides=after.tuples[order.snapshot_id].overrides,
    )
    before = update.change.get(kinds.INSTANCE_TARGET, key)
    stored.cms_task = before.cms_task if before is not None else ""
    update.change.put(kinds.INSTANCE_TARGET, key, stored)
    where = f"{order.instance.id} ({order.instance.location})"
    update.story.tell(f"target {TARGET[order.target]} for instance {where}", order.snapshot_id)
    update.apply_service(after)


def _on_paused(update: ServiceUpdate) -> None:
    if update.event.paused:
        update.record.paused.CopyFrom(update.event.by)
        update.record.generation = max(update.record.generation, update.event.generation)
        update.story.tell("actions paused")
    else:
        update.record.ClearField("paused")
        update.story.tell("actions resumed")


def _on_stopped(update: ServiceUpdate) -> None:
    if service_state(update.before) is ServiceState.OFFLINE:
        raise Refused(f"service {update.service_id} is {ServiceState.OFFLINE}: there is nothing to stop")
    update.increment_generation()
    active = update.before.wanted_active()
    update.story.tell("stopped")
    update.apply_service(update.step.stop_service(update.before))
    if (one := tuple_of(update.record, active)) is not None:
        one.target_set.CopyFrom(update.event.by)


def _on_ended(update: ServiceUpdate) -> None:
    end = update.event.ended
    if end.message:
        update.story.tell(end.message, end.snapshot_id, by_nanny=True)
    after = update.step.end_action(update.before, end.snapshot_id, end.number, _OUTCOMES[end.outcome])
    if after is update.before:
        raise Refused(f"action {end.number} is over")
    if not (after.rolling_back and update.before.rolling_back):
        del update.record.ailing[:]
        update.record.ailing.extend(end.ailing if after.rolling_back else ())
    if end.HasField("health"):
        update.record.health.CopyFrom(end.health)
    update.apply_service(after, end.snapshot_id, end.message)


_MOVES: Final[Mapping[str, Callable[[ServiceUpdate], None]]] = {
    "updated": _on_updated,
    "snapshot": _on_snapshot,
    "target": _on_target,
    "instance": _on_instance,
    "paused": _on_paused,
    "stopped": _on_stopped,
    "ended": _on_ended,
    "promoted": on_promoted,
    "aborted": on_aborted,
    "restarted": _on_restarted,
}
