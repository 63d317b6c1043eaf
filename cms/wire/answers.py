"""Answers of the wire API as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from cms.ledger.states import STATUS, State
from cms.ledger.why import BudgetView, LimitView, Why
from cms.records import need_of
from cmspb.storage.v1 import ledger_pb2
from serving.clock import Clock
from serving.errors import InvalidRequest, ServiceError


def json_bytes(value: object) -> bytes:
    """Compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def verdict(record: ledger_pb2.Task, why: Why, clock: Clock, status: str = "") -> dict[str, Any]:
    """A task and its verdict. `status`: instead of that of its state."""
    state = State(record.state)
    details: dict[str, Any] = {
        "state": record.state,
        "provisional": state is State.PROVISIONAL,
        "need": need_of(record).name.lower(),
        "budgets": [_budget(view, clock) for view in why.budgets],
        "limits": [_limit(view) for view in why.limits],
    }
    if why.retry_after_s:
        details["retry_after_s"] = why.retry_after_s
    if why.opens_in_s:
        details["opens_in_s"] = why.opens_in_s
    return {
        "id": record.id,
        "hosts": list(record.host),
        "status": status or STATUS[state],
        "message": why.message,
        "details": details,
    }


def listed_task(record: ledger_pb2.Task, message: str) -> dict[str, Any]:
    """A task as lists show it."""
    shown: dict[str, Any] = {
        "id": record.id,
        "type": record.type,
        "issuer": record.issuer,
        "action": record.action,
        "hosts": list(record.host),
        "status": STATUS[State(record.state)],
        "message": message,
    }
    optional = {
        "comment": record.comment,
        "failure": record.failure,
        "host_group_id": record.group_id,
        "extra": json.loads(record.extra) if record.extra else None,
    }
    return shown | {name: value for name, value in optional.items() if value}


def error_body(error: ServiceError) -> bytes:
    """Make the body of an error: the fault, and its fields."""
    told: dict[str, Any] = {"message": str(error), "reason": error.reason}
    if isinstance(error, InvalidRequest):
        told["errors"] = [{"field": one.field, "message": one.description} for one in error.violations[:20]]
    return json_bytes(told)


def _budget(view: BudgetView, clock: Clock) -> dict[str, Any]:
    return {
        "name": view.name,
        "rule": view.rule,
        "total": view.total,
        "floor": view.floor,
        "available": view.available,
        "needs": view.needs,
        "blocks": view.blocks,
        "holders": [
            {
                "task": held.task.id,
                "issuer": held.task.issuer,
                "action": held.task.action,
                "since": _moment(clock, held.task.since),
                "instances": held.instances,
            }
            for held in view.holders
        ],
        "not_ready": [
            {
                "instance": one.instance.key.id,
                "location": one.instance.key.location,
                "host": one.instance.host,
                "standing": one.standing.value,
                "reason": one.reason,
            }
            for one in view.missing
        ],
        "not_ready_total": view.missing_total,
    }


def _limit(view: LimitView) -> dict[str, Any]:
    return {
        "name": view.limit.name,
        "kind": view.limit.kind,
        "most": view.limit.most,
        "under_work": list(view.busy[:20]),
        "blocks": view.blocks,
    }


def _moment(clock: Clock, at: float) -> str:
    wall_s = clock.wall_ms() / 1000 - (clock.now() - at)
    return datetime.fromtimestamp(wall_s, UTC).isoformat(timespec="seconds")
