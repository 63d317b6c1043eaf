"""What reads work out: decisions, forecasts and what was used of limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from walle.fuses.admission import Fuses, switched_off
from walle.fuses.forecast import Waiting, forecast
from walle.fuses.fuse import GLOBAL, Automation, hosts_in_window
from walle.fuses.limits import GLOBAL_NAMES, Limits, format_period, limit_of
from walle.healing.decision import Decision, action_of, awaited, decide
from walle.process.automaton import Automaton
from walle.work.restored import why_untouched
from wallepb.v1.host_pb2 import Host
from wallepb.v1.project_pb2 import Credit, Fuse, Project
from wallepb.v1.service_pb2 import GetHostResponse, Usage


def decided(walle: Automaton, host: Host) -> Decision:
    project = walle.projects.get(host.project) or Project(id=host.project)
    decision = decide(host, project, walle.world.incidents, walle.ledger.now().ms, walle.world.settle_ms)
    why = why_untouched(walle.restored.get(project.id), host, project, walle.world)
    return decision if decision.blocked or not why else replace(decision, blocked=why)


def decisions(walle: Automaton, project: Project) -> Iterator[tuple[Host, Decision]]:
    """For all hosts of a project that something would be done about."""
    for host in walle.hosts.values():
        if host.project == project.id and any(check.failing for check in host.check):
            yield host, decided(walle, host)


def shown_host(walle: Automaton, host: Host) -> GetHostResponse:
    """With what would be done, also while a fuse is out."""
    decision = decided(walle, host)
    shown = GetHostResponse(host=host, decision=str(decision), blocked=decision.blocked)
    if decision.step is not None and not decision.blocked:
        automation = action_of(decision, host, "").automation
        shown.blocked = switched_off(_fuses(walle, host.project), automation)
    return shown


def forecast_of(
    walle: Automaton, project: Project, automation: Automation, credits_: Iterable[Credit]
) -> list[Waiting]:
    """What switching on would do to those who wait and are not held back by anything else, for all their checks."""
    now_ms = walle.ledger.now().ms
    free = [(host, one) for host, one in decisions(walle, project) if one.step and not one.blocked]
    waiting = [
        action_of(replace(one, step=step), host, "") for host, one in free for step in awaited(host, project, now_ms)
    ]
    return forecast(_fuses(walle, project.id), waiting, automation, credits_, now_ms)


def usages(fuse: Fuse, limits: Limits, now_ms: int, *, is_global: bool) -> list[Usage]:
    """Every pair of every counter that is set or was used."""
    named = set(GLOBAL_NAMES) if is_global else set(limits)
    shown = []
    for counter in sorted(named | {mark.counter for mark in fuse.mark}):
        for pair in limit_of(limits, counter).pair:
            hosts = sorted(hosts_in_window(fuse, counter, pair.period_s, now_ms))
            text = f"{format_period(pair.period_s)}:{pair.count}"
            shown.append(Usage(counter=counter, pair=text, used=len(hosts), hosts=hosts))
    return shown


def _fuses(walle: Automaton, project_id: str) -> Fuses:
    project = walle.projects.get(project_id) or Project(id=project_id)
    mine = walle.fuses.get(project_id) or Fuse(id=project_id)
    everyones = walle.fuses.get(GLOBAL) or Fuse(id=GLOBAL)
    return Fuses(mine, project.limits, everyones, walle.world.global_limits)
