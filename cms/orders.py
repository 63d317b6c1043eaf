"""Orders to the acting process: stored as events first, then handled there, each once."""

from __future__ import annotations

import zlib
from functools import partial
from typing import Final, NoReturn

from cms.kinds import KINDS
from cms.ledger.actions import ACTIONS
from cms.ledger.states import State, TaskEvent
from cms.ledger.tasks import Need
from cms.permits import CmsAccessChecks
from cms.records import DECLARED, ENDED, TASK, ended_record, move, need_of
from cmspb.storage.v1 import ledger_pb2
from control import Change, Controller, Refused
from serving.rights.rules import BUDGET, LEAVE

_SHARDS: Final = 16
TIMEOUT_S: Final = 1.8  # every answer of the wire comes within 2 s


class CmsOrders:
    """Stores orders, and handles them where this process acts."""

    def __init__(self, controller: Controller, reaches: CmsAccessChecks) -> None:
        self._controller, self._reaches = controller, reaches
        self._events = controller.events("order", ledger_pb2.Order, self._handle)

    async def submit(self, key: str, order: ledger_pb2.Order, by: str = "", timeout_s: float = TIMEOUT_S) -> None:
        """Return when an order has taken effect. Orders with one `key` are handled in the order in which they came.

        Raises EventRefused, NotHandledYet, and what `Events.submit` raises.
        """
        await self._events.submit(f"shard-{zlib.crc32(key.encode()) % _SHARDS}", order, by=by, timeout_s=timeout_s)

    def _handle(self, change: Change, _: str, order: ledger_pb2.Order) -> None:
        rights = self._controller.rights
        if any(kind.handle(change, order, partial(rights.check, order.access, BUDGET)) for kind in KINDS):
            return
        if order.HasField("declare"):
            rights.check(order.access, LEAVE, partial(self._reaches.check_issuer, order.declare.issuer))
            self._declare(change, order.declare)
        else:
            self._handle_task(change, order, order.WhichOneof("order") or "")

    def _handle_task(self, change: Change, order: ledger_pb2.Order, which: str) -> None:
        record = change.get(TASK, order.task_id)
        if record is None:
            _unknown(order.task_id)
        wall_ms, version = self._controller.clock.wall_ms(), self._controller.records(TASK).version(order.task_id)
        match which:
            case "delete":
                self._delete(change, record, order.delete, wall_ms)
                return
            case "poll":
                if record.state in (State.LAPSED, State.PROVISIONAL) or _waits_to_be_asked(record):
                    move(record, TaskEvent.POLL, wall_ms, version)
            case "confirm":
                _check_owner(record, order.confirm.by)
                record.confirming = order.confirm.word
            case "expedite":
                _expedite(record, order.expedite, wall_ms)
            case "extend":
                _extend(record, order.extend, wall_ms)
        change.put(TASK, record.id, record)

    def _delete(self, change: Change, record: ledger_pb2.Task, delete: ledger_pb2.Order.Delete, wall_ms: int) -> None:
        if not delete.is_operator:
            _check_owner(record, delete.by)
            if delete.is_wire and not record.is_wire:
                _unknown(record.id)
        action = ACTIONS[record.action]
        if record.state == State.GRANTED and action.disrupts and not (record.instance and action.proves_itself):
            change.get(ENDED, record.id)
            change.put(ENDED, record.id, ended_record(record, wall_ms))
        change.delete(TASK, record.id)

    def _declare(self, change: Change, declare: ledger_pb2.Order.Declare) -> None:
        change.get(DECLARED, declare.issuer)
        declared = ledger_pb2.Declared(
            epoch=self._controller.epoch, by=declare.by, at_ms=self._controller.clock.wall_ms()
        )
        change.put(DECLARED, declare.issuer, declared)


def _waits_to_be_asked(record: ledger_pb2.Task) -> bool:
    """Whether it is a machine's wait for its reboot, which goes on only while the machine asks."""
    return bool(record.fleet_group) and record.state == State.WAITING


def _extend(record: ledger_pb2.Task, extend: ledger_pb2.Order.Extend, wall_ms: int) -> None:
    if not record.overdue_ms:
        raise Refused(f"task {record.id} holds nothing: it is {record.state}")
    record.overdue_ms = wall_ms + extend.seconds * 1000
    what = f"extended by {extend.seconds} s"
    record.note.add(by=extend.by, reason=extend.reason, what=what, at_ms=wall_ms)
    del record.note[:-20]


def _expedite(record: ledger_pb2.Task, expedite: ledger_pb2.Order.Expedite, wall_ms: int) -> None:
    if record.state in (State.GRANTED, State.REJECTED):
        raise Refused(f"task {record.id} does not wait: it is {record.state}")
    if need_of(record) > Need.URGENT:
        record.need = "urgent"
    record.note.add(by=expedite.by, reason=expedite.reason, what="made urgent", at_ms=wall_ms)
    del record.note[:-20]


def _check_owner(record: ledger_pb2.Task, by: str) -> None:
    """Refuse whoever is not the owner as if the task did not exist, as in the list."""
    if record.owner != by:
        _unknown(record.id)


def _unknown(task_id: str) -> NoReturn:
    raise Refused(f"there is no task {task_id}", "NOT_FOUND")
