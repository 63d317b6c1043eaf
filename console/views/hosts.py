"""Hosts, racks, operations and fuses of Wall-E as pages show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from console.views.problems import Problem, named
from console.views.urls import url
from console.views.words import plural, seconds, span
from wallepb.v1 import host_pb2 as hpb
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as pb

STEPS: Final = (
    (hpb.STAGE_REQUESTED, "requested"),
    (hpb.STAGE_APPROVAL, "approval"),
    (hpb.STAGE_CONFIRMING, "confirming"),
    (hpb.STAGE_RUNNING, "running"),
    (hpb.STAGE_VERIFYING, "verifying"),
    (hpb.STAGE_ENDING, "ending"),
)
_STATUS: Final = {
    hpb.HOST_STATUS_READY: ("good", "ready"),
    hpb.HOST_STATUS_MANUAL: ("warn", "manual"),
    hpb.HOST_STATUS_DEAD: ("bad", "dead"),
    hpb.HOST_STATUS_INVALID: ("warn", "invalid"),
}
_STATE: Final = {
    hpb.HOST_STATE_FREE: "free",
    hpb.HOST_STATE_ASSIGNED: "assigned",
    hpb.HOST_STATE_MAINTENANCE: "maintenance",
    hpb.HOST_STATE_PROBATION: "probation",
}
_SCENARIO: Final = {
    ppb.SCENARIO_STAGE_ASKING: ("busy", "waits for approval"),
    ppb.SCENARIO_STAGE_CONFIRMING: ("busy", "confirming"),
    ppb.SCENARIO_STAGE_WORKING: ("good", "the work may be done"),
    ppb.SCENARIO_STAGE_RETURNING: ("busy", "returning"),
    ppb.SCENARIO_STAGE_FINISHED: ("note", "finished"),
    ppb.SCENARIO_STAGE_REFUSED: ("bad", "refused"),
    ppb.SCENARIO_STAGE_CANCELLED: ("note", "cancelled"),
}
_VERDICTS: Final = {
    hpb.VERDICT_OK: ("good", "ok"),
    hpb.VERDICT_IN_PROCESS: ("unknown", "waits"),
    hpb.VERDICT_REJECTED: ("bad", "rejected"),
}
NOTHING: Final = "nothing to do"  # Wall-E's words for no decision
_ASKS_S: Final = 1_800.0  # Wall-E's rule: all agree within it, or nothing begins
_ASKING_LONG_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host. `level` and `word`: how it is; `state`: what it is there for; `waits`: its work, for approval."""

    name: str
    href: str
    host: hpb.Host
    level: str
    word: str
    state: str
    failing: list[hpb.Check]
    decision: str
    blocked: str
    waits: bool
    is_dead: bool


def host_row(answer: pb.GetHostResponse, scenarios: Mapping[str, ppb.Scenario] | None = None) -> HostRow:
    """What a table says of it. `scenarios`: for how far its planned work is."""
    host = answer.host
    failing = [one for one in host.check if one.failing]
    level, word = _STATUS.get(host.status, ("unknown", "unknown"))
    waits = False
    if host.HasField("operation"):
        waits = host.operation.stage < hpb.STAGE_RUNNING
        level, word = "busy", f"{kind_of(host.operation.kind)}, {stage_of(host.operation.stage)}"
    elif host.scenario and level == "good":
        level, word, waits = "busy", *_planned(host.scenario, scenarios or {})
    elif level == "good" and failing:
        level, word = "warn", ", ".join(one.name for one in failing)
    state = _STATE.get(host.state, "")
    decision = answer.decision.removeprefix(f"{host.name}: ")
    return HostRow(
        name=host.name,
        href=url("hosts", host.name),
        host=host,
        level=level,
        word=word,
        state=state,
        failing=failing,
        decision="" if decision == NOTHING else decision,
        blocked="" if answer.blocked in answer.decision else answer.blocked,
        waits=waits,
        is_dead=host.status == hpb.HOST_STATUS_DEAD,
    )


def _planned(name: str, scenarios: Mapping[str, ppb.Scenario]) -> tuple[str, bool]:
    """Its word, and whether it waits for approval."""
    known = scenarios.get(name)
    waits = known is not None and known.stage == ppb.SCENARIO_STAGE_ASKING
    return f"planned work {name}" + (f", {scenario_state(known)[1]}" if known is not None else ""), waits


def kind_of(kind: hpb.OperationKind) -> str:
    """power-off, as on the CMS wire."""
    return hpb.OperationKind.Name(kind).removeprefix("OPERATION_KIND_").lower().replace("_", "-")


def stage_of(stage: hpb.Stage) -> str:
    """Its word."""
    return dict(STEPS).get(stage, "unknown")


def outcome_of(outcome: hpb.Outcome) -> tuple[str, str]:
    """Level and word."""
    word = hpb.Outcome.Name(outcome).removeprefix("OUTCOME_").lower()
    return {"done": "good", "failed": "bad", "rejected": "bad"}.get(word, "note"), word


def verdict_of(verdict: hpb.Verdict) -> tuple[str, str]:
    """Level and word."""
    return _VERDICTS.get(verdict, ("unknown", "not asked yet"))


def scenario_state(scenario: ppb.Scenario) -> tuple[str, str]:
    """Level and word."""
    return _SCENARIO.get(scenario.stage, ("unknown", "unknown"))


def gives_up_s(scenario: ppb.Scenario) -> float:
    """When it ends unless all have agreed; 0: it does not wait for approval."""
    return seconds(scenario.created) + _ASKS_S if scenario.stage == ppb.SCENARIO_STAGE_ASKING else 0.0


