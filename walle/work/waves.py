"""Mass reboots and firmware work: a wave of hosts begins once every host of the wave before is back.

control/waves.py decides how the work goes on; here are the hosts, their operations, and what is seen of them. A host is
held, and its approval kept, until it is back; one that does not come back is held until a person has decided. There may
be thousands: a look at them is several transactions, of a few hosts each.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Final

from control.amounts import Amount
from control.errors import Refused
from control.waves import Part, PartEvidence, Progress, WaveLimits, judge, list_problems, next_step, next_wave
from walle.fuses.admission import switched_off
from walle.fuses.fuse import Automation, Moment
from walle.healing.incidents import Incident
from walle.maintenance import ScenarioEvent, advance
from walle.tables import NAMES, OperationEvent
from walle.texts import truncate_text
from walle.work.book import HOST, PROJECT, Notice, WalleTransaction, World, fuses_of
from walle.work.orders import start_operation
from walle.work.repairs import move
from walle.work.scenario_kinds import kind_traits
from walle.work.scenario_records import put_scenario, read_scenario
from wallepb.v1.host_pb2 import (
    HOST_STATUS_READY,
    OUTCOME_CANCELLED,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_UNSPECIFIED,
    STAGE_VERIFYING,
    Host,
    HostStatus,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_PAUSED,
    SCENARIO_STAGE_RETURNING,
    SCENARIO_STAGE_WORKING,
    SEVERITY_ERROR,
    Project,
    Scenario,
    ScenarioHost,
)
from wallepb.v1.service_pb2 import StartOperationRequest

HOSTS_IN_STEP: Final = 20  # in one transaction: each has some records, and so has the scenario
RETURN_MS: Final = 900_000  # a host has failed if it is not back this long after its work
_OPEN: Final = (SCENARIO_STAGE_WORKING, SCENARIO_STAGE_PAUSED)
_HELD: Final = (Progress.WORKING, Progress.RETURNING, Progress.FAILED)
# Of one host: many hosts are in one record, which has a bound.
_MAX_PROBLEM: Final = 150  # characters
_MAX_READY: Final = 100  # instances that are remembered by a digest of four characters
NO_PROOF: Final = "none"  # `verify`: silence is as good as an answer


@dataclass(frozen=True, slots=True)
class HqView:
    """HQ's view of the hosts of a scenario, by host.

    Attributes:
        ready: instances that are ready there; it has every host that HQ was asked about before its work.
        missing: instances that are wanted ready there, and are not.
        problem: why HQ does not say; empty: it does.
    """

    ready: Mapping[str, Collection[str]] = field(default_factory=dict)
    missing: Mapping[str, Collection[str]] = field(default_factory=dict)
    problem: str = ""


Decision = Callable[[WalleTransaction], list[Notice]]


def wave_decisions(
    scenario: Callable[[], Scenario | None],
    held: Callable[[], Collection[str]],
    world: World,
    now: Moment,
    hq: HqView | None = None,
) -> Iterator[Decision]:
    """The transactions of one look at a scenario, to be stored one after the other: each follows from those before.

    Hosts that were in work are looked at; once all are back the next wave begins, or the work stops if one is not.

    Args:
        scenario: as it is now.
        held: names of the hosts that the scenario holds now.
        hq: None: there is none, hosts are judged by their checks alone.
    """
    if (seen := scenario()) is None:
        return
    name = seen.id
    for names in _batches([one.name for one in seen.host if _is_watched(one, now.ms)]):
        yield partial(_look_at_hosts, name=name, names=names, world=world, now=now, hq=hq)
    yield from release_decisions(scenario, held, now)
    yield partial(_go_on, name=name, world=world, now=now, hq=hq)
    for names in _batches(_due(scenario())):
        yield partial(_begin_hosts, name=name, names=names, world=world, now=now, hq=hq)
    yield from release_decisions(scenario, held, now)
    yield partial(_return, name=name, held=held, now=now)


def release_decisions(
    scenario: Callable[[], Scenario | None], held: Callable[[], Collection[str]], now: Moment
) -> Iterator[Decision]:
    """The transactions that give back what a scenario does not work on: all that it holds, once it is over."""
    seen = scenario()
    for names in _batches(_to_release(seen, held())):
        assert seen is not None
        yield partial(_release_hosts, name=seen.id, names=names, now=now)


def _return(book: WalleTransaction, name: str, held: Callable[[], Collection[str]], now: Moment) -> list[Notice]:
    """End the scenario once it holds no host; if people ended it just now, the next look releases its hosts."""
    scenario = read_scenario(book, name)
    if scenario is not None and scenario.stage == SCENARIO_STAGE_RETURNING and not held():
        put_scenario(book, advance(scenario, ScenarioEvent.RETURNED, now.ms))
    return []


def _batches(names: Sequence[str]) -> Iterator[frozenset[str]]:
    return (frozenset(names[first : first + HOSTS_IN_STEP]) for first in range(0, len(names), HOSTS_IN_STEP))


def _is_watched(wanted: ScenarioHost, now_ms: int) -> bool:
    """Whether its work is under way or may yet turn out badly: until RETURN_MS a host that came back may fail again."""
    is_back = wanted.outcome == OUTCOME_DONE and now_ms - wanted.ended_ms < RETURN_MS
    return bool(wanted.operation_id) and (not wanted.outcome or is_back)


def _due(scenario: Scenario | None) -> list[str]:
    is_working = scenario is not None and scenario.stage == SCENARIO_STAGE_WORKING
    return [one.name for one in scenario.host if one.due] if scenario is not None and is_working else []


def _to_release(scenario: Scenario | None, held: Collection[str]) -> list[str]:
    """Return the held hosts that are neither in work nor left to a person."""
    if scenario is None or not held:
        return []
    kept: set[str] = set()
    if scenario.stage in _OPEN:
        kept = {one.name for one in scenario.host if progress_of(one) in _HELD}
    return sorted(name for name in held if name not in kept)


def _look_at_hosts(
    book: WalleTransaction, name: str, names: Collection[str], world: World, now: Moment, hq: HqView | None
) -> list[Notice]:
    scenario = read_scenario(book, name)
    if scenario is None or scenario.stage not in _OPEN:
        return []
    for wanted in scenario.host:
        if wanted.name in names and _is_watched(wanted, now.ms):
            _look_at(book, scenario, wanted, world, now, hq)
            wanted.problem = truncate_text(wanted.problem, _MAX_PROBLEM)
    put_scenario(book, scenario)
    return []


def _release_hosts(book: WalleTransaction, name: str, names: Collection[str], now: Moment) -> list[Notice]:
    scenario = read_scenario(book, name)
    for host in _to_release(scenario, names):
        assert scenario is not None
        release_host(book, scenario, host, now.ms)
    return []


def _go_on(book: WalleTransaction, name: str, world: World, now: Moment, hq: HqView | None) -> list[Notice]:
    scenario = read_scenario(book, name)
    if scenario is None or scenario.stage not in _OPEN:
        return []
    for one in scenario.host:
        if one.ready_before and one.outcome and not _is_watched(one, now.ms):
            del one.ready_before[:]  # the host was judged
    notices = _begin_wave(book, scenario, world, hq) if scenario.stage == SCENARIO_STAGE_WORKING else []
    put_scenario(book, scenario)
    return notices


def _begin_wave(book: WalleTransaction, scenario: Scenario, world: World, hq: HqView | None) -> list[Notice]:
    """Make the hosts of the next wave due; their operations follow, some in each transaction."""
    step = next_step(parts_of(scenario), limits_of(scenario))
    if step.begin and (obstacle := _obstacle(book, step.begin[:HOSTS_IN_STEP], world)):
        return stop_waves(scenario, obstacle)
    if step.stop:
        return stop_waves(scenario, step.stop)
    if step.is_done:
        return _finish(scenario)
    if step.begin and hq is not None and hq.problem:
        scenario.message = f"waits: {hq.problem}"
        return []
    begins = frozenset(step.begin)
    for wanted in scenario.host:
        if wanted.name in begins:
            wanted.due = True
    return []


def _begin_hosts(
    book: WalleTransaction, name: str, names: Collection[str], world: World, now: Moment, hq: HqView | None
) -> list[Notice]:
    scenario = read_scenario(book, name)
    if scenario is None or scenario.stage != SCENARIO_STAGE_WORKING:
        return []
    notices: list[Notice] = []
    # Hosts that HQ was not asked about stay due: the next look asks what is ready there before their work.
    asked = names if hq is None else hq.ready.keys() & names
    due = [wanted for wanted in scenario.host if wanted.due and wanted.name in asked]
    if hq is not None and hq.problem:
        scenario.message = f"waits: {hq.problem}"
    elif obstacle := _obstacle(book, [wanted.name for wanted in due], world):
        for wanted in scenario.host:
            wanted.due = False
        notices = stop_waves(scenario, obstacle)
    elif due:
        for wanted in due:
            wanted.due = False
            _begin(book, scenario, wanted, world, now, hq)
        scenario.message = f"{_count(scenario)}" + ("" if hq is not None else "; without HQ: judged by checks alone")
    put_scenario(book, scenario)
    return notices


def stop_waves(scenario: Scenario, why: str) -> list[Notice]:
    """Stop: nothing more begins until a person goes on, tries the failed hosts again, or ends it."""
    scenario.stage = SCENARIO_STAGE_PAUSED
    scenario.message = f"stopped: {why}; {_count(scenario)}"
    steps = " | ".join(f"walle scenarios {verb} {scenario.id}" for verb in ("continue", "retry", "cancel"))
    return [
        Notice(
            SEVERITY_ERROR,
            "",
            f"scenario {scenario.id} ({_ticket(scenario)}): {scenario.message}; {steps}",
            cause=f"scenario {scenario.id} stopped",
        )
    ]


def _finish(scenario: Scenario) -> list[Notice]:
    failed = [part for part in parts_of(scenario) if part.progress in (Progress.FAILED, Progress.ACCEPTED)]
    skipped = [part for part in parts_of(scenario) if part.progress is Progress.SKIPPED]
    text = f"failed: {list_problems(failed) or 'none'}" + (f"; not done: {list_problems(skipped)}" if skipped else "")
    # All hosts go back to automation, those that failed as well.
    scenario.stage, scenario.ending = SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_FINISHED
    scenario.message = f"done; {text}"
    if not failed:
        return []
    return [Notice(SEVERITY_ERROR, "", f"scenario {scenario.id} ({_ticket(scenario)}): {scenario.message}")]


def parts_of(scenario: Scenario) -> list[Part]:
    return [Part(one.name, progress_of(one), one.domain, one.problem) for one in scenario.host]


def progress_of(host: ScenarioHost) -> Progress:
    if host.accepted:
        return Progress.ACCEPTED
    if host.outcome == OUTCOME_UNSPECIFIED:
        if not host.operation_id:
            return Progress.WORKING if host.due else Progress.WAITING
        return Progress.RETURNING if host.ended_ms else Progress.WORKING
    if host.outcome == OUTCOME_DONE:
        return Progress.BACK
    return Progress.FAILED if host.outcome == OUTCOME_FAILED and host.operation_id else Progress.SKIPPED


def limits_of(scenario: Scenario) -> WaveLimits:
    most = Amount.parse(scenario.max_failures) if scenario.max_failures else None
    size = scenario.wave_size or str(scenario.at_once or 1)
    return WaveLimits(Amount.parse(size), bool(scenario.by_domain), most)


def hosts_to_ask_hq_about(scenario: Scenario, now_ms: int) -> tuple[list[str], list[str]]:
    """Hosts whose instances HQ is asked about: those of the next wave, and those that must come back."""
    watched = [one.name for one in scenario.host if _is_watched(one, now_ms)]
    in_work = any(one.operation_id and not one.outcome for one in scenario.host)
    coming = _due(scenario) or ([] if in_work else list(next_wave(parts_of(scenario), limits_of(scenario))))
    return coming, watched


def _look_at(
    book: WalleTransaction, scenario: Scenario, wanted: ScenarioHost, world: World, now: Moment, hq: HqView | None
) -> None:
    host = book.get(HOST, wanted.name)
    if not wanted.ended_ms:
        _note_end(book, wanted, host, scenario)
    if not wanted.ended_ms:
        return
    incident = world.incidents.incident_of(host) if host is not None else None
    evidence = evidence_of(scenario, wanted, host, incident, hq)
    progress, wanted.problem = judge(evidence, now.ms, world.settle_ms, RETURN_MS)
    outcomes = {Progress.BACK: OUTCOME_DONE, Progress.FAILED: OUTCOME_FAILED}
    wanted.outcome = outcomes.get(progress, OUTCOME_UNSPECIFIED)
    if host is not None and wanted.outcome:
        _end_operation(book, wanted, now)
        if wanted.outcome == OUTCOME_DONE:
            release_host(book, scenario, wanted.name, now.ms)


def _note_end(book: WalleTransaction, wanted: ScenarioHost, host: Host | None, scenario: Scenario) -> None:
    """Record that a host's work is done, or that its operation ended without it."""
    if host is not None and host.operation.id == wanted.operation_id:
        wanted.ended_ms = host.operation.since_ms if host.operation.stage == STAGE_VERIFYING else 0
        return
    ended = next((one for one in (host.history if host is not None else ()) if one.id == wanted.operation_id), None)
    if ended is None:
        wanted.outcome, wanted.problem = OUTCOME_FAILED, "its operation is not known any more"
        return
    wanted.outcome, wanted.problem = ended.outcome, ended.message
    if wanted.outcome != OUTCOME_FAILED:
        release_host(book, scenario, wanted.name, 0)


