"""How an event changes its service's records: the handler that the kit calls. A pure function of what it reads.

It raises refusals (`Refused`), moves the automaton, and records who did what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from control import Change, Refused, UnreadableEvent
from control.order_rights import OrderRights
from nanny.automaton.service import ManagedService, SnapshotState
from nanny.automaton.service_state import ServiceState, service_state
from nanny.automaton.states import Current, SnapshotEvent, Target
from nanny.automaton.step import SnapshotAutomaton, instance_refusal, refusal, step_refusal
from nanny.automaton.table import State
from nanny.reach import rule_of_event
from nanny.records import kinds
from nanny.records.history import Story
from nanny.records.outcomes import note_outcomes
from nanny.records.services import TARGET, service_of, tuple_of, write_back
from nanny.records.timeline import closed_timeline
from nannypb.v1 import records_pb2
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import ServiceEvent, ServiceRecord

MAX_SNAPSHOTS: Final = 200
MAX_CHUNKS: Final = 256  # of all snapshots of a service: 64 MiB, so that no service fills the store
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
    """One event of one service. Raises Refused, UnreadableEvent."""
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
    move(_Moved(change, service_id, event, record, story))
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
    for snapshot in record.known:
        _forget(change, service_id, snapshot)
    change.get(kinds.HISTORY, service_id)
    change.delete(kinds.HISTORY, service_id)
    change.delete(kinds.SERVICE, service_id)


def _forget(change: Change, service_id: str, snapshot: str) -> None:
    """Delete a snapshot and its content."""
    key = kinds.of_snapshot(service_id, snapshot)
    stored = change.get(kinds.SNAPSHOT, key)
    change.delete(kinds.SNAPSHOT, key)
    for number in range(stored.chunks if stored else 0):
        chunk = kinds.of_chunk(service_id, snapshot, number)
        change.get(kinds.CHUNK, chunk)
        change.delete(kinds.CHUNK, chunk)
    change.get(kinds.ROLLOUT, key)
    change.delete(kinds.ROLLOUT, key)


class _Moved:
    """One event being applied to one record."""

    def __init__(
        self, change: Change, service_id: str, event: ServiceEvent, record: ServiceRecord, story: Story
    ) -> None:
        self.change, self.service_id, self.event, self.record, self.story = change, service_id, event, record, story
        self.before = service_of(record)
        self.step = SnapshotAutomaton(passed=self._on_transition)
        self.now_ms = event.by.time.ToMilliseconds()

    def apply_service(self, service: ManagedService, message_of: str = "", message: str = "") -> None:
        """The automaton has moved."""
        write_back(self.record, service, self.now_ms)
        if (one := tuple_of(self.record, message_of)) is not None:
            one.message = message
        self._close_timelines(service)

    def _close_timelines(self, service: ManagedService) -> None:
        """Of roll-outs that something else than their end has ended: nobody acts on them any more."""
        for snapshot, state in self.before.tuples.items():
            after = service.tuples.get(snapshot)
            if state.current is not Current.ACTIVATING or (after is not None and after.action == state.action):
                continue
            key = kinds.of_snapshot(self.service_id, snapshot)
            timeline = self.change.get(kinds.ROLLOUT, key)
            if timeline is not None and timeline.number == state.action:
                self.change.put(kinds.ROLLOUT, key, closed_timeline(timeline, self.now_ms))

    def increment_generation(self) -> None:
        """A person's order: increment the generation that later writes to HQ carry."""
        self.record.generation += 1

    def _on_transition(self, snapshot: str, before: State, event: SnapshotEvent, after: State) -> None:
        if after is not before:
            self.story.tell(f"{before or 'none'} -> {after or 'none'} ({event})", snapshot, by_nanny=True)


