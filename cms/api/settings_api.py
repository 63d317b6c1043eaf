"""Budgets and windows, over cms.v1: what must remain of services, and when planned work and roll-outs may begin."""

from __future__ import annotations

from collections.abc import Iterator

from cms.api.shapes import budget_state
from cms.api.tasks_api import SERVICE
from cms.calendar_rules import rule_of
from cms.desk import CmsController
from cms.kinds import BUDGETS, CALENDARS, KINDS
from cms.ledger.why import view
from cmspb.storage.v1 import ledger_pb2
from cmspb.v1 import cms_pb2 as pb
from control.kind_api import KindApi
from control.paging import page_of
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
        parts, token = page_of(self._budgets(request, call), request.page_size)
        answer = pb.ListBudgetsResponse(next_page_token=token)
        for part in parts:
            answer.MergeFrom(part)
        return MessageAnswer(answer)

    def _budgets(self, request: pb.ListBudgetsRequest, call: Call) -> Iterator[tuple[str, pb.ListBudgetsResponse]]:
        """Names of budgets, each with its part of the answer."""
        picture, budgets = self._desk.book.picture, self._desk.budgets
        for name in sorted(name for name in {*picture.tallies, *budgets} if name > request.page_token):
            service, part = picture.budgets.budget_named(name).service, pb.ListBudgetsResponse()
            if request.service not in ("", service) or not call.access.covers_service(service):
                continue
            if name in picture.tallies and (picture.tallies[name].total or name in budgets):
                seen = self._reaches.visible_budget(view(self._desk.book, name), call.access)
                part.state.append(budget_state(seen, self._clock))
            if name in budgets:
                part.budget.append(BUDGETS.view(budgets[name]))
            if part.state or part.budget:
                yield name, part

    async def list_windows(self, request: pb.ListWindowsRequest, call: Call) -> Answer:
        """List windows; those of a project or of all work are shown to everybody, since they keep everybody waiting."""
        self._desk.controller.check_loaded()
        found = (CALENDARS.view(self._desk.windows[name]) for name in sorted(self._desk.windows))
        shown = (
            (one.name, self._state(one))
            for one in found
            if one.name > request.page_token
            if request.service in ("", one.service) or not (one.service or one.project)
            if not one.service or call.access.covers_service(one.service)
        )
        states, token = page_of(shown, request.page_size)
        return MessageAnswer(pb.ListWindowsResponse(state=states, next_page_token=token))

    def _state(self, windows: pb.Windows) -> pb.WindowsState:
        opening = rule_of(windows).opening(self._clock.wall_ms() / 1000)
        state = pb.WindowsState(windows=windows, is_open=not opening.why, message=opening.why)
        if opening.why and opening.at is not None:
            state.open_time.FromMilliseconds(round(opening.at * 1000))
        return state