def _end_operation(book: WalleTransaction, wanted: ScenarioHost, now: Moment) -> None:
    """End the host's operation, whose approval was kept until now."""
    host = book.get(HOST, wanted.name)
    if host is None or host.operation.id != wanted.operation_id or host.operation.stage != STAGE_VERIFYING:
        return
    is_back = wanted.outcome == OUTCOME_DONE
    move(
        book,
        host,
        OperationEvent.COMPLETE if is_back else OperationEvent.GAVE_UP,
        now,
        "" if is_back else wanted.problem,
    )


def evidence_of(
    scenario: Scenario, wanted: ScenarioHost, host: Host | None, incident: Incident | None, hq: HqView | None
) -> PartEvidence:
    since = [check.since_ms for check in (host.check if host is not None else ())]
    problem = _problem(host, wanted.operation_id, incident) or (_hq_problem(wanted, hq) if hq is not None else "")
    needs_no_proof = scenario.verify == NO_PROOF or not kind_traits(scenario.kind).is_verified
    is_heard = needs_no_proof or (host is not None and host.heard_ms >= wanted.ended_ms)
    return PartEvidence(wanted.ended_ms, problem, max(since, default=0), is_heard)


def _hq_problem(wanted: ScenarioHost, hq: HqView) -> str:
    if hq.problem:
        return hq.problem
    before = set(wanted.ready_before)
    missing = sorted(one for one in hq.missing.get(wanted.name, ()) if _digest(one) in before)
    return f"{', '.join(missing[:3])} {'is' if len(missing) == 1 else 'are'} not ready in HQ" if missing else ""


