"""Hosts, racks and operations of Wall-E as pages show them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from console.views.listing import Column
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
    ppb.SCENARIO_STAGE_PAUSED: ("warn", "paused"),
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
_ASKS_S: Final = 1_800.0  # Wall-E's rule: all must agree within this time, or nothing begins


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host. `level` and `word`: how it is; `state`: what it is for; `waits`: its work waits for approval."""

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


HOST_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {
        "name": Column(lambda row: row.name),
        "state": Column(lambda row: row.word),
        "use": Column(lambda row: row.state),
        "project": Column(lambda row: row.host.project),
        "rack": Column(lambda row: row.host.location.rack),
        "switch": Column(lambda row: row.host.location.switch),
    }
)
PROJECT_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {"name": Column(lambda one: one.project.id), "hosts": Column(lambda one: one.hosts, most_first=True)}
)
SCENARIO_COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {
        "name": Column(lambda one: one.id),
        "state": Column(lambda one: scenario_state(one)[1]),
        "switch": Column(lambda one: one.switch),
        "hosts": Column(lambda one: len(one.host), most_first=True),
        "by": Column(lambda one: one.by),
        "asked": Column(lambda one: seconds(one.created), most_first=True),
    }
)


def host_row(answer: pb.GetHostResponse, scenarios: Mapping[str, ppb.Scenario] | None = None) -> HostRow:
    """Make its row of the table. `scenarios`: for how far its planned work is."""
    host = answer.host
    failing = [one for one in host.check if one.failing]
    level, word = _STATUS.get(host.status, ("unknown", "unknown"))
    waits = False
    if host.HasField("operation"):
        waits = host.operation.stage < hpb.STAGE_RUNNING
        level, word = "busy", f"{kind_of(host.operation.kind)}, {stage_of(host.operation.stage)}"
    elif host.scenario and level == "good":
        level, word, waits = "busy", *_planned_work(host.scenario, scenarios or {})
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


def _planned_work(name: str, scenarios: Mapping[str, ppb.Scenario]) -> tuple[str, bool]:
    """The words for planned work, and whether it waits for approval."""
    known = scenarios.get(name)
    waits = known is not None and known.stage == ppb.SCENARIO_STAGE_ASKING
    return f"planned work {name}" + (f", {scenario_state(known)[1]}" if known is not None else ""), waits


def kind_of(kind: hpb.OperationKind) -> str:
    """power-off, as on the CMS wire."""
    return hpb.OperationKind.Name(kind).removeprefix("OPERATION_KIND_").lower().replace("_", "-")


def stage_of(stage: hpb.Stage) -> str:
    """The word for a stage."""
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
    """When planned work gives up unless all have agreed, in Unix time; 0: it does not wait for approval."""
    return seconds(scenario.created) + _ASKS_S if scenario.stage == ppb.SCENARIO_STAGE_ASKING else 0.0


@dataclass(frozen=True, slots=True)
class WaveHost:
    """A host of work in waves. `kind`: its square in the picture."""

    name: str
    level: str
    word: str
    kind: str
    problem: str


@dataclass(frozen=True, slots=True)
class WaveDomain:
    """Hosts of one rack, switch or data centre, or all if waves ignore places; `done`: back, or over without work."""

    name: str
    hosts: list[WaveHost]
    done: int


_WAVE_ORDER: Final = {"failed": 0, "way": 1, "wait": 2, "left": 3, "done": 4}


def wave_domains(scenario: ppb.Scenario) -> list[WaveDomain]:
    """Work in waves, place by place in the order of the work; nothing for work on a switch."""
    if scenario.kind in (ppb.SCENARIO_KIND_UNSPECIFIED, ppb.SCENARIO_KIND_SWITCH_MAINTENANCE):
        return []
    grouped: dict[str, list[WaveHost]] = defaultdict(list)
    for one in scenario.host:
        grouped[one.domain if scenario.by_domain else ""].append(_wave_host(one))
    return [
        WaveDomain(
            name,
            sorted(hosts, key=lambda one: (_WAVE_ORDER[one.kind], one.name)),
            sum(one.kind in ("done", "left") for one in hosts),
        )
        for name, hosts in grouped.items()
    ]


def _wave_host(one: ppb.ScenarioHost) -> WaveHost:
    """A host of work in waves, counted as Wall-E counts it."""
    if one.accepted:
        level, word, kind = "warn", "failed, and a person went on", "failed"
    elif one.outcome == hpb.OUTCOME_DONE:
        level, word, kind = "good", "back", "done"
    elif one.outcome == hpb.OUTCOME_FAILED and one.operation_id:
        level, word, kind = "bad", "failed", "failed"
    elif one.outcome:
        level, word, kind = "note", "not worked on", "left"
    elif one.ended_ms:
        level, word, kind = "busy", "the work is done, not back yet", "way"
    elif one.operation_id or one.due:
        level, word, kind = "busy", "in work", "way"
    else:
        level, word, kind = "unknown", "to come", "wait"
    return WaveHost(one.name, level, word, kind, one.problem)


def wave_rules(scenario: ppb.Scenario) -> str:
    """How large a wave is, of what, what stops the work, and what shows that a host is back."""
    size = scenario.wave_size or str(scenario.at_once or 1)
    many = f"{size} of all hosts" if size.endswith("%") else plural(int(size), "host") if size.isdigit() else size
    place = {"dc": "data centre"}.get(scenario.by_domain, scenario.by_domain)
    most = scenario.max_failures
    stops = (
        f"more than {most} failed" if most else "any failed in the first wave, or later more than 10% of those begun"
    )
    back = "when nothing fails on it" if scenario.verify == "none" else "when somebody reported it fine since"
    return f"{many} at a time{f', of one {place}' if place else ''}. It stops once {stops}. A host is back {back}."


def limit_words(limit: ppb.Limit, otherwise: str) -> str:
    """`3 within 1 d`, the pairs joined."""
    return " and ".join(f"{one.count} within {span(one.period_s)}" for one in limit.pair) or otherwise


def incident_words(bounds: ppb.IncidentBounds) -> str:
    """When a place is left alone, and until when; Wall-E's defaults where nothing is set."""
    begins = bounds.begins_percent or 50
    ends = bounds.ends_percent or begins // 2
    least = plural(bounds.min_hosts or 3, "host")
    return f"at least {least} and more than {begins}% of them fail, until at most {ends}% do"


def switches(hosts: Iterable[pb.GetHostResponse]) -> list[str]:
    """Switches that have hosts behind them."""
    return sorted({one.host.location.switch for one in hosts} - {""})


@dataclass(frozen=True, slots=True)
class Blocker:
    """A CMS that has not agreed to planned work, and the hosts of which it says the same. `task`: of one of these."""

    level: str
    word: str
    cms: str
    message: str
    hosts: list[str]
    task: str


def blockers(scenario: ppb.Scenario) -> list[Blocker]:
    """The CMSs that have not agreed; none once the work has begun."""
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
    """Racks, those with failures or repairs first."""
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