def _on_updated(moved: _Moved) -> None:
    info, fields = moved.record.info, moved.event.updated_fields
    version = moved.record.info_version or 1
    if moved.event.info_version not in (0, version):
        raise Refused("its attributes were changed meanwhile: look at them and retry", "ABORTED")
    moved.record.info_version = version + 1
    before = set(info.rollout.leave_out)
    if fields.paths:
        moved.event.updated.rollout.SetInParent()  # else fields at their defaults would be passed over
        fields.MergeMessage(moved.event.updated, info, replace_message_field=True, replace_repeated_field=True)
    else:
        info.CopyFrom(moved.event.updated)
    after = set(info.rollout.leave_out)
    named = f": {', '.join(fields.paths)}" if fields.paths else ""
    moved.story.tell(f"info attributes replaced{named}")
    if before != after:
        moved.story.tell(f"roll-outs leave out {', '.join(sorted(after)) or 'no location'}")


def _on_snapshot(moved: _Moved) -> None:
    """The snapshot is added, unless it is there already; it is HEAD now."""
    added = moved.event.snapshot
    key = kinds.of_snapshot(moved.service_id, added.snapshot.id)
    if added.snapshot.parent and added.snapshot.parent != moved.record.head:
        raise Refused(
            f"HEAD is {moved.record.head or 'none'}, not {added.snapshot.parent}: look at what changed and retry"
        )
    if moved.change.get(kinds.SNAPSHOT, key) is None:
        _store_snapshot(moved, added)
    _remember(moved, added.snapshot.id, added.chunks)
    moved.apply_service(moved.step.add_snapshot(moved.before, added.snapshot.id))
    moved.story.tell("is HEAD", added.snapshot.id)


def _store_snapshot(moved: _Moved, added: records_pb2.SnapshotRecord) -> None:
    key = kinds.of_snapshot(moved.service_id, added.snapshot.id)
    moved.change.get(kinds.SNAPSHOT, key)
    stored = records_pb2.SnapshotRecord()
    stored.CopyFrom(added)
    stored.snapshot.parent = moved.record.head
    stored.snapshot.created.time.CopyFrom(moved.event.by.time)
    moved.change.put(kinds.SNAPSHOT, key, stored)


def _on_restarted(moved: _Moved) -> None:
    """What runs is rolled out again under another id; of the copies of before, only what runs now is kept."""
    restart, before = moved.event.restarted, moved.before
    state, added = before.tuples.get(restart.of), restart.snapshot.snapshot
    if state is None or state.current is not Current.ACTIVE or state.target is not Target.ACTIVE:
        raise Refused(f"snapshot {restart.of} is not ACTIVE any more: look at what was ordered and retry", "ABORTED")
    added.created.CopyFrom(moved.event.by)
    added.created.comment = moved.event.by.comment or f"restart of {restart.of}"
    _store_snapshot(moved, restart.snapshot)
    _remember(moved, added.id, restart.snapshot.chunks)
    moved.increment_generation()
    moved.story.tell(f"restart of {restart.of}", added.id)
    service = before if before.head != restart.of else moved.step.add_snapshot(before, added.id)
    for snapshot in _copies(moved, added.restart_of):
        if snapshot != restart.of and not refusal(service, snapshot, Target.DESTROYED):
            service = moved.step.set_target(service, snapshot, Target.DESTROYED)
    moved.apply_service(moved.step.set_target(service, added.id, Target.ACTIVE))
    if (one := tuple_of(moved.record, added.id)) is not None:
        one.target_set.CopyFrom(moved.event.by)
        one.order.CopyFrom(pb.Order(id=restart.order_id, target=pb.TARGET_ACTIVE, outcome=pb.ORDER_OUTCOME_OPEN))
        one.order.skip_steps = True


def _copies(moved: _Moved, first: str) -> list[str]:
    """Snapshots on the nodes that have the same content, as they restart it; the first one, too."""
    found = []
    for snapshot in moved.before.tuples:
        stored = moved.change.get(kinds.SNAPSHOT, kinds.of_snapshot(moved.service_id, snapshot))
        if snapshot == first or (stored is not None and stored.snapshot.restart_of == first):
            found.append(snapshot)
    return found