def switches(hosts: Iterable[pb.GetHostResponse]) -> list[str]:
    """Those that hosts are behind."""
    return sorted({one.host.location.switch for one in hosts} - {""})


@dataclass(frozen=True, slots=True)
class Blocker:
    """One who has not agreed to planned work, for hosts of which it says the same. `task`: one of theirs at the CMS."""

    level: str
    word: str
    cms: str
    message: str
    hosts: list[str]
    task: str


def blockers(scenario: ppb.Scenario) -> list[Blocker]:
    """Nobody where it is over, or where all agreed."""
    if scenario.stage >= ppb.SCENARIO_STAGE_WORKING:
        return []
    found: dict[tuple[int, str, str], Blocker] = {}
    for host in sorted(scenario.host, key=lambda one: one.name):
        for task in host.task:
            if task.verdict != hpb.VERDICT_OK:
                level, word = verdict_of(task.verdict)
                new = Blocker(level, word, task.cms, task.message or "no answer yet", [], task.id)
                found.setdefault((task.verdict, task.cms, task.message), new).hosts.append(host.name)
        for cms in host.by_hand:
            new = Blocker("warn", "by hand", cms, "it cannot be asked: the owners of these hosts agree by hand", [], "")
            found.setdefault((0, cms, "by hand"), new).hosts.append(host.name)
    return sorted(found.values(), key=lambda one: -len(one.hosts))


@dataclass(frozen=True, slots=True)
class Rack:
    """The picture of one rack: its hosts, and how many are under work or broken."""

    dc: str
    name: str
    rows: list[HostRow]
    busy: int
    waiting: int
    bad: int


def racks(rows: Iterable[HostRow]) -> list[Rack]:
    """Those with trouble or work first."""
    grouped: dict[tuple[str, str], list[HostRow]] = defaultdict(list)
    for row in rows:
        grouped[row.host.location.dc, row.host.location.rack].append(row)
    made = [
        Rack(
            dc,
            rack,
            sorted(those, key=lambda row: row.name),
            sum(row.level == "busy" and not row.waits for row in those),
            sum(row.waits for row in those),
            sum(row.level in ("bad", "warn") for row in those),
        )
        for (dc, rack), those in grouped.items()
    ]
    return sorted(made, key=lambda one: (-one.bad, -one.busy, -one.waiting, one.dc, one.name))


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
class Incident:
    """What fails together. `href`: its hosts; `asked`: repairs of them that were requested before it was seen."""

    title: str
    href: str
    asked: str


def incidents(texts: Iterable[str], hosts: Iterable[pb.GetHostResponse]) -> list[Incident]:
    """Wall-E's words, each with the hosts of its place that fail; a rack and its switch with the same ones are one."""
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
        Incident(
            f"{' and '.join(those)}: {key[0]}" if key[0] else those[0],
            places.get(those[0], url("hosts")),
            _asked_before(failing.get(those[0], ())),
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
    incidents: Iterable[Incident],
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
    found += map(_of_fuse, out)
    together = "What fails together is rarely the fault of each host."
    ways = "Check power, links and the switch first; Wall-E waits."
    found += [Problem("bad", one.title, f"{together} {one.asked}".strip(), ways, one.href) for one in incidents]
    for one in scenarios:
        waited_s = now_s - seconds(one.created)
        if one.stage == ppb.SCENARIO_STAGE_ASKING and waited_s > _ASKING_LONG_S:
            title = f"{one.id} has waited for approval for {span(waited_s)}"
            found.append(Problem("warn", title, one.message, f"Asked for by {one.by}.", url("scenarios", one.id)))
        elif one.stage == ppb.SCENARIO_STAGE_ASKING:
            title = f"{one.id}: {'work on ' + one.switch if one.switch else 'planned work'} waits for approval"
            asked = f"Asked for by {one.by}. Its page says who blocks it."
            found.append(Problem("note", title, one.message, asked, url("scenarios", one.id), seconds(one.created)))
        elif one.stage == ppb.SCENARIO_STAGE_WORKING:
            why = f"{plural(len(one.host), 'host')}, by {one.by}: {one.reason or one.ticket}"
            found.append(Problem("note", f"{one.id}: planned work goes on", why, "", url("scenarios", one.id)))
    return found


def dead_problem(hosts: Iterable[pb.GetHostResponse]) -> list[Problem]:
    """Hosts that nobody repairs any more, in one line: what runs there is down until a person acts."""
    dead = sorted((one.host for one in hosts if one.host.status == hpb.HOST_STATUS_DEAD), key=lambda host: host.name)
    if not dead:
        return []
    many = "1 host is dead" if len(dead) == 1 else f"{plural(len(dead), 'host')} are dead"
    failing = [seconds(check.since) for host in dead for check in host.check if check.failing]
    why = f"{named([host.name for host in dead])}. The last reason: {dead[0].status_reason or 'not said'}."
    ways = "Repair them, then take each back on its page: Wall-E does nothing there until then."
    return [Problem("bad", f"{many}, healing has given up", why, ways, url("hosts"), min(failing, default=0.0))]


def _of_fuse(row: FuseRow) -> Problem:
    by = "It switched itself off" if row.switch.tripped_by else f"by {row.switch.by}"
    why = f"{by}: {row.switch.reason}" if row.switch.reason else f"{by}."
    where = f"of {row.project}" if row.project else "everywhere"
    level = "bad" if row.switch.tripped_by else "warn"
    ways = "Look at the ledger and the forecast before you switch it on."
    href = url("projects", row.project) if row.project else url("projects")
    return Problem(level, f"{row.automation} {where} is off", why, ways, href, seconds(row.switch.time))
