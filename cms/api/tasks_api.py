"""cms.v1.CmsService: tasks and why, plans."""

from __future__ import annotations

from typing import Any, Final

from cms.api.shapes import budget_state, limit_state, record_of, state_of
from cms.checks import check_hosts, check_task
from cms.kinds import KINDS
from cms.leave import TaskService
from cms.ledger.actions import ACTIONS
from cms.ledger.plan import plan
from cms.ledger.why import Why
from cms.permits import OWN_TASK, may_see, owner_of
from cmspb.storage.v1 import ledger_pb2
from cmspb.v1 import cms_pb2 as pb
from control.paging import page_of
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import invalid
from serving.rights.reach import SHOWN, Of, narrowed_reach
from serving.rights.rules import LEAVE, READ
from serving.rights.stored import encode_access

_MOST_PLANNED = 1_000
_PARTS: Final = ("task", *(kind.name for kind in KINDS))


def _subject(request: Any) -> str:
    """The task, setting or issuer that a request is about."""
    about = next((getattr(request, part) for part in _PARTS if hasattr(request, part)), request)
    return next((str(getattr(about, name)) for name in ("id", "name", "issuer") if hasattr(about, name)), "")


SERVICE = ServiceTable("cms.v1.CmsService", _subject)


class CmsApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, leave: TaskService) -> None:
        self._leave, self._desk, self._clock = leave, leave.desk, leave.desk.clock
        self._reaches = leave.desk.reaches()

    def methods(self) -> list[Method]:
        reaches = self._reaches
        return [
            SERVICE.unary(pb.CreateTaskRequest, self.create, LEAVE, reaches.created),
            SERVICE.unary(pb.GetTaskRequest, self.get, READ, reaches.shown_task),
            SERVICE.unary(pb.ListTasksRequest, self.list, READ, narrowed_reach(Of.TASK)),
            SERVICE.unary(pb.DeleteTaskRequest, self.delete, LEAVE, OWN_TASK),
            SERVICE.unary(pb.ConfirmTaskRequest, self.confirm, LEAVE, OWN_TASK),
            SERVICE.unary(pb.WhyTaskRequest, self.why, READ, reaches.shown_task),
            SERVICE.unary(pb.PlanRequest, self.plan, READ, reaches.planned),
            SERVICE.unary(pb.EndDeclarationRequest, self.end_declaration, LEAVE, reaches.declared),
            SERVICE.unary(pb.GetStatusRequest, self.status, READ, SHOWN),
        ]

    # --- tasks --------------------------------------------------------------------------------------------------------

    async def create(self, request: pb.CreateTaskRequest, call: Call) -> Answer:
        wanted = record_of(request.task, owner_of(call))
        wanted.access = encode_access(call.access)
        check_task(wanted)
        record, why = await (self._leave.dry_run(wanted) if request.dry_run else self._leave.create(wanted))
        return MessageAnswer(pb.CreateTaskResponse(state=self._state(record, why, call)))

    async def get(self, request: pb.GetTaskRequest, call: Call) -> Answer:
        record, why = await self._leave.look(request.id, owner_of(call), any_owner=True)
        return MessageAnswer(pb.GetTaskResponse(state=self._state(record, why, call)))

    async def list(self, request: pb.ListTasksRequest, call: Call) -> Answer:
        self._desk.controller.check_loaded()
        tasks, book = self._desk.book.tasks, self._desk.book
        entries = (
            (key, self._state(record, self._leave.why(record, briefly=True), call))
            for record in self._leave.all()
            if (key := f"{tasks[record.id].order:019d}") > request.page_token
            if may_see(call.access, record, book) and self._passes(record, request)
        )
        states, token = page_of(entries, request.page_size)
        return MessageAnswer(pb.ListTasksResponse(state=states, next_page_token=token))

    async def delete(self, request: pb.DeleteTaskRequest, call: Call) -> Answer:
        await self._leave.end(request.id, owner_of(call))
        return MessageAnswer(pb.DeleteTaskResponse())

    async def confirm(self, request: pb.ConfirmTaskRequest, call: Call) -> Answer:
        record, why = await self._leave.confirm(request.id, owner_of(call))
        return MessageAnswer(pb.ConfirmTaskResponse(state=self._state(record, why, call)))

    async def why(self, request: pb.WhyTaskRequest, call: Call) -> Answer:
        record, why = await self._leave.look(request.id, owner_of(call), any_owner=True)
        why = self._reaches.visible_why(why, call.access, record)
        budgets = [budget_state(seen, self._clock) for seen in why.budgets]
        limits = [limit_state(seen) for seen in why.limits]
        return MessageAnswer(pb.WhyTaskResponse(state=self._state(record, why, call), budget=budgets, limit=limits))

    async def plan(self, request: pb.PlanRequest, call: Call) -> Answer:
        action = request.action or "reboot"
        if action not in ACTIONS:
            raise invalid("action", f"{action[:40]!a} is not one of {', '.join(sorted(ACTIONS))}")
        if not 0 < len(request.host) <= _MOST_PLANNED:
            raise invalid("host", f"name 1 to {_MOST_PLANNED} hosts")
        check_hosts(request.host, "host")
        self._desk.controller.check_loaded()
        await self._desk.locations.fence(self._desk.settings.fence_s)
        made = plan(self._desk.book, request.host, action, self._clock.now())
        nobodys = ledger_pb2.Task()
        misfits = [
            pb.Misfit(host=host, reason=self._reaches.visible_why(why, call.access, nobodys).message)
            for host, why in made.misfits.items()
        ]
        unknown = [host for host in request.host if not self._desk.book.picture.instances_on(host)]
        waves = [pb.Wave(host=wave) for wave in made.waves]
        return MessageAnswer(pb.PlanResponse(wave=waves, misfit=misfits, unknown=unknown))

    # --- the whole ----------------------------------------------------------------------------------------------------

    async def end_declaration(self, request: pb.EndDeclarationRequest, call: Call) -> Answer:
        desk = self._desk
        if request.issuer not in desk.settings.issuers:
            raise invalid(
                "issuer",
                f"{request.issuer[:100]!a} is not authorized to declare work: see --task-issuer of the CMS",
            )
        declare = ledger_pb2.Order.Declare(issuer=request.issuer, by=owner_of(call))
        order = ledger_pb2.Order(declare=declare, access=encode_access(call.access))
        await desk.orders.submit(request.issuer, order, owner_of(call))
        missing = desk.missing_issuers()
        if not missing and not desk.controller.is_open:
            await desk.controller.open(owner_of(call) or request.issuer, "every issuer has declared its running work")
        return MessageAnswer(pb.EndDeclarationResponse(missing=missing))

    async def status(self, request: pb.GetStatusRequest, call: Call) -> Answer:
        desk = self._desk
        answer = pb.GetStatusResponse(
            closed=desk.why_closed(),
            acting=desk.controller.acting_process,
            epoch=desk.controller.epoch,
            missing=[] if desk.controller.is_open else desk.missing_issuers(),
            mended=desk.controller.repairs,
        )
        for name, location in sorted(desk.locations.by_name.items()):
            doubt = location.doubt()
            instances = location.instances if call.access.is_unlimited else 0  # others' are counted, too
            answer.location.add(name=name, instances=instances, is_certain=not doubt, reason=doubt)
        return MessageAnswer(answer)

    def _state(self, record: ledger_pb2.Task, why: Why, call: Call) -> pb.TaskState:
        return state_of(record, self._reaches.visible_why(why, call.access, record), self._clock)

    def _passes(self, record: ledger_pb2.Task, request: pb.ListTasksRequest) -> bool:
        picture, task = self._desk.book.picture, self._desk.book.tasks[record.id]
        if request.issuer and request.issuer != record.issuer:
            return False
        touched = [
            picture.instances[key] for key in (picture.disrupted_by(task) if request.host or request.service else ())
        ]
        hosts = {*record.host, *(instance.host for instance in touched)}
        if request.host and request.host not in hosts:
            return False
        return not request.service or any(instance.service == request.service for instance in touched)