def _remember(moved: _Moved, snapshot: str, chunks: int) -> None:
    """Add it as the newest; drop the oldest that nothing refers to."""
    for number in range(chunks):
        if moved.change.get(kinds.CHUNK, kinds.of_chunk(moved.service_id, snapshot, number)) is None:
            raise Refused(f"the content of snapshot {snapshot} was removed meanwhile: send it again", "ABORTED")
    known, sizes = [one for one in moved.record.known if one != snapshot] + [snapshot], moved.record.chunks
    sizes[snapshot] = chunks
    used = {*moved.before.tuples, moved.before.last_active, moved.before.head, snapshot}
    for old in [one for one in known if one not in used]:
        if len(known) <= MAX_SNAPSHOTS and _count_chunks(moved.record, known) <= MAX_CHUNKS:
            break
        known.remove(old)
        sizes.pop(old, None)
        _forget(moved.change, moved.service_id, old)
    if _count_chunks(moved.record, known) > MAX_CHUNKS:
        raise Refused("the contents of its snapshots in use take too much of the store: set targets to DESTROYED first")
    moved.record.known[:] = known


def _count_chunks(record: ServiceRecord, known: list[str]) -> int:
    return sum(record.chunks.get(one, 1) for one in known)


def _on_target(moved: _Moved) -> None:
    order = moved.event.target
    target = TARGET[order.target]
    _check_snapshot(moved, order.snapshot_id)
    if why := refusal(moved.before, order.snapshot_id, target):
        raise Refused(why)
    moved.increment_generation()
    moved.story.tell(f"target {target}" + (" with the fill flag" if order.fill else ""), order.snapshot_id)
    moved.apply_service(moved.step.set_target(moved.before, order.snapshot_id, target, fill=order.fill))
    if (one := tuple_of(moved.record, order.snapshot_id)) is not None:
        one.target_set.CopyFrom(moved.event.by)
        one.order.CopyFrom(pb.Order(id=order.order_id, target=order.target, outcome=pb.ORDER_OUTCOME_OPEN))
        one.order.skip_steps = order.skip_steps


def _on_instance(moved: _Moved) -> None:
    order = moved.event.instance
    _check_snapshot(moved, order.snapshot_id)
    if why := instance_refusal(moved.before, order.snapshot_id):
        raise Refused(why)
    moved.increment_generation()
    after = moved.step.override_instance_target(moved.before, order.snapshot_id)
    key = kinds.of_instance(moved.service_id, (order.instance.location, order.instance.id))
    stored = records_pb2.InstanceTargetRecord(
        snapshot_id=order.snapshot_id,
        target=order.target,
        set=moved.event.by,
        overrides=after.tuples[order.snapshot_id].overrides,
    )
    before = moved.change.get(kinds.INSTANCE_TARGET, key)
    stored.cms_task = before.cms_task if before is not None else ""
    moved.change.put(kinds.INSTANCE_TARGET, key, stored)
    where = f"{order.instance.id} ({order.instance.location})"
    moved.story.tell(f"target {TARGET[order.target]} for instance {where}", order.snapshot_id)
    moved.apply_service(after)


def _on_promoted(moved: _Moved) -> None:
    order = moved.event.promoted
    snapshot, steps = _step_under_way(moved, order)
    if not order.number or not steps[order.number - 1].promote:
        raise Refused(f"step {order.number} does not wait for people", "ABORTED")
    moved.story.tell(f"step {order.number} promoted", snapshot)
    moved.apply_service(moved.step.promote_step(moved.before, snapshot, order.number))


