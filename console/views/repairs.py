"""Problems of Wall-E's repairs: fuses that are off, racks that fail together, hosts it has given up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from console.views.hosts import kind_of
from console.views.problems import Problem, join_names
from console.views.urls import url
from console.views.words import plural, seconds, span
from wallepb.v1 import host_pb2 as hpb
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as pb

_ASKING_LONG_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class FuseRow:
    """One switch of a project, or of all."""

    project: str
    automation: str
    switch: ppb.Switch


def fuses_out(projects: Iterable[pb.GetProjectResponse], everywhere: ppb.Fuse | None) -> list[FuseRow]:
    """The switches that are off."""
    named = [(one.project.id, one.fuse) for one in projects]
    if everywhere is not None:
        named.insert(0, ("", everywhere))
    return [
        FuseRow(name, automation, switch)
        for name, fuse in named
        for automation, switch in (("healing", fuse.healing), ("dns", fuse.dns))
        if switch.off
    ]


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """Hosts that fail together. `href`: its hosts; `asked`: repairs of them, requested before the incident was seen.

    `hosts`: names of those that fail.
    """

    title: str
    href: str
    asked: str
    hosts: frozenset[str] = frozenset()


def incidents(texts: Iterable[str], hosts: Iterable[pb.GetHostResponse]) -> list[IncidentRow]:
    """Incidents in Wall-E's words, with the hosts that fail; a rack and its switch with the same hosts are one."""
    failing: dict[str, list[hpb.Host]] = defaultdict(list)
    places: dict[str, str] = {}
    for host in (one.host for one in hosts):
        if any(check.failing for check in host.check):
            dc = f"{host.location.dc}/" if host.location.dc else ""
            for kind, name in (("rack", host.location.rack), ("switch", host.location.switch)):
                failing[f"{kind} {dc}{name}"].append(host)
                places[f"{kind} {dc}{name}"] = url("hosts", **{kind: name})
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for text in texts:
        place, _, what = text.partition(": ")
        names = sorted(host.name for host in failing.get(place, ()))
        found[what, *(names or [place])].append(place)
    return [
        IncidentRow(
            f"{' and '.join(those)}: {key[0]}" if key[0] else those[0],
            places.get(those[0], url("hosts")),
            _asked_before(failing.get(those[0], ())),
            frozenset(host.name for host in failing.get(those[0], ())),
        )
        for key, those in found.items()
    ]


def _asked_before(hosts: Iterable[hpb.Host]) -> str:
    waiting = [host.operation for host in hosts if host.operation.check and host.operation.stage < hpb.STAGE_RUNNING]
    if not waiting:
        return ""
    kinds = {kind_of(one.kind) for one in waiting}
    many = plural(len(waiting), kinds.pop() if len(kinds) == 1 else "repair")
    return f"{many} {'was' if len(waiting) == 1 else 'were'} requested before this was seen; no more begin."


def walle_problems(
    out: Iterable[FuseRow],
    incidents: Iterable[IncidentRow],
    scenarios: Iterable[ppb.Scenario],
    settings: pb.GetSettingsResponse | None,
    now_s: float,
) -> list[Problem]:
    """Fuses that have tripped, racks that fail together, planned work that waits, a Wall-E that does nothing."""
    found = (
        [Problem("bad", "Wall-E begins nothing", settings.stopped, "", url("hosts"))]
        if settings and settings.stopped
        else []
    )
    found += map(_fuse_problem, out)
    together = "What fails together is rarely the fault of each host."
    ways = "Check power, links and the switch first; Wall-E waits."
    found += [
        Problem("bad", one.title, f"{together} {one.asked}".strip(), ways, one.href, place=one.hosts)
        for one in incidents
    ]
    return [*found, *filter(None, (scenario_problem(one, now_s) for one in scenarios))]


def scenario_problem(one: ppb.Scenario, now_s: float) -> Problem | None:
    """Planned work that waits, has stopped or goes on; its tasks at the CMS are of the same group."""
    waited_s, href = now_s - seconds(one.created), url("scenarios", one.id)
    match one.stage:
        case ppb.SCENARIO_STAGE_ASKING if waited_s > _ASKING_LONG_S:
            title = f"{one.id} has waited for approval for {span(waited_s)}"
            return Problem("warn", title, one.message, f"Asked for by {one.by}.", href, group=one.group_id)
        case ppb.SCENARIO_STAGE_ASKING:
            title = f"{one.id}: {'work on ' + one.switch if one.switch else 'planned work'} waits for approval"
            asked, since_s = f"Asked for by {one.by}. Its page says who blocks it.", seconds(one.created)
            return Problem("note", title, one.message, asked, href, since_s, group=one.group_id)
        case ppb.SCENARIO_STAGE_PAUSED:
            ways = "Continue, retry what failed, or cancel it on its page."
            title = f"{one.id}: planned work has stopped"
            return Problem("warn", title, one.message, ways, href, group=one.group_id)
        case ppb.SCENARIO_STAGE_WORKING:
            why = f"{plural(len(one.host), 'host')}, by {one.by}: {one.reason or one.ticket}"
            return Problem("note", f"{one.id}: planned work goes on", why, "", href, group=one.group_id)
    return None


def dead_problem(hosts: Iterable[pb.GetHostResponse]) -> list[Problem]:
    """Hosts that are no longer repaired, in one line: their instances are down until a person acts."""
    dead = sorted((one.host for one in hosts if one.host.status == hpb.HOST_STATUS_DEAD), key=lambda host: host.name)
    if not dead:
        return []
    many = "1 host is dead" if len(dead) == 1 else f"{plural(len(dead), 'host')} are dead"
    failing = [seconds(check.since) for host in dead for check in host.check if check.failing]
    why = f"{join_names([host.name for host in dead])}. The last reason: {dead[0].status_reason or 'not said'}."
    ways = "Repair them, then take each back on its page: Wall-E does nothing there until then."
    return [Problem("bad", f"{many}, healing has given up", why, ways, url("hosts"), min(failing, default=0.0))]


def _fuse_problem(row: FuseRow) -> Problem:
    by = "It switched itself off" if row.switch.tripped_by else f"by {row.switch.by}"
    why = f"{by}: {row.switch.reason}" if row.switch.reason else f"{by}."
    where = f"of {row.project}" if row.project else "everywhere"
    level = "bad" if row.switch.tripped_by else "warn"
    ways = "Look at the ledger and the forecast before you switch it on."
    href = url("projects", row.project) if row.project else url("projects")
    return Problem(level, f"{row.automation} {where} is off", why, ways, href, seconds(row.switch.time))
