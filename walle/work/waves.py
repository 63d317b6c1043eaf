"""Mass reboots and firmware work: a wave of hosts begins once every host of the wave before is back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from control.errors import Refused
from walle.fuses.fuse import Moment
from walle.healing.incidents import Incident
from walle.tables import NAMES
from walle.work.book import HOST, SCENARIO, Notice, WalleTransaction, World
from walle.work.orders import start_operation
from wallepb.v1.host_pb2 import (
    HOST_STATUS_READY,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REBOOT,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_UNSPECIFIED,
    Host,
    HostStatus,
    Outcome,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_PROFILE,
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_WORKING,
    SEVERITY_ERROR,
    Scenario,
    ScenarioHost,
)
from wallepb.v1.service_pb2 import StartOperationRequest

RETURN_MS: Final = 900_000  # a host that is not back this long after its work has failed
_SHOWN: Final = 10


def step_wave(book: WalleTransaction, name: str, world: World, now: Moment) -> list[Notice]:
    """Look at the hosts that were in work; once all are back begin the next wave, or stop if one is not."""
    scenario = book.get(SCENARIO, name)
    if scenario is None or scenario.stage != SCENARIO_STAGE_WORKING:
        return []
    for wanted in scenario.host:
        if wanted.operation_id:
            _look_at(wanted, book.get(HOST, wanted.name), world, now.ms)
    notices: list[Notice] = []
    if all(one.outcome for one in scenario.host if one.operation_id):
        left = [one for one in scenario.host if not one.outcome]
        if left and not _failed_hosts(scenario):
            _begin_wave(book, scenario, left, world, now)
        else:
            notices = _end(scenario, left)
    book.put(SCENARIO, name, scenario)
    return notices


def state_after_work(
    host: Host | None, incident: Incident | None, ended_ms: int, settle_ms: int, now_ms: int
) -> tuple[Outcome, str]:
    """Whether a host is back, and what is wrong with it. Pure.

    It is back once nothing has been wrong for the settle time. After RETURN_MS it is judged as it is.
    """
    problem = _problem(host, incident)
    if now_ms - ended_ms >= RETURN_MS:
        return OUTCOME_FAILED if problem else OUTCOME_DONE, problem
    quiet_ms = now_ms - max([ended_ms, *(check.since_ms for check in (host.check if host is not None else ()))])
    return OUTCOME_DONE if not problem and quiet_ms >= settle_ms else OUTCOME_UNSPECIFIED, problem


def _problem(host: Host | None, incident: Incident | None) -> str:
    if host is None:
        return "it was removed"
    failing = ", ".join(check.name for check in host.check if check.failing)
    if failing:
        return f"{failing} fails"
    if unknown := ", ".join(check.name for check in host.check if check.unknown):
        return f"{unknown} is unknown"
    if host.status != HOST_STATUS_READY:
        return HostStatus.Name(host.status).removeprefix("HOST_STATUS_").lower()
    if host.HasField("operation"):
        return f"{NAMES[host.operation.kind]} is under way"
    return str(incident) if incident is not None else ""


def _look_at(wanted: ScenarioHost, host: Host | None, world: World, now_ms: int) -> None:
    """Until RETURN_MS a host that came back may fail again."""
    if not wanted.ended_ms and not wanted.outcome:
        _note_end(wanted, host, now_ms)
    may_change = not wanted.outcome or (wanted.outcome == OUTCOME_DONE and now_ms - wanted.ended_ms < RETURN_MS)
    if wanted.ended_ms and may_change:
        incident = world.incidents.incident_of(host) if host is not None else None
        state = state_after_work(host, incident, wanted.ended_ms, world.settle_ms, now_ms)
        wanted.outcome, wanted.problem = state


def _note_end(wanted: ScenarioHost, host: Host | None, now_ms: int) -> None:
    if host is not None and host.operation.id == wanted.operation_id:
        return
    ended = next((one for one in (host.history if host is not None else ()) if one.id == wanted.operation_id), None)
    if ended is None:
        wanted.outcome, wanted.problem = OUTCOME_FAILED, "its operation is not known any more"
    elif ended.outcome == OUTCOME_DONE:
        wanted.ended_ms = now_ms
    else:
        wanted.outcome, wanted.problem = ended.outcome, ended.message


def _begin_wave(
    book: WalleTransaction, scenario: Scenario, left: Sequence[ScenarioHost], world: World, now: Moment
) -> None:
    """Nothing is taken down where much fails already."""
    wave = [(one, book.get(HOST, one.name)) for one in left[: scenario.at_once]]
    incidents = [
        str(incident) for _, host in wave if host is not None and (incident := world.incidents.incident_of(host))
    ]
    scenario.message = f"waits: {incidents[0]}" if incidents else ""
    if not incidents:
        for wanted, _ in wave:
            _begin(book, scenario, wanted, world, now)


def _begin(book: WalleTransaction, scenario: Scenario, wanted: ScenarioHost, world: World, now: Moment) -> None:
    kind = OPERATION_KIND_PROFILE if scenario.kind == SCENARIO_KIND_PROFILE else OPERATION_KIND_REBOOT
    order = StartOperationRequest(host=wanted.name, kind=kind, group_id="", reason=f"{scenario.id}: {NAMES[kind]}")
    try:
        world.check_reach(book, "start_operation", order, scenario.access)
        start_operation(book, order, scenario.by or "scenario", world, now)
    except Refused as error:
        wanted.problem, wanted.outcome = str(error), OUTCOME_FAILED
        return
    host = book.get(HOST, wanted.name)
    assert host is not None
    wanted.operation_id = host.operation.id


def _failed_hosts(scenario: Scenario) -> list[ScenarioHost]:
    """Hosts that the work has harmed, or that it could not be done on; those that were not begun are not among them."""
    return [one for one in scenario.host if one.operation_id and one.outcome == OUTCOME_FAILED]


def _end(scenario: Scenario, left: Sequence[ScenarioHost]) -> list[Notice]:
    failed = _failed_hosts(scenario)
    skipped = [
        one for one in scenario.host if one.outcome not in (OUTCOME_UNSPECIFIED, OUTCOME_DONE) and one not in failed
    ]
    text = f"failed: {_format_hosts(failed) or 'none'}" + (f"; not done: {_format_hosts(skipped)}" if skipped else "")
    scenario.stage = SCENARIO_STAGE_CANCELLED if left else SCENARIO_STAGE_FINISHED
    scenario.message = f"stopped after a bad wave; {text}; not begun: {len(left)}" if left else f"done; {text}"
    if not failed:
        return []
    return [
        Notice(SEVERITY_ERROR, "", f"scenario {scenario.id} ({scenario.ticket or 'no ticket'}): {scenario.message}")
    ]


def _format_hosts(hosts: Iterable[ScenarioHost]) -> str:
    texts = [f"{one.name} ({one.problem})" for one in hosts]
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
