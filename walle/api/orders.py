"""Orders and reports of checks: validated, stored as events, answered once they took effect."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Final

from control.errors import EventRefused
from serving.calls.methods import CHANGED, Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import InvalidRequest, NotFound, Overloaded, PermissionDenied, invalid
from serving.rights.reach import Check, Of, Reach, checked_reach, on_each
from walle.api import checking
from walle.api.checking import check_checks, check_reports
from walle.api.submitting import submit
from walle.checks import checks_of
from walle.healing.check_sources import MOST_TEXT
from walle.process.automaton import INVENTORY, WalleSupervisor
from walle.reach import ORDER, REPORT, is_agent, may_import, may_report, source_of, who
from walle.work import scenarios
from walle.work.inventory import is_permitted
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import Project

_RETRY_S: Final = 60.0


def everything(check: Check) -> Reach:
    return checked_reach(Of.EVERYTHING, check)


class WalleOrders:
    """The ordering half of walle.v1.WalleService."""

    def __init__(self, automaton: WalleSupervisor) -> None:
        self._walle = automaton

    def methods(self, service: ServiceTable) -> list[Method]:
        reach = self._walle.reaches
        project, host = checked_reach(Of.PROJECT, reach.project), checked_reach(Of.NODE, reach.host)
        return [
            service.unary(pb.CreateProjectRequest, self._create_project, ORDER, everything(reach.create_project)),
            service.unary(pb.UpdateProjectRequest, self._update_project, ORDER, project),
            service.unary(pb.DeleteProjectRequest, self._delete_project, ORDER, project),
            service.unary(
                pb.SwitchAutomationRequest,
                self._switch,
                ORDER,
                checked_reach(Of.PROJECT, reach.automation),
                only_stops=lambda request: not request.on,
            ),
            service.unary(pb.AddHostRequest, self._add_host, ORDER, checked_reach(Of.NODE, reach.check_host_addition)),
            service.unary(
                pb.ChangeHostRequest, self._change_host, ORDER, checked_reach(Of.NODE, reach.check_host_change)
            ),
            service.unary(pb.SetHostStateRequest, self._set_state, ORDER, host),
            service.unary(
                pb.StartOperationRequest, self._start, ORDER, checked_reach(Of.NODE, reach.check_operation_start)
            ),
            service.unary(pb.CancelOperationRequest, self._cancel, ORDER, host, only_stops=lambda _: True),
            service.unary(
                pb.AddScenarioRequest, self._add_scenario, ORDER, checked_reach(Of.NODE, reach.check_new_scenario)
            ),
            service.unary(
                pb.AgreeScenarioRequest, self._agree_scenario, ORDER, checked_reach(Of.PROJECT, reach.check_agreement)
            ),
            service.unary(
                pb.EndScenarioRequest,
                self._end_scenario,
                ORDER,
                checked_reach(Of.TASK, reach.check_scenario_end),
                only_stops=lambda request: not request.done,
            ),
            service.unary(
                pb.SteerScenarioRequest,
                self._steer_scenario,
                ORDER,
                checked_reach(Of.TASK, reach.check_steering),
                only_stops=lambda request: request.steering == pb.STEERING_PAUSE,
            ),
            service.unary(
                pb.FreezeRequest,
                self._freeze,
                ORDER,
                everything(reach.everything),
                only_stops=lambda request: request.frozen,
            ),
            service.unary(pb.ReleaseTasksRequest, self._release_tasks, ORDER, project),
            service.unary(pb.OpenEpochRequest, self._open, ORDER, everything(reach.everything)),
        ]

    async def _create_project(self, request: pb.CreateProjectRequest, call: Call) -> Answer:
        checking.check_new_project(request)
        self._check_destinations(request.project)
        await self._order(f"project/{request.project.id}", pb.Order(create_project=request), call)
        return MessageAnswer(pb.CreateProjectResponse())

    async def _update_project(self, request: pb.UpdateProjectRequest, call: Call) -> Answer:
        for counter in request.limits:
            checking.check_counter("limits", counter)
        checking.check_id("project", request.project)
        checking.check_names(request.scheme, request.owners)
        if request.cms_mode != pb.CHANGE_MODE_REMOVE:
            self._check_destinations(request)
        await self._order(f"project/{request.project}", pb.Order(update_project=request), call)
        return MessageAnswer(pb.UpdateProjectResponse())

    async def _delete_project(self, request: pb.DeleteProjectRequest, call: Call) -> Answer:
        await self._in_project(request.project, pb.Order(delete_project=request), call)
        return MessageAnswer(pb.DeleteProjectResponse())

    async def _switch(self, request: pb.SwitchAutomationRequest, call: Call) -> Answer:
        checking.check_switching(request)
        if request.project:
            await self._in_project(request.project, pb.Order(switch_automation=request), call)
        else:
            await self._order("global", pb.Order(switch_automation=request), call)
        return MessageAnswer(pb.SwitchAutomationResponse())

    async def _add_host(self, request: pb.AddHostRequest, call: Call) -> Answer:
        name = self._walle.machine_named(request.host)
        machine = self._walle.machines.get(name)
        if may_import(name, call.access) or (machine is not None and is_permitted(machine, request.project)):
            request.host = name  # not for others: the answer would say whose number it is
        checking.check_new_host(request)
        order = pb.Order(add_host=request, may_import=may_import(request.host, call.access))
        await self._order(INVENTORY if order.may_import else f"host/{request.host}", order, call)
        return MessageAnswer(pb.AddHostResponse())

    async def _change_host(self, request: pb.ChangeHostRequest, call: Call) -> Answer:
        request.host = self._walle.machine_named(request.host)
        checking.check_change(request)
        order = pb.Order(change_host=request, may_import=may_import(request.host, call.access))
        await self._on_host(request.host, order, call)
        return MessageAnswer(pb.ChangeHostResponse())

    async def _set_state(self, request: pb.SetHostStateRequest, call: Call) -> Answer:
        request.host = self._walle.machine_named(request.host)
        checking.check_state(request)
        await self._on_host(request.host, pb.Order(set_host_state=request), call)
        return MessageAnswer(pb.SetHostStateResponse())

    async def _start(self, request: pb.StartOperationRequest, call: Call) -> Answer:
        request.host = self._walle.machine_named(request.host)
        await self._on_host(request.host, pb.Order(start_operation=request), call)
        return MessageAnswer(pb.StartOperationResponse())

    async def _cancel(self, request: pb.CancelOperationRequest, call: Call) -> Answer:
        request.host = self._walle.machine_named(request.host)
        await self._on_host(request.host, pb.Order(cancel_operation=request), call)
        return MessageAnswer(pb.CancelOperationResponse())

    async def _add_scenario(self, request: pb.AddScenarioRequest, call: Call) -> Answer:
        checking.check_scenario(request)
        author = who(call)
        if why := scenarios.why_no_room(self._walle.scenarios.values(), author):
            raise Overloaded(why, _RETRY_S)
        try:
            subject = f"scenarios/{zlib.crc32(author.encode()):08x}"
            await self._order(subject, pb.Order(add_scenario=request), call)
        except EventRefused as error:
            if error.code != Overloaded.code:
                raise
            raise Overloaded(str(error), _RETRY_S) from None
        return MessageAnswer(pb.AddScenarioResponse())

    async def _agree_scenario(self, request: pb.AgreeScenarioRequest, call: Call) -> Answer:
        checking.check_agreement(request)
        self._check_scenario(request.scenario)
        await self._order(f"scenario/{request.scenario}", pb.Order(agree_scenario=request), call)
        return MessageAnswer(pb.AgreeScenarioResponse())

    async def _end_scenario(self, request: pb.EndScenarioRequest, call: Call) -> Answer:
        checking.check_id("scenario", request.scenario)
        self._check_scenario(request.scenario)
        await self._order(f"scenario/{request.scenario}", pb.Order(end_scenario=request), call)
        return MessageAnswer(pb.EndScenarioResponse())

    async def _steer_scenario(self, request: pb.SteerScenarioRequest, call: Call) -> Answer:
        checking.check_id("scenario", request.scenario)
        checking.check_steering(request)
        self._check_scenario(request.scenario)
        await self._order(f"scenario/{request.scenario}", pb.Order(steer_scenario=request), call)
        return MessageAnswer(pb.SteerScenarioResponse())

    async def _freeze(self, request: pb.FreezeRequest, call: Call) -> Answer:
        controller = self._walle.controller
        change = controller.freeze if request.frozen else controller.unfreeze
        await change(who(call), request.reason or "no reason given")
        return MessageAnswer(pb.FreezeResponse())

    async def _open(self, request: pb.OpenEpochRequest, call: Call) -> Answer:
        await self._walle.controller.open(who(call), request.reason or "no reason given")
        return MessageAnswer(pb.OpenEpochResponse())

    async def _release_tasks(self, request: pb.ReleaseTasksRequest, call: Call) -> Answer:
        if not request.reason.strip():
            raise invalid("reason", "is missing: say what you found; it is recorded")
        await self._in_project(request.project, pb.Order(release_tasks=request), call)
        return MessageAnswer(pb.ReleaseTasksResponse())

    async def _on_host(self, name: str, order: pb.Order, call: Call) -> None:
        checking.check_host("host", name)
        await self._order(f"host/{name}", order, call)

    def _check_scenario(self, name: str) -> None:
        """Raises NotFound, as for one that is out of reach: an order about nothing is not stored."""
        self._walle.controller.check_loaded()
        if name not in self._walle.scenarios:
            raise NotFound(f"scenario {name} does not exist")

    async def _in_project(self, name: str, order: pb.Order, call: Call) -> None:
        checking.check_id("project", name)
        await self._order(f"project/{name}", order, call)

    def _check_destinations(self, changed: Project | pb.UpdateProjectRequest) -> None:
        checking.check_destinations(changed.cms, changed.notifications, self._walle.parts.destinations)

    async def _order(self, subject: str, order: pb.Order, call: Call) -> None:
        await submit(self._walle, subject, order, call)


class Telling:
    """The calls of check sources."""

    def __init__(self, automaton: WalleSupervisor) -> None:
        self._walle = automaton

    def methods(self, service: ServiceTable) -> list[Method]:
        return [
            service.unary(
                pb.ReportChecksRequest, self._report, REPORT, checked_reach(Of.NODE, self._walle.reaches.check_report)
            ),
            service.unary(pb.TakeAlertsRequest, self._alerts, REPORT, on_each(Of.NODE)),
        ]

    async def _report(self, request: pb.ReportChecksRequest, call: Call) -> Answer:
        check_reports(request)
        for report in request.hosts:
            if why := self._why_not_taken(report, call):
                raise PermissionDenied(f"{who(call)} is not authorized to report that: {why}", key=report.host)
            for one in report.check:
                one.source = source_of(call.access, report.host, one.source)
        unknown = await self._tell(request.hosts, call)
        return MessageAnswer(pb.ReportChecksResponse(unknown=unknown))

    async def _alerts(self, request: pb.TakeAlertsRequest, call: Call) -> Answer:
        """Unusable alerts are answered, not refused: otherwise Alertmanager would resend the whole group for ever."""
        reports, unknown = checks_of(request.alerts)
        for report in reports:
            if is_agent(call.access, report.host):
                for one in report.check:
                    one.source = who(call)
        unknown += await self._tell(list(self._usable(reports, call, unknown)), call)
        return MessageAnswer(pb.TakeAlertsResponse(unknown=unknown))

    async def _tell(self, reports: Sequence[pb.HostChecks], call: Call) -> list[str]:
        for one in (one for report in reports for one in report.check):
            one.text = one.text[:MOST_TEXT]  # more would not be kept
        return await self._walle.tell(reports, who(call), lambda host: call.note_write(host, outcome=CHANGED))

    def _usable(self, reports: Iterable[pb.HostChecks], call: Call, unknown: list[str]) -> Iterable[pb.HostChecks]:
        for report in reports:
            try:
                check_checks(report)
            except InvalidRequest as error:
                unknown.append(str(error))
                continue
            if not all(may_report(call.access, report.host, check.name) for check in report.check):
                why = f"host {report.host} is outside the granted scope"
            else:
                why = self._why_not_taken(report, call)
            if why:
                call.note_write(report.host, outcome="PERMISSION_DENIED")
                unknown.append(why)
            else:
                yield report

    def _why_not_taken(self, report: pb.HostChecks, call: Call) -> str:
        """Why a report is not taken; empty: it is. Agents report only listed checks: these have machines repaired."""
        if not is_agent(call.access, report.host):
            return ""
        other = next((one.name for one in report.check if one.name not in self._walle.parts.agent_checks), "")
        return (
            f"agents may not report {other}: `agent_checks` of the server's configuration has to list it"
            if other
            else ""
        )
