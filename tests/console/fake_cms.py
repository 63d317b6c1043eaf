"""A stand-in for the CMS: one task under work, one that waits for it, one rejected, and the budgets that say why."""

from __future__ import annotations

import time
from typing import Any

from cmspb.v1 import cms_pb2 as pb
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import NotFound
from serving.rights.reach import SHOWN
from serving.rights.rules import OPERATE, READ
from tests.console.scene import HOSTILE


class FakeCms:
    """Attributes:
    orders: what came, in order, as (call, request).
    closed: why nothing is granted.
    """

    def __init__(self) -> None:
        self.orders: list[tuple[str, Any]] = []
        self.closed = ""
        self.tasks = [
            _task("rack-7", pb.TASK_STATUS_OK, "power-off", "bob", "granted", hours=5, overdue=True),
            _task("reboot-1", pb.TASK_STATUS_IN_PROCESS, "reboot", "wall-e", f"web keeps its floor {HOSTILE}", hours=1),
            _task("reboot-2", pb.TASK_STATUS_REJECTED, "reboot", "wall-e", "web has one instance only", hours=0.01),
        ]
        self.web = pb.BudgetState(name="web-floor", rule="at least 3", total=4, floor=3, available=3)
        holder = self.web.holder.add(task_id="rack-7", issuer="bob", action="power-off", instances=1, is_overdue=True)
        holder.since_time.GetCurrentTime()
        self.cart = pb.BudgetState(name="default:cart", rule="at most 10% unavailable", total=4, floor=3, available=1)

    def methods(self) -> list[Method]:
        """What it serves."""
        table, admin = ServiceTable("cms.v1.CmsService"), ServiceTable("cms.v1.CmsAdminService")
        return [
            table.unary(pb.ListTasksRequest, self._list, READ, SHOWN),
            table.unary(pb.WhyTaskRequest, self._why, READ, SHOWN),
            table.unary(pb.ListBudgetsRequest, self._budgets, READ, SHOWN),
            table.unary(pb.ListWindowsRequest, self._windows, READ, SHOWN),
            table.unary(pb.PutWindowsRequest, self._ordering, OPERATE, SHOWN),
            table.unary(pb.DeleteWindowsRequest, self._ordering, OPERATE, SHOWN),
            table.unary(pb.GetStatusRequest, self._status, READ, SHOWN),
            table.unary(pb.PlanRequest, self._plan, READ, SHOWN),
            *(
                admin.unary(kind, self._ordering, OPERATE, SHOWN)
                for kind in (
                    *(pb.FreezeRequest, pb.UnfreezeRequest, pb.OpenRequest),
                    *(pb.ExtendTaskRequest, pb.EndTaskRequest),
                )
            ),
        ]

    def _list(self, request: pb.ListTasksRequest, call: Call) -> Answer:
        return MessageAnswer(pb.ListTasksResponse(state=self.tasks))

    def _windows(self, request: pb.ListWindowsRequest, call: Call) -> Answer:
        nights = pb.Windows(
            name="nights", project="search", hours=[pb.Hours(days="mon-fri", begin="22:00", end="06:00")]
        )
        made = [order.windows for name, order in self.orders if name == "PutWindows"]
        states = [pb.WindowsState(windows=one, message=f"closed {HOSTILE}") for one in (nights, *made)]
        return MessageAnswer(pb.ListWindowsResponse(state=states))

    def _why(self, request: pb.WhyTaskRequest, call: Call) -> Answer:
        for state in self.tasks:
            if state.task.id == request.id:
                answer = pb.WhyTaskResponse(state=state, budget=[self.web])
                answer.budget[0].needs, answer.budget[0].blocks = 1, state.status == pb.TASK_STATUS_IN_PROCESS
                answer.limit.add(name="racks", kind="rack", most=1, busy=["rack-7"], blocks=False)
                return MessageAnswer(answer)
        raise NotFound(f"task {request.id}: there is none")

    def _budgets(self, request: pb.ListBudgetsRequest, call: Call) -> Answer:
        answer = pb.ListBudgetsResponse(state=[self.cart, self.web])
        answer.budget.add(name="web-floor", service="web", min_ready="3")
        return MessageAnswer(answer)

    def _status(self, request: pb.GetStatusRequest, call: Call) -> Answer:
        answer = pb.GetStatusResponse(acting="cms-1", closed=self.closed)
        answer.location.add(name="test", instances=11, is_certain=True)
        return MessageAnswer(answer)

    def _plan(self, request: pb.PlanRequest, call: Call) -> Answer:
        answer = pb.PlanResponse()
        for host in request.host[:-1]:
            answer.wave.add(host=[host])
        answer.misfit.add(host=request.host[-1], reason="holds all of mail")
        return MessageAnswer(answer)

    def _ordering(self, request: Any, call: Call) -> Answer:
        name = type(request).__name__.removesuffix("Request")
        self.orders.append((name, request))
        self.closed = "frozen" if name == "Freeze" else "" if name == "Unfreeze" else self.closed
        return MessageAnswer(getattr(pb, f"{name}Response")())


def _task(
    id_: str, status: pb.TaskStatus, action: str, issuer: str, message: str, *, hours: float, overdue: bool = False
) -> pb.TaskState:
    made = pb.TaskState(status=status, message=message, is_overdue=overdue)
    made.task.id, made.task.action, made.task.issuer = id_, action, issuer
    made.task.host.append("node-1")
    made.create_time.seconds = made.since_time.seconds = int(time.time() - 3_600 * hours)
    return made
