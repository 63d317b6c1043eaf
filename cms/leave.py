"""Tasks as callers use them, over either protocol: create, look, confirm, end."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from cms.desk import CmsController
from cms.ledger.actions import ACTIONS
from cms.ledger.claims import WaitCause
from cms.ledger.decide import poll
from cms.ledger.instances import InstanceKey
from cms.ledger.states import State
from cms.ledger.why import Why, explain, explain_new
from cms.orders import TIMEOUT_S
from cms.owner_sizes import OwnerSizes
from cms.records import TASK, is_same, task_of
from cmspb.storage.v1 import ledger_pb2
from control import EventRefused, NotHandledYet, RecordChanged, Stored
from serving.errors import NotFound, ServiceError, StoreUnavailable, invalid

_PROVEN_S: Final = 1.0  # how long the store has to confirm that there is no such task
_NOTED_S: Final = 0.5  # a caller that polls is answered by then, whether the poll is stored or not
_POLLED_S: Final = 30.0  # polls that come sooner are not stored
_MOST_IN_GROUP: Final = 1_000  # their ids fit into one record


class TaskConflict(ServiceError):
    """The id is taken by a task with different content."""

    code = "ALREADY_EXISTS"
    reason = "TASK_CONFLICT"
    ours = False


class NotConfirmed(ServiceError):
    """The task has no ok that could be made final; `record` and `why` hold its state."""

    code = "FAILED_PRECONDITION"
    reason = "NOT_CONFIRMED"
    ours = False

    def __init__(self, record: ledger_pb2.Task, why: Why) -> None:
        super().__init__(f"task {record.id} is not granted: {why.message}")
        self.record, self.why = record, why


class TaskService:
    """The use cases of tasks. Each answer is a task's record, and why it is in its state."""

    def __init__(self, desk: CmsController) -> None:
        self.desk = desk
        self._sizes = OwnerSizes(desk.tasks)
        self._polled: dict[str, float] = {}

    async def create(self, wanted: ledger_pb2.Task) -> tuple[ledger_pb2.Task, Why]:
        """Store a task and return its first verdict; repeating it changes nothing.

        Raises TaskConflict, InvalidRequest, and what storing raises.
        """
        self.desk.controller.check_loaded()
        while True:
            if self._exists(wanted) is not None:
                return await self.look(wanted.id, wanted.owner)
            with suppress(RecordChanged):  # somebody else has created it
                await self._store(wanted)
                self._polled[wanted.id] = self.desk.clock.now()
                await self.desk.wait_for_decision(wanted.id, self.desk.settings.first_decision_s)
            if wanted.id not in self.desk.tasks:
                await self._proven()  # it was deleted, or memory shows another history than the store has

    async def dry_run(self, wanted: ledger_pb2.Task) -> tuple[ledger_pb2.Task, Why]:
        """Return how a new task would be decided (rejected: it is impossible now), or an existing one as it stands.

        Raises TaskConflict.
        """
        self.desk.controller.check_loaded()
        if (record := self._exists(wanted)) is not None:
            return record, self.why(record)
        await self.desk.locations.fence(self.desk.settings.fence_s)
        decision, now = self.desk.current(), self.desk.clock.now()
        self._weigh(wanted)
        task = task_of(Stored(wanted, 2**63), None, 0, now, self.desk.clock.wall_ms())
        obstacles, why = explain_new(self.desk.book, decision, [task], now)
        is_impossible = any(obstacle.wait is WaitCause.IMPOSSIBLE for obstacle in obstacles)
        is_free = not obstacles and not (self.desk.book.closed and task.disrupts)
        wanted.state = State.REJECTED if is_impossible else State.GRANTED if is_free else State.WAITING
        return wanted, why

    def _exists(self, wanted: ledger_pb2.Task) -> ledger_pb2.Task | None:
        """The same task, if it is stored. Raises TaskConflict: another one has its id."""
        stored = self.desk.tasks.stored_record(wanted.id)
        if stored is None:
            return None
        if not is_same(stored.message, wanted) or stored.message.owner != wanted.owner:
            raise TaskConflict(f"task {wanted.id} already exists with different content: use another id")
        return stored.message

    async def look(self, task_id: str, owner: str, *, any_owner: bool = False) -> tuple[ledger_pb2.Task, Why]:
        """A task and its verdict; polling keeps a provisional ok alive. Raises NotFound."""
        record = await self._own(task_id, owner, any_owner=any_owner)
        if record.owner == owner:
            await self._poll(task_id, record)
            record = self.desk.tasks.get(task_id, record)
        return record, self.why(record)

    async def confirm(self, task_id: str, owner: str) -> tuple[ledger_pb2.Task, Why]:
        """Make an ok final. Raises NotConfirmed, NotFound."""
        record = await self._own(task_id, owner)
        if record.state != State.GRANTED and not self.desk.why_closed():
            word, until = secrets.token_hex(8), self.desk.clock.now() + TIMEOUT_S
            confirming = ledger_pb2.Order.Confirm(word=word, by=owner)
            await self._submit(ledger_pb2.Order(task_id=task_id, confirm=confirming))
            await self._wait_for_confirmation(task_id, word, until)
            record = await self._own(task_id, owner)
        if record.state != State.GRANTED:
            raise NotConfirmed(record, self.why(record))
        return record, self.why(record)

    async def end(self, task_id: str, owner: str, *, is_wire: bool = False) -> None:
        """Delete a task of the caller's own. Raises NotFound."""
        await self._own(task_id, owner)  # first: an order is stored for all to read, so only for a task that is there
        delete = ledger_pb2.Order.Delete(by=owner, is_wire=is_wire)
        await self._submit(ledger_pb2.Order(task_id=task_id, delete=delete))

    async def end_as_operator(self, task_id: str, by: str, reason: str) -> None:
        """Delete anybody's task. Raises NotFound."""
        delete = ledger_pb2.Order.Delete(by=by, is_operator=True, reason=reason)
        await self._submit(ledger_pb2.Order(task_id=task_id, delete=delete), by)

    async def expedite(self, task_id: str, by: str, reason: str) -> None:
        """Make a waiting task urgent. Raises NotFound, EventRefused."""
        expedite = ledger_pb2.Order.Expedite(by=by, reason=reason)
        await self._submit(ledger_pb2.Order(task_id=task_id, expedite=expedite), by)

    async def extend(self, task_id: str, seconds: int, by: str, reason: str) -> None:
        """Move the bound of a hold. Raises NotFound, EventRefused."""
        extend = ledger_pb2.Order.Extend(seconds=seconds, by=by, reason=reason)
        await self._submit(ledger_pb2.Order(task_id=task_id, extend=extend), by)

    def all(self, owner: str | None = None, *, only_wire: bool = False) -> Iterator[ledger_pb2.Task]:
        """All tasks in order of creation; `owner` None: everybody's."""
        for task in sorted(self.desk.book.tasks.values(), key=lambda task: task.order):
            record = self.desk.tasks.get(task.id)
            if record is not None and owner in (None, record.owner) and (record.is_wire or not only_wire):
                yield record

    def why(self, record: ledger_pb2.Task, *, briefly: bool = False) -> Why:
        """Why a stored task is in its state; `briefly`: for a list, with only the facts that its message names."""
        task = self.desk.book.tasks.get(record.id)
        if task is None:
            return Why("it is gone")
        # A granted task stays granted whatever would be decided now, so its caller need not wait for a decision.
        decision = self.desk.decision if task.holds and self.desk.is_deciding else self.desk.current()
        return explain(self.desk.book, decision, task, self.desk.clock.now(), briefly=briefly)

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _store(self, wanted: ledger_pb2.Task) -> None:
        now_ms = self.desk.clock.wall_ms()
        wanted.created_ms = wanted.since_ms = now_ms
        self._weigh(wanted)
        if wanted.already_running:
            if wanted.issuer not in self.desk.settings.issuers:
                raise invalid(
                    "already_running",
                    f"issuer {wanted.issuer!r} is not authorized to declare work: see --task-issuer of the CMS",
                )
            wanted.state = State.GRANTED
            wanted.overdue_ms = now_ms + round(ACTIONS[wanted.action].bound_s * 1000)
        if wanted.group_id:
            self._check_group(wanted)
        self._sizes.check_room(wanted)
        change = self.desk.controller.creation()
        if change.get(TASK, wanted.id) is not None:
            raise RecordChanged(f"task {wanted.id} was created in the meantime")
        change.put(TASK, wanted.id, wanted)
        await change.commit(1.0)

    def _weigh(self, wanted: ledger_pb2.Task) -> None:
        """Set the state and need of a new task, and drop what only the issuers of roll-outs may ask for."""
        wanted.state, wanted.need = State.WAITING, self._need(wanted)
        if wanted.action != "roll-out" or wanted.issuer not in self.desk.settings.rollout_issuers:
            wanted.max_failures = wanted.order_begin_ms = 0
            del wanted.leave_out[:]

    def _need(self, wanted: ledger_pb2.Task) -> str:
        """A task's place in the order of need: what its issuer says counts only if the settings name that issuer."""
        settings, picture = self.desk.settings, self.desk.book.picture
        if wanted.issuer in settings.healers:
            keys = {InstanceKey(one.location, one.id) for one in wanted.instance}.union(
                *(picture.instances_on(host) for host in wanted.host)
            )
            broken = (key in picture.instances and not picture.instances[key].is_ready for key in keys)
            if wanted.failure or any(broken):
                return "repair"
        if wanted.action == "roll-out":
            is_rollback = wanted.rollback and wanted.issuer in settings.rollout_issuers
            return "urgent" if is_rollback else "rollout"
        return "planned"

    def _check_group(self, wanted: ledger_pb2.Task) -> None:
        """A group is decided as one and noted in one record (cms/moves.py), whose size is limited."""
        tasks = self.desk.book.tasks.values()
        members = [task for task in tasks if (task.owner, task.group) == (wanted.owner, wanted.group_id)]
        if len(members) >= _MOST_IN_GROUP:
            words = f"group {wanted.group_id} has {len(members)} tasks, which is the most: name several hosts in a task"
            raise invalid("host_group_id", words)

    async def _own(self, task_id: str, owner: str, *, any_owner: bool = False) -> ledger_pb2.Task:
        self.desk.controller.check_loaded()
        record = self.desk.tasks.get(task_id)
        if record is None:
            await self._proven()  # it may have been created at another process just now
            record = self.desk.tasks.get(task_id)
        if record is None or not (any_owner or record.owner == owner):
            raise NotFound(f"there is no task {task_id}")
        return record

    async def _proven(self) -> None:
        """Raises StoreUnavailable, also if the store does not answer in time."""
        try:
            async with asyncio.timeout(_PROVEN_S):
                await self.desk.controller.proven()
        except TimeoutError:
            raise StoreUnavailable("the store does not respond: retry, or ask another process") from None

    async def _poll(self, task_id: str, record: ledger_pb2.Task) -> None:
        """Store the poll if it matters, and not too often."""
        matters = record.state in (State.PROVISIONAL, State.LAPSED) or (
            record.fleet_group and record.state == State.WAITING
        )
        if not matters or task_id not in self.desk.book.tasks:
            return
        now = self.desk.clock.now()
        if record.state != State.LAPSED and now - self._polled.get(task_id, float("-inf")) < _POLLED_S:
            return
        if len(self._polled) > 10_000:
            self._polled.clear()
        self._polled[task_id] = now
        with suppress(ServiceError):  # the caller is answered all the same
            for one in poll(self.desk.book, task_id):
                await self._submit(ledger_pb2.Order(task_id=one.task_id, poll=ledger_pb2.Order.Poll()), "", _NOTED_S)

    async def _submit(self, order: ledger_pb2.Order, by: str = "", timeout_s: float = TIMEOUT_S) -> None:
        try:
            await self.desk.orders.submit(order.task_id, order, by, timeout_s)
        except EventRefused as error:
            if error.code == "NOT_FOUND":
                raise NotFound(str(error)) from None
            raise

    async def _wait_for_confirmation(self, task_id: str, word: str, until: float) -> None:
        """Raises NotHandledYet."""
        while (record := self.desk.tasks.get(task_id)) is not None and record.confirmed != word:
            left_s = until - self.desk.clock.now()
            if left_s <= 0:
                raise NotHandledYet(f"task {task_id}: the confirmation is still being decided: retry")
            await self.desk.wait_for_change(min(left_s, 0.2))