def _digest(instance: str) -> str:
    """A short digest of an instance: another one of the same host has it, too, once in 160,000 times."""
    return b64encode(blake2b(instance.encode(), digest_size=3).digest()).decode()


def _problem(host: Host | None, operation_id: str, incident: Incident | None) -> str:
    if host is None:
        return "it was removed"
    failing = ", ".join(check.name for check in host.check if check.failing)
    if failing:
        return f"{failing} fails"
    if unknown := ", ".join(check.name for check in host.check if check.unknown):
        return f"{unknown} is unknown"
    if host.status != HOST_STATUS_READY:
        return HostStatus.Name(host.status).removeprefix("HOST_STATUS_").lower()
    if host.HasField("operation") and host.operation.id != operation_id:
        return f"{NAMES[host.operation.kind]} is under way"
    return str(incident) if incident is not None else ""


def _obstacle(book: WalleTransaction, names: Collection[str], world: World) -> str:
    """Why nothing may begin: much fails there already, or people switched off what would mend it; empty: it may."""
    hosts = [host for name in names if (host := book.get(HOST, name)) is not None]
    for host in hosts:
        if incident := world.incidents.incident_of(host):
            return str(incident)
    for project in sorted({host.project for host in hosts}):
        fuses = fuses_of(book, book.get(PROJECT, project) or Project(id=project), world)
        if why := switched_off(fuses, Automation.HEALING):
            return why
    return ""