def _on_aborted(moved: _Moved) -> None:
    order = moved.event.aborted
    snapshot, _ = _step_under_way(moved, order)
    why = f"aborted by {moved.event.by.author or 'somebody'}"
    why += f": {moved.event.by.comment}" if moved.event.by.comment else ""
    moved.story.tell(f"roll-out aborted at step {order.number}" if order.number else "roll-out aborted", snapshot)
    action = moved.change.get(kinds.ACTION, kinds.of_snapshot(moved.service_id, snapshot))
    after = moved.step.abort_rollout(moved.before, snapshot)
    del moved.record.ailing[:]
    moved.record.ailing.extend(action.ailing if after.rolling_back and action is not None else ())
    moved.increment_generation()
    moved.apply_service(after, snapshot, why)


def _step_under_way(moved: _Moved, order: records_pb2.StepOrder) -> tuple[str, Sequence[pb.RolloutStep]]:
    """The snapshot that the order rolls out, and its steps. Raises Refused if another order or step is under way."""
    snapshot = next((one.snapshot_id for one in moved.record.snapshot if one.order.id == order.order_id), "")
    if not snapshot:
        raise Refused(f"there is no order {order.order_id[:80]!r}, or a later one took its place", "ABORTED")
    if why := step_refusal(moved.before, snapshot):
        raise Refused(why, "ABORTED")
    state = moved.before.tuples[snapshot]
    action = moved.change.get(kinds.ACTION, kinds.of_snapshot(moved.service_id, snapshot))
    steps: Sequence[pb.RolloutStep] = action.step if action is not None and action.number == state.action else ()
    over = max(action.steps_over, state.promoted) if action is not None and steps else 0
    now = over + 1 if over < len(steps) else 0
    if order.number != now:
        raise Refused(f"step {now or 'none'} is under way, not {order.number or 'none'}: look at it again", "ABORTED")
    return snapshot, steps


def _on_paused(moved: _Moved) -> None:
    if moved.event.paused:
        moved.record.paused.CopyFrom(moved.event.by)
        moved.record.generation = max(moved.record.generation, moved.event.generation)
        moved.story.tell("actions paused")
    else:
        moved.record.ClearField("paused")
        moved.story.tell("actions resumed")


def _on_stopped(moved: _Moved) -> None:
    if service_state(moved.before) is ServiceState.OFFLINE:
        raise Refused(f"service {moved.service_id} is {ServiceState.OFFLINE}: there is nothing to stop")
    moved.increment_generation()
    active = moved.before.wanted_active()
    moved.story.tell("stopped")
    moved.apply_service(moved.step.stop_service(moved.before))
    if (one := tuple_of(moved.record, active)) is not None:
        one.target_set.CopyFrom(moved.event.by)


def _on_ended(moved: _Moved) -> None:
    end = moved.event.ended
    if end.message:
        moved.story.tell(end.message, end.snapshot_id, by_nanny=True)
    after = moved.step.end_action(moved.before, end.snapshot_id, end.number, _OUTCOMES[end.outcome])
    if after is moved.before:
        raise Refused(f"action {end.number} is over")
    if not (after.rolling_back and moved.before.rolling_back):
        del moved.record.ailing[:]
        moved.record.ailing.extend(end.ailing if after.rolling_back else ())
    if end.HasField("health"):
        moved.record.health.CopyFrom(end.health)
    moved.apply_service(after, end.snapshot_id, end.message)


def _check_snapshot(moved: _Moved, snapshot: str) -> None:
    if moved.change.get(kinds.SNAPSHOT, kinds.of_snapshot(moved.service_id, snapshot)) is None:
        raise Refused(f"service {moved.service_id} has no snapshot {snapshot}", "NOT_FOUND")


_MOVES: Final[Mapping[str, Callable[[_Moved], None]]] = {
    "updated": _on_updated,
    "snapshot": _on_snapshot,
    "target": _on_target,
    "instance": _on_instance,
    "paused": _on_paused,
    "stopped": _on_stopped,
    "ended": _on_ended,
    "promoted": _on_promoted,
    "aborted": _on_aborted,
    "restarted": _on_restarted,
}
