"""The outcome of an order for a snapshot's target: it is open until it is reached, or something else ends it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from nanny.automaton.service import ManagedService
from nanny.automaton.states import ACTIONS, Current, Target
from nanny.records.services import CURRENT, TARGET
from nannypb.v1 import service_pb2 as pb
from nannypb.v1.records_pb2 import OUTCOME_FAILED, ServiceEvent, ServiceRecord, TupleRecord

_ARRIVED: Final[Mapping[Target, Current]] = {
    Target.CREATED: Current.CREATED,
    Target.PREPARED: Current.PREPARED,
    Target.ACTIVE: Current.ACTIVE,
}


class _Outcome(NamedTuple):
    """`instead`: the snapshot that is active in its place, or is becoming that."""

    outcome: pb.OrderOutcome
    message: str = ""
    instead: str = ""


_ON_ALL_NODES: Final = frozenset({Current.PREPARED, Current.DEACTIVATING, Current.DEACTIVATE_PENDING})
_OPEN: Final = _Outcome(pb.ORDER_OUTCOME_OPEN)


def note_outcomes(record: ServiceRecord, service: ManagedService, event: ServiceEvent) -> None:
    """Note in the record what the event means for the orders that are open; `service`: as it is afterwards."""
    for one in record.snapshot:
        if _is_failed_by(event, one):
            one.has_served = False
        if one.order.outcome != pb.ORDER_OUTCOME_OPEN:
            continue
        after = _of_roll_back(one, service, event) if one.order.instead_snapshot_id else _of_order(one, service, event)
        if after.outcome == pb.ORDER_OUTCOME_REACHED and event.HasField("target"):
            after = _of_active(one, record, after)
        if after is not _OPEN:
            one.order.outcome, one.order.message = after.outcome, after.message
            one.order.instead_snapshot_id = after.instead
            if after.outcome != pb.ORDER_OUTCOME_OPEN:
                one.order.end_time.CopyFrom(event.by.time)


def has_served(one: TupleRecord | None) -> bool:
    """Whether it was ACTIVE, and its files are on the nodes. Records of earlier versions show only its last order."""
    if one is None or CURRENT[one.current] not in _ON_ALL_NODES:
        return False
    order = one.order
    is_reached = (order.target, order.outcome) == (pb.TARGET_ACTIVE, pb.ORDER_OUTCOME_REACHED)
    return one.has_served or is_reached or not order.id


def rolls_back(record: ServiceRecord) -> bool:
    """Whether the current roll-out goes back: by its policy, or because people ordered that."""
    is_ordered = (
        one.order.roll_back and one.order.outcome == pb.ORDER_OUTCOME_OPEN and one.target == pb.TARGET_ACTIVE
        for one in record.snapshot
    )
    return record.rolling_back or any(is_ordered)


def _is_failed_by(event: ServiceEvent, one: TupleRecord) -> bool:
    if event.HasField("aborted"):
        return one.order.id == event.aborted.order_id
    return event.ended.outcome == OUTCOME_FAILED and event.ended.snapshot_id == one.snapshot_id


def _of_order(one: TupleRecord, service: ManagedService, event: ServiceEvent) -> _Outcome:
    state, wanted = service.tuples[one.snapshot_id], TARGET[one.order.target]
    if state.target is not wanted:
        return _displaced_outcome(one, service, event)
    if state.current in ACTIONS:
        return _OPEN
    if state.current is _ARRIVED.get(wanted):
        return _Outcome(pb.ORDER_OUTCOME_REACHED, one.message)
    is_pending = state.current is Current.DEACTIVATE_PENDING
    if is_pending and any(other.current in ACTIONS for other in service.tuples.values()):
        return _OPEN
    if is_pending and not one.message:
        return _Outcome(pb.ORDER_OUTCOME_FAILED, f"it serves on, as {service.wanted_active()} did not become ACTIVE")
    return _Outcome(pb.ORDER_OUTCOME_FAILED, one.message)


def _of_active(one: TupleRecord, record: ServiceRecord, reached: _Outcome) -> _Outcome:
    """The outcome if nothing was to be done: an order for ACTIVE is reached only if the service serves."""
    health = record.health
    if one.order.target == pb.TARGET_ACTIVE and health.remark and health.ready < health.wanted:
        return _Outcome(pb.ORDER_OUTCOME_FAILED, f"it is active already, but {health.remark}")
    return reached


def _displaced_outcome(one: TupleRecord, service: ManagedService, event: ServiceEvent) -> _Outcome:
    """The outcome of an order whose target was changed by something else than an order for this snapshot."""
    instead = service.wanted_active()
    if event.WhichOneof("event") in ("ended", "aborted"):
        if instead == one.snapshot_id:  # what was to be switched off serves on
            return _Outcome(
                pb.ORDER_OUTCOME_SUPERSEDED, "another snapshot failed and is rolled back to this one", instead
            )
        # Its roll-out failed, and the roll-back begins: the order ends when the roll-back does.
        return _Outcome(pb.ORDER_OUTCOME_OPEN, event.ended.message or one.message, instead)
    outcome = pb.ORDER_OUTCOME_SUPERSEDED if instead else pb.ORDER_OUTCOME_CANCELLED
    return _Outcome(outcome, _by(event), instead)


def _of_roll_back(one: TupleRecord, service: ManagedService, event: ServiceEvent) -> _Outcome:
    back, why = one.order.instead_snapshot_id, one.order.message
    state = service.tuples.get(back)
    if state is None or state.target is not Target.ACTIVE:
        why = f"{why}; the roll-back to {back} was not finished: {_by(event)}"
        return _Outcome(pb.ORDER_OUTCOME_FAILED, why, service.wanted_active())
    if state.current is Current.ACTIVE:
        return _Outcome(pb.ORDER_OUTCOME_ROLLED_BACK, why, back)
    if state.current in ACTIONS:
        return _OPEN
    return _Outcome(
        pb.ORDER_OUTCOME_FAILED,
        f"{why}; the roll-back to {back} failed, too: {event.ended.message or _by(event)}",
        back,
    )


def _by(event: ServiceEvent) -> str:
    """Who sent an event, and why."""
    verb = {"stopped": "stopped", "aborted": "aborted"}.get(event.WhichOneof("event") or "", "another target set")
    comment = f": {event.by.comment}" if event.by.comment else ""
    return f"{verb} by {event.by.author or 'somebody'}{comment}"
