"""Switch maintenance: whom to ask about which host, what to do next, and who stands in the way. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.timestamp_pb2 import Timestamp

from walle.approval.combination import combine, id_prefix
from walle.approval.port import Request, action_name, is_told
from walle.healing.operation import Do, Effect
from walle.scenarios.stages import Event, event_by_time
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATUS_READY,
    OPERATION_KIND_TEMPORARY_UNREACHABLE,
    VERDICT_OK,
    VERDICT_REJECTED,
    Host,
    Task,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_STAGE_ASKING,
    SCENARIO_STAGE_CONFIRMING,
    SCENARIO_STAGE_RETURNING,
    HandAgreement,
    Project,
    Scenario,
    ScenarioHost,
)

_KIND = OPERATION_KIND_TEMPORARY_UNREACHABLE


def asked(installation: str, scenario: Scenario, host: Host, project: Project, index: int) -> ScenarioHost:
    """Whom to ask about a host: those of its CMS's that know temporary-unreachable; others agree by hand.

    Hosts that are not assigned and ready need nobody's leave.
    """
    if host.state != HOST_STATE_ASSIGNED or host.status != HOST_STATUS_READY or host.HasField("operation"):
        return ScenarioHost(name=host.name, not_needed="not assigned and ready")
    if host.scenario:
        return ScenarioHost(name=host.name, not_needed=f"in scenario {host.scenario}")
    wanted = ScenarioHost(name=host.name)
    for number, cms in enumerate(project.cms):
        if is_told(cms.version, _KIND):
            wanted.task.append(Task(id=f"{id_prefix(installation)}{scenario.group_id}-{index}-{number}", cms=cms.url))
        else:
            wanted.by_hand.append(cms.url)
    return wanted


def is_held(host: ScenarioHost) -> bool:
    """The scenario keeps automation away from this host."""
    return not host.not_needed


def request_of(scenario: Scenario, host: ScenarioHost, task: Task) -> Request:
    """All tasks carry the same group id, so that a CMS decides on them as one."""
    return Request(
        id=task.id,
        hosts=(host.name,),
        action=action_name(_KIND),
        issuer=scenario.by or "somebody",
        is_manual=True,
        comment=f"{scenario.ticket}: {scenario.reason}".strip(": "),
        group_id=scenario.group_id,
        is_running=scenario.stage not in (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING),
    )


def tasks(scenario: Scenario) -> Iterator[tuple[ScenarioHost, Task]]:
    for host in scenario.host:
        for task in host.task:
            yield host, task


def effects(scenario: Scenario) -> list[tuple[ScenarioHost, Effect]]:
    """What to do now about each task. All are created before any is polled: the group is decided as one."""
    if scenario.stage == SCENARIO_STAGE_RETURNING:
        return [(host, Effect(Do.DELETE, task)) for host, task in tasks(scenario)]
    new = [(host, Effect(Do.CREATE, task)) for host, task in tasks(scenario) if not task.created]
    return new or [(host, Effect(_about(scenario, task), task)) for host, task in tasks(scenario)]


def _about(scenario: Scenario, task: Task) -> Do:
    wants = task.provisional and not task.confirmed
    return Do.CONFIRM if scenario.stage == SCENARIO_STAGE_CONFIRMING and wants else Do.POLL


def event_now(scenario: Scenario, now_ms: int) -> Event | None:
    """What has happened by now; CONFIRMED is the caller's, once HQ does not count silence any more."""
    if scenario.stage == SCENARIO_STAGE_RETURNING:
        return None if any(tasks(scenario)) else Event.RETURNED
    said = combine(task.verdict for _, task in tasks(scenario))
    if said == VERDICT_REJECTED and scenario.stage in (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING):
        return Event.REJECTED
    late = event_by_time(scenario, now_ms)
    if late is not None:
        return late
    if scenario.stage == SCENARIO_STAGE_ASKING and said == VERDICT_OK and not by_hand(scenario.host):
        return Event.ALL_OK
    return Event.WITHDRAWN if scenario.stage == SCENARIO_STAGE_CONFIRMING and said != VERDICT_OK else None


def is_confirmed(scenario: Scenario) -> bool:
    every = [task for _, task in tasks(scenario)]
    is_ok = all(task.verdict == VERDICT_OK and (task.confirmed or not task.provisional) for task in every)
    return scenario.stage == SCENARIO_STAGE_CONFIRMING and is_ok


def blocking(scenario: Scenario) -> list[str]:
    """Who has not agreed, in their own words; then what people have to agree on."""
    waited = (pair for pair in tasks(scenario) if pair[1].verdict != VERDICT_OK)
    asked_ = [f"{host.name}: {task.cms}: {task.message or 'no answer yet'}" for host, task in waited]
    return [*asked_, *(f"by hand: {one}" for one in by_hand(scenario.host))]


def with_task(scenario: Scenario, old: Task, new: Task | None) -> Scenario:
    """A copy with one task replaced; None: it is deleted."""
    changed = Scenario()
    changed.CopyFrom(scenario)
    for host in changed.host:
        kept = [new if task.id == old.id else task for task in host.task]
        del host.task[:]
        host.task.extend(task for task in kept if task is not None)
    return changed


def by_hand(hosts: Iterable[ScenarioHost]) -> list[str]:
    """What is left to agree on by hand."""
    return [f"{host.name}: {', '.join(host.by_hand)}" for host in hosts if host.by_hand]


def agree_by_hand(host: ScenarioHost, by: str, reason: str, wall: Timestamp) -> None:
    """The owners agree in place of the CMS's that cannot be asked."""
    host.agreed.extend(HandAgreement(cms=cms, by=by, reason=reason, time=wall) for cms in host.by_hand)
    del host.by_hand[:]
