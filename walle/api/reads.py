"""Reads, answered by every process from memory: also forecasts and usage of limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from control.paging import page_of, page_of_records
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.encoding.jsonio import MessageAnswer
from serving.errors import NotFound, OutOfReach, invalid
from serving.rights.access import Access
from serving.rights.reach import SHOWN, Of, checked_reach, narrowed_reach, stored_reach
from serving.rights.rules import READ
from walle.api.checking import check_patterns
from walle.api.decisions import HostDecisions, stop_reason
from walle.api.redaction import hide_cmss, redact_project, redact_scenario, redacted_host, without_grants
from walle.fuses.fuse import ALL_PROJECTS, GLOBAL, Automation, hosts_in_window, switch_of
from walle.fuses.limits import DEAD, GLOBAL_NAMES, Limits, format_period, limit_of, project_counter
from walle.healing.scheme import scheme_of
from walle.maintenance import OVER, blocking
from walle.notices import warnings_of
from walle.process.automaton import WalleSupervisor
from walle.texts import describe_absence
from walle.work.inventory import inventory_number
from walle.work.restored import is_looked_at, review_items
from walle.work.waves import not_back
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import (
    HOST_STATE_PROBATION,
    HOST_STATUS_READY,
    Host,
)
from wallepb.v1.project_pb2 import Credit, Fuse, Project, Scenario
from wallepb.v1.service_pb2 import Usage


def usages(fuse: Fuse, limits: Limits, now_ms: int, counters: Iterable[str]) -> list[Usage]:
    """Usage of the limits of these counters, and of every one that is set or was used."""
    shown = []
    for counter in sorted({*counters, *limits, *(mark.counter for mark in fuse.mark)}):
        for pair in limit_of(limits, counter).pair:
            hosts = sorted(hosts_in_window(fuse, counter, pair.period_s, now_ms))
            text = f"{format_period(pair.period_s)}:{pair.count}"
            shown.append(Usage(counter=counter, pair=text, used=len(hosts), hosts=hosts))
    return shown


def _counters(project: Project) -> set[str]:
    """Return the names of a project's counters: each without a limit of its own has the default one."""
    return {DEAD} | {project_counter(kind, check) for check, steps in scheme_of(project).items() for kind in steps}


MANY_ON_PROBATION = 0.1  # of a project's hosts


