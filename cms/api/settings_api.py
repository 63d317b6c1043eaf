"""Budgets and windows, over cms.v1: what must remain of services, and when planned work and roll-outs may begin."""

from __future__ import annotations

from cms.api.shapes import budget_state
from cms.api.tasks_api import SERVICE
from cms.calendar_rules import rule_of
from cms.desk import CmsController
from cms.kinds import BUDGETS, CALENDARS, KINDS
from cms.ledger.why import view
from cmspb.storage.v1 import ledger_pb2
from cmspb.v1 import cms_pb2 as pb
from control.kind_api import KindApi
from serving.calls.methods import Answer, Call, Method
from serving.encoding.jsonio import MessageAnswer
from serving.rights.reach import Of, narrowed_reach
from serving.rights.rules import BUDGET, READ


class SettingsApi:
    """The calls that set budgets and windows. `methods` is what a transport serves."""

    def __init__(self, desk: CmsController) -> None:
        self._desk, self._clock = desk, desk.clock
        self._reaches = desk.reaches()

    def methods(self) -> list[Method]:
        rows: list[Method] = [
            SERVICE.unary(pb.ListBudgetsRequest, self.list_budgets, READ, narrowed_reach(Of.SERVICE)),
            SERVICE.unary(pb.ListWindowsRequest, self.list_windows, READ, narrowed_reach(Of.SERVICE)),
        ]
        for kind in KINDS:
            records, submit = self._desk.controller.records(kind.stored), self._desk.orders.submit
            rows += KindApi(kind, records, ledger_pb2.Order, submit, self._clock).methods(SERVICE, BUDGET)
        return rows

    async def list_budgets(self, request: pb.ListBudgetsRequest, call: Call) -> Answer:
        self._desk.controller.check_loaded()
        self._desk.current()
        tallies, answer = self._desk.book.picture.tallies, pb.ListBudgetsResponse()
        for name in sorted({*tallies, *self._desk.budgets}):
            service = self._desk.book.picture.budgets.budget_named(name).service
            if request.service in ("", service) and call.access.covers_service(service):
                if name in tallies and (tallies[name].total or name in self._desk.budgets):
                    seen = self._reaches.visible_budget(view(self._desk.book, name), call.access)
                    answer.state.append(budget_state(seen, self._clock))
                if name in self._desk.budgets:
                    answer.budget.append(BUDGETS.view(self._desk.budgets[name]))
        return MessageAnswer(answer)

    async def list_windows(self, request: pb.ListWindowsRequest, call: Call) -> Answer:
        """Windows of a project, or of all work, are for everybody to see: they keep everybody waiting."""
        self._desk.controller.check_loaded()
        found = (CALENDARS.view(record) for _, record in sorted(self._desk.windows.items()))
        shown = (
            one
            for one in found
            if request.service in ("", one.service) or not (one.service or one.project)
            if not one.service or call.access.covers_service(one.service)
        )
        return MessageAnswer(pb.ListWindowsResponse(state=[self._state(one) for one in shown]))

    def _state(self, windows: pb.Windows) -> pb.WindowsState:
        opening = rule_of(windows).opening(self._clock.wall_ms() / 1000)
        state = pb.WindowsState(windows=windows, is_open=not opening.why, message=opening.why)
        if opening.why and opening.at is not None:
            state.open_time.FromMilliseconds(round(opening.at * 1000))
        return state
