"""Switch maintenance: its stages as a table, whom to ask about each host, what to do next, and who blocks. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from walle.approval.protocol import Request, action_name, is_told
from walle.approval.tasks import combine, id_prefix
from walle.healing.operation import LEFT_TO_COLLECTOR_MS, Do, Effect
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
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_CONFIRMING,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_PAUSED,
    SCENARIO_STAGE_REFUSED,
    SCENARIO_STAGE_RETURNING,
    SCENARIO_STAGE_UNSPECIFIED,
    SCENARIO_STAGE_WORKING,
    HandAgreement,
    Project,
    Scenario,
    ScenarioHost,
    ScenarioStage,
)

ASK_MS: Final = 30 * 60_000  # all must have agreed within it
CLOSED_MS: Final = 24 * 3_600_000  # it waits for a calendar to open for at most this long
WORK_MS: Final = 60 * 60_000  # the hour within which hosts are out of reach


class ScenarioEvent(StrEnum):
    """The events of planned work."""

    ALL_OK = "every CMS agreed"
    REJECTED = "a CMS rejected it"
    WITHDRAWN = "a CMS took its ok back"
    CONFIRMED = "approved: the work may begin; no location that Wall-E follows expires anything there"
    TOO_LATE = "not everybody agreed within 30 min: the work may not begin"
    DONE = "the work is done"
    HOUR_OVER = "the hour allowed for the work is over"
    CANCEL = "cancelled"
    PAUSED = "paused"
    CONTINUED = "continued"
    RETRIED = "retried"
    RETURNED = "the hosts are back in automation"


Row = tuple[ScenarioStage, ScenarioStage]
_NOT_YET: Final = SCENARIO_STAGE_UNSPECIFIED
_REFUSED: Final[Row] = (SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_REFUSED)
_CANCELLED: Final[Row] = (SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_CANCELLED)
_FINISHED: Final[Row] = (SCENARIO_STAGE_RETURNING, SCENARIO_STAGE_FINISHED)

TABLE: Final[Mapping[tuple[ScenarioStage, ScenarioEvent], Row]] = {
    (SCENARIO_STAGE_ASKING, ScenarioEvent.ALL_OK): (SCENARIO_STAGE_CONFIRMING, _NOT_YET),
    (SCENARIO_STAGE_ASKING, ScenarioEvent.REJECTED): _REFUSED,
    (SCENARIO_STAGE_ASKING, ScenarioEvent.TOO_LATE): _REFUSED,
    (SCENARIO_STAGE_ASKING, ScenarioEvent.CANCEL): _CANCELLED,
    (SCENARIO_STAGE_CONFIRMING, ScenarioEvent.CONFIRMED): (SCENARIO_STAGE_WORKING, _NOT_YET),
    (SCENARIO_STAGE_CONFIRMING, ScenarioEvent.WITHDRAWN): (SCENARIO_STAGE_ASKING, _NOT_YET),
    (SCENARIO_STAGE_CONFIRMING, ScenarioEvent.REJECTED): _REFUSED,
    (SCENARIO_STAGE_CONFIRMING, ScenarioEvent.TOO_LATE): _REFUSED,
    (SCENARIO_STAGE_CONFIRMING, ScenarioEvent.CANCEL): _CANCELLED,
    (SCENARIO_STAGE_WORKING, ScenarioEvent.DONE): _FINISHED,
    (SCENARIO_STAGE_WORKING, ScenarioEvent.HOUR_OVER): _FINISHED,
    (SCENARIO_STAGE_WORKING, ScenarioEvent.CANCEL): _CANCELLED,
    # Of work in waves only.
    (SCENARIO_STAGE_WORKING, ScenarioEvent.PAUSED): (SCENARIO_STAGE_PAUSED, _NOT_YET),
    (SCENARIO_STAGE_PAUSED, ScenarioEvent.CONTINUED): (SCENARIO_STAGE_WORKING, _NOT_YET),
    (SCENARIO_STAGE_PAUSED, ScenarioEvent.RETRIED): (SCENARIO_STAGE_WORKING, _NOT_YET),
    (SCENARIO_STAGE_PAUSED, ScenarioEvent.CANCEL): _CANCELLED,
    # RETURNING ends in the stage that `ending` names.
    (SCENARIO_STAGE_RETURNING, ScenarioEvent.RETURNED): (_NOT_YET, _NOT_YET),
}
OVER: Final = frozenset({SCENARIO_STAGE_FINISHED, SCENARIO_STAGE_REFUSED, SCENARIO_STAGE_CANCELLED})
_ASKING: Final = (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING)


def is_possible(scenario: Scenario, event: ScenarioEvent) -> bool:
    return (scenario.stage, event) in TABLE


def advance(scenario: Scenario, event: ScenarioEvent, now_ms: int, message: str = "") -> Scenario:
    """A copy in the next stage. Raises KeyError: the table does not have it.

    Asking and confirming share their 30 minutes: a withdrawn ok does not restart that time.
    """
    stage, ending = TABLE[scenario.stage, event]
    moved = Scenario()
    moved.CopyFrom(scenario)
    moved.stage = stage or scenario.ending
    moved.ending = ending or scenario.ending
    if not (scenario.stage in _ASKING and moved.stage in _ASKING):
        moved.since_ms = now_ms
    if event is not ScenarioEvent.RETURNED:  # keep showing how it ended
        moved.message = message or event.value
    return moved


def event_by_time(scenario: Scenario, now_ms: int) -> ScenarioEvent | None:
    if scenario.stage in _ASKING and now_ms - _asks_since_ms(scenario, now_ms) >= ASK_MS:
        return ScenarioEvent.TOO_LATE
    if scenario.stage == SCENARIO_STAGE_WORKING and now_ms - scenario.since_ms >= WORK_MS:
        return ScenarioEvent.HOUR_OVER
    return None


def _asks_since_ms(scenario: Scenario, now_ms: int) -> int:
    """When the 30 minutes begin: when the calendars of the CMSs open, if that is within a day.

    No ok is kept until another CMS's window opens: the first one would hold its hosts for hours. And the end of a long
    freeze is not waited for, as nothing heals the hosts meanwhile.
    """
    opens_ms = max((task.opens_ms for _, task in tasks(scenario)), default=0)
    is_closed = now_ms < opens_ms
    is_held = any(task.verdict == VERDICT_OK for _, task in tasks(scenario))
    if opens_ms > scenario.since_ms + CLOSED_MS or (is_closed and is_held):
        return scenario.since_ms
    return max(scenario.since_ms, opens_ms)


_KIND = OPERATION_KIND_TEMPORARY_UNREACHABLE
_ELSEWHERE = "in scenario "


def scenario_host(installation: str, scenario: Scenario, host: Host, project: Project, index: int) -> ScenarioHost:
    """Whom to ask about a host: those of its CMSs that know temporary-unreachable; for others people agree by hand.

    Hosts that are not assigned and ready need nobody's leave.
    """
    if host.scenario:
        return ScenarioHost(name=host.name, not_needed=f"{_ELSEWHERE}{host.scenario}")
    if host.state != HOST_STATE_ASSIGNED or host.status != HOST_STATUS_READY or host.HasField("operation"):
        return ScenarioHost(name=host.name, not_needed="not assigned and ready")
    wanted = ScenarioHost(name=host.name)
    for number, cms in enumerate(project.cms):
        if is_told(cms.version, _KIND):
            wanted.task.append(Task(id=f"{id_prefix(installation)}{scenario.group_id}-{index}-{number}", cms=cms.url))
        else:
            wanted.by_hand.append(cms.url)
    return wanted


def is_held(host: ScenarioHost) -> bool:
    """Whether the scenario keeps automation away from this host, asked about or not: its switch goes dark anyway."""
    return not host.not_needed.startswith(_ELSEWHERE)


def request_of(scenario: Scenario, host: ScenarioHost, task: Task) -> Request:
    """The request to a CMS. All tasks carry the same group id, so that a CMS decides on them as one."""
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
    """Return the effects that are due, by task. All are created before any is polled: the group is decided as one."""
    if scenario.stage == SCENARIO_STAGE_RETURNING:
        return [(host, Effect(Do.DELETE, task)) for host, task in tasks(scenario)]
    new = [(host, Effect(Do.CREATE, task)) for host, task in tasks(scenario) if not task.created]
    return new or [(host, Effect(_about(scenario, task), task)) for host, task in tasks(scenario)]


def _about(scenario: Scenario, task: Task) -> Do:
    wants = task.provisional and not task.confirmed
    return Do.CONFIRM if scenario.stage == SCENARIO_STAGE_CONFIRMING and wants else Do.POLL


def event_now(scenario: Scenario, now_ms: int) -> ScenarioEvent | None:
    """Return the event that has happened by now; CONFIRMED comes from the caller, once HQ counts silence no longer."""
    if scenario.stage == SCENARIO_STAGE_RETURNING:
        is_left = any(tasks(scenario)) and now_ms - scenario.since_ms < LEFT_TO_COLLECTOR_MS
        return None if is_left else ScenarioEvent.RETURNED
    said = combine(task.verdict for _, task in tasks(scenario))
    if said == VERDICT_REJECTED and scenario.stage in (SCENARIO_STAGE_ASKING, SCENARIO_STAGE_CONFIRMING):
        return ScenarioEvent.REJECTED
    late = event_by_time(scenario, now_ms)
    if late is not None:
        return late
    if (
        scenario.stage == SCENARIO_STAGE_ASKING
        and said == VERDICT_OK
        and not any(host.by_hand for host in scenario.host)
    ):
        return ScenarioEvent.ALL_OK
    return ScenarioEvent.WITHDRAWN if scenario.stage == SCENARIO_STAGE_CONFIRMING and said != VERDICT_OK else None


def is_confirmed(scenario: Scenario) -> bool:
    every = [task for _, task in tasks(scenario)]
    is_ok = all(task.verdict == VERDICT_OK and (task.confirmed or not task.provisional) for task in every)
    return scenario.stage == SCENARIO_STAGE_CONFIRMING and is_ok


def blocking(scenario: Scenario, projects: Mapping[str, str] | None = None) -> list[str]:
    """Who has not agreed, with their messages; then what people have to agree to.

    Args:
        projects: of hosts, by name; None: nobody can agree any more.
    """
    waited = (pair for pair in tasks(scenario) if pair[1].verdict != VERDICT_OK)
    asked_ = [f"{host.name}: {task.cms}: {task.message or 'no answer yet'}" for host, task in waited]
    return [*asked_, *(_unasked_reason(scenario, host, projects) for host in scenario.host if host.by_hand)]


def _unasked_reason(scenario: Scenario, host: ScenarioHost, projects: Mapping[str, str] | None) -> str:
    cannot = f"{host.name}: CMS {', '.join(f'`{cms}`' for cms in host.by_hand)} cannot be asked"
    if projects is None:
        return f"{cannot}, and no owner agreed"
    project = projects.get(host.name, "PROJECT")
    return (
        f"{cannot}; an owner of {project} has to run `walle scenarios agree {scenario.id} --project {project} -m WHY`"
    )


def with_task(scenario: Scenario, old: Task, new: Task | None) -> Scenario:
    """A copy with one task replaced; None: it is deleted."""
    changed = Scenario()
    changed.CopyFrom(scenario)
    for host in changed.host:
        kept = [new if task.id == old.id else task for task in host.task]
        del host.task[:]
        host.task.extend(task for task in kept if task is not None)
    return changed


def agree_by_hand(host: ScenarioHost, by: str, reason: str, wall: Timestamp) -> None:
    """The owners agree in place of the CMSs that cannot be asked."""
    host.agreed.extend(HandAgreement(cms=cms, by=by, reason=reason, time=wall) for cms in host.by_hand)
    del host.by_hand[:]
