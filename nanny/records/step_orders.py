"""Orders for the step under way of a roll-out: promote it, or abort the roll-out."""

from __future__ import annotations

from control import Refused
from nanny.automaton.step import step_refusal
from nanny.records import kinds
from nanny.records.service_update import ServiceUpdate
from nanny.records.timeline import promoted_timeline
from nannypb.v1 import records_pb2


def on_promoted(update: ServiceUpdate) -> None:
    """Promote the step under way, which waits for people. Raises Refused."""
    order = update.event.promoted
    snapshot, action = _step_under_way(update, order)
    if not order.number or not action.step[order.number - 1].promote:
        raise Refused(f"step {order.number} does not wait for people", "ABORTED")
    update.story.tell(f"step {order.number} promoted", snapshot)
    key = kinds.of_snapshot(update.service_id, snapshot)
    timeline = promoted_timeline(update.change.get(kinds.ROLLOUT, key), action, order.number, update.event.by)
    update.change.put(kinds.ROLLOUT, key, timeline)
    update.apply_service(update.step.promote_step(update.before, snapshot, order.number))


def on_aborted(update: ServiceUpdate) -> None:
    """Fail the roll-out under way. Raises Refused."""
    order = update.event.aborted
    snapshot, _ = _step_under_way(update, order)
    why = f"aborted by {update.event.by.author or 'somebody'}"
    why += f": {update.event.by.comment}" if update.event.by.comment else ""
    update.story.tell(f"roll-out aborted at step {order.number}" if order.number else "roll-out aborted", snapshot)
    action = update.change.get(kinds.ACTION, kinds.of_snapshot(update.service_id, snapshot))
    after = update.step.abort_rollout(update.before, snapshot)
    del update.record.ailing[:]
    update.record.ailing.extend(action.ailing if after.rolling_back and action is not None else ())
    update.increment_generation()
    update.apply_service(after, snapshot, why)


def _step_under_way(update: ServiceUpdate, order: records_pb2.StepOrder) -> tuple[str, records_pb2.ActionRecord]:
    """The snapshot that the order rolls out, and its action. Raises Refused if another order or step is under way."""
    snapshot = next((one.snapshot_id for one in update.record.snapshot if one.order.id == order.order_id), "")
    if not snapshot:
        raise Refused(f"there is no order {order.order_id[:80]!r}, or a later one took its place", "ABORTED")
    if why := step_refusal(update.before, snapshot):
        raise Refused(why, "ABORTED")
    state = update.before.tuples[snapshot]
    action = update.change.get(kinds.ACTION, kinds.of_snapshot(update.service_id, snapshot))
    if action is None or action.number != state.action:
        action = records_pb2.ActionRecord()  # the worker has not begun
    over = max(action.steps_over, state.promoted) if action.step else 0
    now = over + 1 if over < len(action.step) else 0
    if order.number != now:
        raise Refused(f"step {now or 'none'} is under way, not {order.number or 'none'}: look at it again", "ABORTED")
    return snapshot, action
