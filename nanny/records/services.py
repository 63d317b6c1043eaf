"""A service record as the automaton sees it, and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from control.amounts import Amount
from control.waves import WaveStep
from nanny.automaton.service import ManagedService, SnapshotState
from nanny.automaton.states import Current, Target
from nanny.rollout.policy import DEADLINE_S, TEN_PERCENT, Policy, default_min_ready_s, default_soak_s
from nannypb.v1 import records_pb2, service_pb2

CURRENT: Mapping[int, Current] = {
    number: Current(name.removeprefix("CURRENT_STATE_")) for name, number in service_pb2.CurrentState.items() if number
}
CURRENT_NUMBER = {state: number for number, state in CURRENT.items()}
TARGET: Mapping[int, Target] = {
    number: Target(name.removeprefix("TARGET_")) for name, number in service_pb2.Target.items() if number
}
TARGET_NUMBER = {target: number for number, target in TARGET.items()}


def service_of(record: records_pb2.ServiceRecord) -> ManagedService:
    """Return a record as the automaton needs it."""
    return ManagedService(
        tuples={one.snapshot_id: _state(one) for one in record.snapshot},
        head=record.head,
        paused=record.HasField("paused"),
        last_active=record.last_active,
        rolling_back=record.rolling_back,
        numbered=record.numbered,
        head_on_activation=record.info.set_snapshot_as_current_upon_activation,
        rolls_back=record.info.rollout.roll_back,
    )


def _state(record: records_pb2.TupleRecord) -> SnapshotState:
    return SnapshotState(
        CURRENT[record.current],
        TARGET[record.target],
        record.fill,
        record.overrides,
        record.action,
        record.promoted,
    )


def write_back(record: records_pb2.ServiceRecord, service: ManagedService, now_ms: int) -> None:
    """Bring a record to what the automaton says; `current_since` follows the state, and old messages are removed."""
    before = {one.snapshot_id: one for one in record.snapshot}
    tuples = []
    for snapshot, state in service.tuples.items():
        one = records_pb2.TupleRecord(snapshot_id=snapshot, since_unix_ms=now_ms)
        old = before.get(snapshot)
        if old is not None:
            one.CopyFrom(old)
            if CURRENT[old.current] is not state.current:
                one.since_unix_ms, one.message = now_ms, ""
        one.current = CURRENT_NUMBER[state.current]  # type: ignore[assignment]
        one.target = TARGET_NUMBER[state.target]  # type: ignore[assignment]
        one.fill, one.overrides, one.action = state.fill, state.overrides, state.action
        one.promoted = state.promoted
        if Current.ACTIVE in (state.current, CURRENT[old.current] if old is not None else None):
            one.has_served = True
        elif state.current is Current.REMOVING:
            one.has_served = False
        tuples.append(one)
    del record.snapshot[:]
    record.snapshot.extend(tuples)
    record.head, record.last_active = service.head, service.last_active
    record.rolling_back, record.numbered = service.rolling_back, service.numbered


def tuple_of(record: records_pb2.ServiceRecord, snapshot: str) -> records_pb2.TupleRecord | None:
    """The tuple of a snapshot; None: it has none."""
    return next((one for one in record.snapshot if one.snapshot_id == snapshot), None)


def policy_of(service_id: str, record: records_pb2.ServiceRecord) -> Policy:
    """The policy for a service's roll-outs."""
    told = record.info.rollout
    deadline_s = float(told.progress_deadline_s or DEADLINE_S)
    return Policy(
        max_unavailable=Amount.parse(told.max_unavailable) if told.max_unavailable else TEN_PERCENT,
        max_failures=Amount.parse(told.max_failures) if told.max_failures else TEN_PERCENT,
        progress_deadline_s=deadline_s,
        min_ready_s=float(told.min_ready_s) if told.HasField("min_ready_s") else default_min_ready_s(deadline_s),
        soak_s=float(told.soak_s) if told.HasField("soak_s") else default_soak_s(deadline_s),
        locations=tuple(told.location),
        leave_out=frozenset(told.leave_out),
        rolls_back=told.roll_back,
        service=service_id,
    )


DEFAULT_CHECK_S = 300


def steps_of(
    steps: Iterable[service_pb2.RolloutStep], checks: Iterable[service_pb2.RolloutCheck] | None = None
) -> tuple[WaveStep, ...]:
    """Steps as the plan knows them. Raises ValueError for an amount.

    `checks`: give each step with a check its duration; a step whose check is none of these is never over.
    """
    durations = {check.name: float(check.duration_s or DEFAULT_CHECK_S) for check in checks or ()}
    return tuple(
        WaveStep(
            Amount.parse(step.instances) if step.instances else None,
            parse_weight(step.weight) if step.weight else None,
            durations.get(step.check, math.inf if step.check and checks is not None else float(step.hold_s)),
            step.promote,
            step.check,
        )
        for step in steps
    )


def parse_weight(text: str) -> int:
    """A percentage. Raises ValueError, which says what to write."""
    amount = Amount.parse(text)
    if not amount.is_percent:
        raise ValueError(f"{text[:40]!r} is not a share: write it as 5%")
    return amount.value