class WalleReads:
    """The reading half of walle.v1.WalleService."""

    def __init__(self, automaton: WalleSupervisor) -> None:
        self._walle = automaton

    def methods(self, service: ServiceTable) -> list[Method]:
        return [
            service.unary(pb.GetProjectRequest, self._project, READ, checked_reach(Of.PROJECT, self._check_project)),
            service.unary(pb.ListProjectsRequest, self._projects, READ, narrowed_reach(Of.PROJECT)),
            service.unary(pb.GetHostRequest, self._host, READ, stored_reach(Of.NODE)),
            service.unary(pb.ListHostsRequest, self._hosts, READ, narrowed_reach(Of.NODE)),
            service.unary(pb.GetLimitsRequest, self._limits, READ, checked_reach(Of.PROJECT, self._check_project)),
            service.unary(pb.GetForecastRequest, self._forecast, READ, checked_reach(Of.PROJECT, self._check_project)),
            service.unary(pb.ListIncidentsRequest, self._incidents, READ, narrowed_reach(Of.NODE)),
            service.unary(pb.GetScenarioRequest, self._scenario, READ, stored_reach(Of.NODE)),
            service.unary(pb.ListScenariosRequest, self._scenarios, READ, narrowed_reach(Of.NODE)),
            service.unary(pb.GetSettingsRequest, self._settings, READ, SHOWN),
        ]

    def _project(self, request: pb.GetProjectRequest, call: Call) -> Answer:
        project = self._find_project(request.project)
        mine = [host for host in self._walle.hosts.values() if host.project == project.id]
        return MessageAnswer(self._project_response(project, mine, call))

    def _projects(self, request: pb.ListProjectsRequest, call: Call) -> Answer:
        self._walle.controller.check_loaded()
        sees = self._walle.reaches.may_see_project

        def shows(project: Project) -> bool:
            return sees(project.id, call.access)

        page, token = page_of_records(self._walle.projects, shows, request.page_size, request.page_token)
        hosts: dict[str, list[Host]] = {one.id: [] for one in page}
        for host in self._walle.hosts.values():
            if host.project in hosts:
                hosts[host.project].append(host)
        shown = [self._project_response(one, hosts[one.id], call) for one in page]
        return MessageAnswer(pb.ListProjectsResponse(projects=shown, next_page_token=token))

    def _host(self, request: pb.GetHostRequest, call: Call) -> Answer:
        self._walle.controller.check_loaded()
        found = self._walle.hosts.get(request.host) or self._by_inventory(request.host)
        if found is None:
            raise NotFound(describe_absence("host", request.host))
        if not self._sees(found.name, call):
            raise OutOfReach(describe_absence("host", request.host), key=found.name)
        return MessageAnswer(self._visible_host(found, HostDecisions(self._walle), call))

    def _hosts(self, request: pb.ListHostsRequest, call: Call) -> Answer:
        self._walle.controller.check_loaded()
        conditions = list(_conditions(request))

        def shows(host: Host) -> bool:
            return all(holds(host) for holds in conditions) and self._sees(host.name, call)

        page, token = page_of_records(self._walle.hosts, shows, request.page_size, request.page_token)
        decisions = HostDecisions(self._walle)
        found = [self._visible_host(one, decisions, call) for one in page]
        return MessageAnswer(pb.ListHostsResponse(hosts=found, next_page_token=token))

    def _limits(self, request: pb.GetLimitsRequest, call: Call) -> Answer:
        project = self._find_project(request.project) if request.project else None
        fuse = self._fuse(request.project or GLOBAL)
        limits = project.limits if project is not None else self._walle.world.global_limits
        now_ms = self._walle.ledger.now().ms
        counters = GLOBAL_NAMES if project is None else _counters(project)
        shown = usages(fuse, limits, now_ms, counters)
        return MessageAnswer(pb.GetLimitsResponse(usage=shown, fuse=fuse))

    def _forecast(self, request: pb.GetForecastRequest, call: Call) -> Answer:
        project = self._find_project(request.project)
        if request.automation not in ("", *Automation):
            raise invalid("automation", f"{request.automation!r}: write healing or dns")
        wanted = [Automation(request.automation)] if request.automation else list(Automation)
        credits_ = [Credit(counter=name, left=left) for name, left in request.credits.items()]
        decisions = HostDecisions(self._walle)
        decided = {lane: decisions.of_project(project, lane) for lane in wanted}
        lines = [line for lane in wanted for line in decisions.forecast(project, lane, decided[lane], credits_)]
        answer = pb.GetForecastResponse(lines=[str(one) for one in lines], trips=any(one.trips for one in lines))
        answer.credits_needed.update({one.counter: one.credit_needed for one in lines if one.wants_credit})
        hide: Callable[[str], str] = str
        if not self._walle.reaches.may_address(project.id, "", call.access):
            decided = {lane: decisions.of_project(project, lane, redacted_host) for lane in wanted}
            hide = partial(hide_cmss, project=project)
        found = (one for lane in wanted for _, one in decided[lane] if one.step is not None)
        answer.decisions.extend(hide(str(one)) for one in found)
        return MessageAnswer(answer)

    def _incidents(self, request: pb.ListIncidentsRequest, call: Call) -> Answer:
        found = set[str]()
        if call.access.is_unlimited:
            found.update(str(one) for one in self._walle.world.incidents.open.values())
            failed = (one for one in self._walle.scenarios.values() if not_back(one))
            found.update(not_back(self._visible_scenario(one, call)) for one in failed)
        entries = ((one, one) for one in sorted(found) if one > request.page_token)
        page, token = page_of(entries, request.page_size, len)
        return MessageAnswer(pb.ListIncidentsResponse(incidents=page, next_page_token=token))

    def _scenario(self, request: pb.GetScenarioRequest, call: Call) -> Answer:
        self._walle.controller.check_loaded()
        found = self._walle.scenarios.get(request.scenario)
        if found is None:
            raise NotFound(describe_absence("scenario", request.scenario))
        if not self._sees_scenario(found, call):
            raise OutOfReach(describe_absence("scenario", request.scenario), key=request.scenario)
        projects = {one.name: host.project for one in found.host if (host := self._walle.hosts.get(one.name))}
        shown = self._visible_scenario(found, call)
        return MessageAnswer(pb.GetScenarioResponse(scenario=shown, blocking=blocking(shown, projects)))

    def _scenarios(self, request: pb.ListScenariosRequest, call: Call) -> Answer:
        self._walle.controller.check_loaded()

        def shows(scenario: Scenario) -> bool:
            return not (request.open and scenario.stage in OVER) and self._sees_scenario(scenario, call)

        page, token = page_of_records(self._walle.scenarios, shows, request.page_size, request.page_token)
        found = [self._visible_scenario(one, call) for one in page]
        return MessageAnswer(pb.ListScenariosResponse(scenarios=found, next_page_token=token))

    def _settings(self, request: pb.GetSettingsRequest, call: Call) -> Answer:
        controller = self._walle.controller
        answer = pb.GetSettingsResponse(
            acting=controller.acting_process,
            stopped=controller.why_nothing_begins(),
            fuse=self._global_fuse(call),
            installation=self._walle.world.installation,
            mended=controller.repairs,
        )
        return MessageAnswer(answer)

    def _check_project(self, request: Any, access: Access) -> None:
        """Raises OutOfReach. The fuse and limits of all projects are shown to who sees all."""
        if not self._walle.reaches.may_see_project(request.project, access):
            raise OutOfReach(describe_absence("project", request.project), key=request.project)

    def _sees(self, host: str, call: Call) -> bool:
        return not call.access.is_checked or self._walle.reaches.may_see_host(host, call.access)

    def _sees_scenario(self, scenario: Scenario, call: Call) -> bool:
        return not call.access.is_checked or self._walle.reaches.may_see_scenario(scenario, call.access)

    def _find_project(self, name: str) -> Project:
        self._walle.controller.check_loaded()
        found = self._walle.projects.get(name)
        if found is None:
            raise NotFound(describe_absence("project", name))
        return found

    def _fuse(self, fuse_id: str) -> Fuse:
        return self._walle.fuses.get(fuse_id) or Fuse(id=fuse_id)

    def _global_fuse(self, call: Call) -> Fuse:
        """The global fuse: all see whether it is off; by whose hosts it tripped, and why, only who sees everything."""
        fuse = self._fuse(GLOBAL)
        if call.access.is_unlimited:
            return fuse
        shown = Fuse(id=fuse.id)
        for switch, seen in ((fuse.healing, shown.healing), (fuse.dns, shown.dns)):
            seen.off, seen.tripped_by = switch.off, switch.tripped_by
            if switch.HasField("time"):
                seen.time.CopyFrom(switch.time)
        return shown

    def _by_inventory(self, text: str) -> Host | None:
        wanted = inventory_number(text)
        return next((host for host in self._walle.hosts.values() if wanted and host.inventory == wanted), None)

    def _project_response(self, project: Project, mine: Sequence[Host], call: Call) -> pb.GetProjectResponse:
        warnings = [*warnings_of(project), *_probation(project, mine), *_unlisted_warnings(project, mine)]
        if stopped := stop_reason(self._walle):
            warnings.append(stopped)
        off = (one for one in Automation if switch_of(self._fuse(GLOBAL), one).off)
        warnings += [f"{one} is off for {ALL_PROJECTS}: nothing is done here, either" for one in off]
        if self._walle.reaches.may_address(project.id, "", call.access):
            warnings += review_items(self._walle.restored.get(project.id))  # they name CMSs
        restored = self._walle.restored.get(project.id)
        if is_looked_at(restored, self._walle.world.epoch()):
            restored = None
        fuse = self._fuse(project.id)
        shown = pb.GetProjectResponse(project=project, fuse=fuse, hosts=len(mine), warnings=warnings, restored=restored)
        if not self._walle.reaches.may_address(project.id, "", call.access):
            redact_project(shown)
        return shown

    def _visible_host(self, host: Host, decisions: HostDecisions, call: Call) -> pb.GetHostResponse:
        """The host as far as the caller may see it."""
        if self._walle.reaches.may_address(host.project, host.name, call.access):
            return decisions.respond(host, sees_all=call.access.is_unlimited)
        shown = decisions.respond(redacted_host(host), sees_all=call.access.is_unlimited)
        project = self._walle.projects.get(host.project) or Project()
        shown.decision, shown.blocked = hide_cmss(shown.decision, project), hide_cmss(shown.blocked, project)
        return shown

    def _visible_scenario(self, scenario: Scenario, call: Call) -> Scenario:
        """The scenario as far as the caller may see it: answers of CMSs only if it may repair all hosts."""
        shown, hosts = without_grants(scenario), self._walle.hosts
        projects = ((one.name, hosts[one.name].project if one.name in hosts else "") for one in scenario.host)
        if not all(self._walle.reaches.may_address(project, name, call.access) for name, project in projects):
            redact_scenario(shown)
        return shown


