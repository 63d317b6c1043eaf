"""What would be done about hosts, also while a fuse is out: what hosts, pages of them and forecasts show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from walle.fuses.admission import Fuses, WaitingHosts, forecast, switched_off
from walle.fuses.fuse import GLOBAL, Automation
from walle.healing.decision import HealingDecision, action_of, decide, next_steps
from walle.healing.lanes import swap_lanes
from walle.healing.scheme import Steps, checks_in, scheme_of
from walle.process.automaton import WalleSupervisor
from walle.work.restored import why_untouched
from wallepb.v1.host_pb2 import STAGE_APPROVAL, STAGE_CONFIRMING, STAGE_REQUESTED, Host
from wallepb.v1.project_pb2 import Credit, Fuse, Project
from wallepb.v1.service_pb2 import GetHostResponse

HostsDecided = list[tuple[Host, HealingDecision]]


class HostDecisions:
    """Decisions for one answer: for all hosts at one time, with what a project's hosts share computed once."""

    def __init__(self, walle: WalleSupervisor) -> None:
        self._walle, self._now_ms = walle, walle.ledger.now().ms
        self._projects: dict[str, Project] = {}
        self._schemes: dict[tuple[str, Automation], dict[str, Steps]] = {}
        self._stopped = stop_reason(walle)

    def respond(self, host: Host, *, sees_all: bool) -> GetHostResponse:
        """A host with what would be done about it.

        `sees_all`: say also why the fuse of all projects is off.
        """
        decision = self._decide(host, Automation.HEALING)
        if decision.step is None and self._may_need(host, Automation.DNS):
            dns = self._decide(swap_lanes(host), Automation.DNS)
            decision = dns if dns.step is not None else decision
        shown = GetHostResponse(host=host, decision=str(decision), blocked=decision.blocked)
        if decision.step is not None and not decision.blocked:
            off = switched_off(self._fuses(host.project), action_of(decision, host, "").automation, sees_all=sees_all)
            shown.blocked = "; ".join(filter(None, (self._stopped, off))) or refusal_reason(decision)
        if host.operation.stage in (STAGE_REQUESTED, STAGE_APPROVAL, STAGE_CONFIRMING):
            shown.blocked = self._stopped or shown.blocked
        return shown

    def of_project(
        self, project: Project, lane: Automation, show: Callable[[Host], Host] = lambda host: host
    ) -> HostsDecided:
        """Decisions for all hosts of a project that need work; for DNS with their lanes swapped.

        `show`: a host as the caller may see it.
        """
        return [
            (view, self._decide(view, lane))
            for host in self._walle.hosts.values()
            if host.project == project.id and self._may_need(host, lane)
            for view in [swap_lanes(show(host)) if lane is Automation.DNS else show(host)]
        ]

    def forecast(
        self, project: Project, automation: Automation, decided: HostsDecided, credits_: Iterable[Credit]
    ) -> list[WaitingHosts]:
        """Return what switching on would do for the hosts that wait for nothing else, counted by all their checks."""
        waiting = (
            action_of(replace(one, step=step), host, "")
            for host, one in decided
            if one.step and not one.blocked
            for step in next_steps(host, self._scheme(project.id, automation), self._now_ms)
        )
        return forecast(self._fuses(project.id), waiting, automation, credits_, self._now_ms)

    def _decide(self, host: Host, lane: Automation) -> HealingDecision:
        """Decide in one lane: for repairs or, with the host's lanes swapped, for DNS."""
        walle, project = self._walle, self._project(host.project)
        scheme = self._scheme(host.project, lane)
        decision = decide(host, project, walle.world.incidents, self._now_ms, walle.world.settle_ms, lane, scheme)
        why = why_untouched(walle.restored.get(project.id), host, project, walle.world)
        return decision if decision.blocked or not why else replace(decision, blocked=why)

    def _may_need(self, host: Host, lane: Automation) -> bool:
        """Whether a check fails that this lane handles."""
        return any(check.failing and check.name in self._scheme(host.project, lane) for check in host.check)

    def _scheme(self, project: str, lane: Automation) -> dict[str, Steps]:
        if (project, lane) not in self._schemes:
            self._schemes[project, lane] = checks_in(scheme_of(self._project(project)), lane)
        return self._schemes[project, lane]

    def _project(self, name: str) -> Project:
        if name not in self._projects:
            self._projects[name] = self._walle.projects.get(name) or Project(id=name)
        return self._projects[name]

    def _fuses(self, project_id: str) -> Fuses:
        mine = self._walle.fuses.get(project_id) or Fuse(id=project_id)
        everyones = self._walle.fuses.get(GLOBAL) or Fuse(id=GLOBAL)
        return Fuses(mine, self._project(project_id).limits, everyones, self._walle.world.global_limits)


def stop_reason(walle: WalleSupervisor) -> str:
    """Why nothing begins anywhere; empty: it may."""
    controller = walle.controller
    if stopped := walle.stop_order():
        return stopped
    if not controller.is_open:
        return "the store was restored or replaced: nothing begins until `walle open-epoch`"
    return controller.why_nothing_begins() if controller.is_acting else ""


def refusal_reason(decision: HealingDecision) -> str:
    """Why a step is not done although nothing else is in its way; empty: its dry runs were not rejected."""
    return "a CMS rejected the dry run; it is asked again, at least every hour" if decision.is_refused else ""