def _begin(
    book: WalleTransaction, scenario: Scenario, wanted: ScenarioHost, world: World, now: Moment, hq: HqView | None
) -> None:
    traits = kind_traits(scenario.kind)
    kind = traits.operation
    order = StartOperationRequest(host=wanted.name, kind=kind, group_id="", reason=f"{scenario.id}: {NAMES[kind]}")
    try:
        world.check_reach(book, "start_operation", order, scenario.access)
        start_operation(book, order, scenario.by or "scenario", world, now)
    except Refused as error:
        wanted.problem, wanted.outcome = truncate_text(str(error), _MAX_PROBLEM), OUTCOME_CANCELLED
        return
    host = book.get(HOST, wanted.name)
    assert host is not None
    host.scenario = host.operation.scenario = scenario.id
    if traits.state_after:
        host.operation.after.state = traits.state_after
    wanted.operation_id = host.operation.id
    ready = hq.ready.get(wanted.name, ()) if hq is not None else ()
    wanted.ready_before.extend(sorted(map(_digest, ready))[:_MAX_READY])
    book.put(HOST, host.name, host)


def release_host(book: WalleTransaction, scenario: Scenario, name: str, now_ms: int) -> None:
    """Let automation repair the host again. `now_ms`: its checks count from then; 0: nothing was done to it."""
    host = book.get(HOST, name)
    if host is not None and host.scenario == scenario.id:
        host.scenario, host.released_ms = "", max(now_ms, host.released_ms)
        book.put(HOST, name, host)


def not_back(scenario: Scenario) -> str:
    """The hosts that did not come back, as one incident; empty: there are none, or a person has decided."""
    if scenario.stage not in (SCENARIO_STAGE_WORKING, SCENARIO_STAGE_PAUSED):
        return ""
    failed = [part for part in parts_of(scenario) if part.progress is Progress.FAILED]
    return f"scenario {scenario.id}: not back: {list_problems(failed)}" if failed else ""


def _count(scenario: Scenario) -> str:
    parts = parts_of(scenario)
    counted = {progress: sum(part.progress is progress for part in parts) for progress in Progress}
    in_work = counted[Progress.WORKING] + counted[Progress.RETURNING]
    return f"{counted[Progress.BACK]} of {len(parts)} back, {in_work} in work, {counted[Progress.WAITING]} not begun"


def _ticket(scenario: Scenario) -> str:
    return scenario.ticket or "no ticket"