def _probation(project: Project, hosts: Iterable[Host]) -> list[str]:
    states = [host.state for host in hosts]
    count = states.count(HOST_STATE_PROBATION)
    if count == 0 or count < MANY_ON_PROBATION * len(states):
        return []
    some = f"{count} of {len(states)} hosts on probation"
    return [f"project {project.id} has {some}: no limit holds back what is done to them"]


def _unlisted_warnings(project: Project, hosts: Iterable[Host]) -> list[str]:
    names = sorted(host.name for host in hosts if not host.listed)
    if not names:
        return []
    count = f"{len(names)} hosts are" if len(names) > 1 else "1 host is"
    some = f"{', '.join(names[:3])}{', ...' if names[3:] else ''}"
    return [f"project {project.id}: {count} not in the inventory, so nothing is done there: an operator imports {some}"]


def _conditions(request: pb.ListHostsRequest) -> Iterator[Callable[[Host], bool]]:
    """Yield the conditions that the request sets: those left out cost nothing for each of thousands of hosts."""
    names = check_patterns("names", request.names)
    if request.names:
        yield lambda host: host.name in names
    for field in ("project", "state", "status"):
        if wanted := getattr(request, field):
            yield partial(_has, field=field, value=wanted)
    for place in ("dc", "rack", "switch"):
        if wanted := getattr(request, place):
            yield partial(_is_in, place=place, name=wanted)
    if request.check:
        yield lambda host: any(one.failing and one.name == request.check for one in host.check)
    if request.troubled:
        yield _is_troubled


def _has(host: Host, field: str, value: object) -> bool:
    return bool(getattr(host, field) == value)


def _is_in(host: Host, place: str, name: str) -> bool:
    return bool(getattr(host.location, place) == name)


def _is_troubled(host: Host) -> bool:
    is_busy = host.HasField("operation") or host.HasField("dns_operation")
    return is_busy or host.status != HOST_STATUS_READY or any(check.failing for check in host.check)
