"""Decides the next step for a host: the next step of its scheme for a failing check; after the last it is dead.

Also computed after a fuse has tripped: then it is shown but not done.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from walle.fuses.admission import AutomaticAction
from walle.fuses.fuse import Automation
from walle.fuses.limits import DEAD, project_counter
from walle.healing.attempts import too_many_repairs
from walle.healing.backoff import PAUSE_MS
from walle.healing.incidents import Incidents
from walle.healing.scheme import Steps, checks_in, scheme_of
from walle.tables import IN_USE, NAMES
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATUS_READY,
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_CANCELLED,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    Check,
    Host,
    HostState,
    HostStatus,
    LastRepair,
    Operation,
    OperationKind,
)
from wallepb.v1.project_pb2 import Project

# A host that goes, or is set up again, has no record to mend.
ENDS_DNS_FIX: Final = (OPERATION_KIND_REDEPLOY, OPERATION_KIND_DEACTIVATE)
REJECTED: Final = "a CMS rejected it"
AGAIN_WITHIN_MS: Final = 86_400_000  # a check that fires again within a day was not repaired by the last step


@dataclass(frozen=True, slots=True)
class HealingStep:
    """The next step for a host with a failing check.

    Attributes:
        kind: None: nothing is left to try, the host is dead.
        number: its place in the check's steps, from 0.
        why: the reason, for people.
    """

    check: str
    kind: OperationKind | None
    number: int
    why: str


def next_step(host: Host, check: str, steps: Sequence[OperationKind], now_ms: int) -> HealingStep:
    """The step after the last one that did not help; the first if the check did not fire for a day.

    DNS is never a reason to give a host up: its one step is tried again.
    """
    last = host.last_repair
    if last.check != check or now_ms - last.at_ms >= AGAIN_WITHIN_MS:
        return _step(check, steps, 0, f"{check} fails")
    if last.outcome == OUTCOME_REJECTED:
        said = next((one.message for one in host.history if one.outcome == OUTCOME_REJECTED), "")
        return HealingStep(check, None, last.step, f"{NAMES[last.kind]}: {said or REJECTED}")
    if last.outcome in (OUTCOME_FAILED, OUTCOME_DONE):
        return _step(check, steps, last.step + 1, f"{check} fails again after {NAMES[last.kind]}")
    return _step(check, steps, last.step, f"{check} still fails")


def _step(check: str, steps: Sequence[OperationKind], number: int, why: str) -> HealingStep:
    if steps and steps[-1] == OPERATION_KIND_DNS_FIX:
        number = min(number, len(steps) - 1)
    if number < len(steps):
        return HealingStep(check, steps[number], number, why)
    return HealingStep(check, None, number, f"{why}; nothing is left to try")


SETTLE_MS: Final = 300_000
MOST_AHEAD: Final = 200  # more are not looked for at once


@dataclass(frozen=True, slots=True)
class HealingDecision:
    """The next step for a host, and what blocks it apart from fuses.

    Attributes:
        step: None: there is nothing to do.
        blocked: why it is not done now; empty: only the fuses decide.
        is_refused: a dry run of this step was rejected: it begins once one is not.
    """

    host: str
    step: HealingStep | None = None
    blocked: str = ""
    is_refused: bool = False

    def __str__(self) -> str:
        if self.step is None:
            return f"{self.host}: nothing to do"
        what = "declare it dead" if self.step.kind is None else NAMES[self.step.kind]
        return f"{self.host}: {what}, since {self.step.why}" + (f" (not now: {self.blocked})" if self.blocked else "")


def decide(
    host: Host,
    project: Project,
    incidents: Incidents,
    now_ms: int,
    settle_ms: int = SETTLE_MS,
    lane: Automation = Automation.HEALING,
    scheme: Mapping[str, Steps] | None = None,
) -> HealingDecision:
    """The most important failing check that the project's scheme knows, and its next step.

    Args:
        settle_ms: how long a check must have been failing before it counts.
        lane: whose checks; for DNS the host's lanes are swapped (lanes.py).
        scheme: the part of the project's scheme that the lane handles; None: it is looked up.
    """
    if scheme is None:
        scheme = checks_in(scheme_of(project), lane)
    failing = {check.name: check for check in host.check if check.failing}
    first = next((name for name in scheme if name in failing), None)
    if first is None or host.HasField("operation"):
        return HealingDecision(host.name)
    step = next_step(host, first, scheme[first], now_ms)
    if lane is Automation.HEALING and (too_many := too_many_repairs(host, project, now_ms)):
        step = HealingStep(first, None, step.number, f"{first} fails; {too_many}")
    blocked = (
        _blocked_reason(host, failing[first], incidents, now_ms, settle_ms)
        or _pausing(host, step, failing[first], now_ms)
        or (why_no_dns_fix(host.dns_operation) if lane is Automation.DNS else "")
    )
    return HealingDecision(host.name, step, blocked, _is_refused(host.last_repair, step))


def hosts_ahead(
    host: Host, hosts: Iterable[Host], project: Project, incidents: Incidents, now_ms: int, settle_ms: int
) -> list[str]:
    """The hosts of a project that broke before this one, and wait for the same limit; the first ones first."""
    scheme = checks_in(scheme_of(project), Automation.HEALING)
    mine = decide(host, project, incidents, now_ms, settle_ms, scheme=scheme)
    if mine.step is None or mine.blocked or host.state != HOST_STATE_ASSIGNED:
        return []
    place, found = _place_in_line(host, mine.step), list[tuple[int, str]]()
    for other in hosts:
        if other.project != project.id or other.name == host.name or other.HasField("operation"):
            continue
        if not any(check.failing and check.since_ms <= place[0] for check in other.check):
            continue
        theirs = decide(other, project, incidents, now_ms, settle_ms, scheme=scheme)
        if theirs.step is None or theirs.blocked or theirs.is_refused or other.state != HOST_STATE_ASSIGNED:
            continue
        if _counter(theirs.step) == _counter(mine.step) and (ahead := _place_in_line(other, theirs.step)) < place:
            found.append(ahead)
    return [name for _, name in sorted(found)[:MOST_AHEAD]]


def _place_in_line(host: Host, step: HealingStep) -> tuple[int, str]:
    return next(check.since_ms for check in host.check if check.name == step.check), host.name


def _counter(step: HealingStep) -> str:
    return DEAD if step.kind is None else project_counter(step.kind, step.check)


def next_steps(host: Host, scheme: Mapping[str, Steps], now_ms: int) -> list[HealingStep]:
    """The next step of every failing check: after the first is repaired, the others still request theirs.

    `scheme`: the part of the project's scheme that a lane handles.
    """
    failing = {check.name for check in host.check if check.failing}
    return [next_step(host, name, steps, now_ms) for name, steps in scheme.items() if name in failing]


def action_of(decision: HealingDecision, host: Host, operation_id: str) -> AutomaticAction:
    """Return the action that the fuses are asked about."""
    assert decision.step is not None
    return AutomaticAction(host.name, decision.step.check, decision.step.kind, host.state, operation_id)


def _blocked_reason(host: Host, check: Check, incidents: Incidents, now_ms: int, settle_ms: int) -> str:
    incident = incidents.incident_of(host)
    if not host.listed:
        return "it is not in the inventory (`walle inventory import`)"
    if host.state not in IN_USE:
        return f"state {_lower(HostState.Name(host.state), 'HOST_STATE_')}"
    if host.status != HOST_STATUS_READY:
        return f"status {_lower(HostStatus.Name(host.status), 'HOST_STATUS_')}"
    if host.scenario:
        return f"scenario {host.scenario}"
    if incident is not None:
        return f"incident: {incident}"
    # The process that stored these times may have been ahead of us.
    failing_ms = max(0, now_ms - max(check.since_ms, incidents.ended_for(host), host.released_ms))
    return f"failing for {failing_ms // 1000} s, counts from {settle_ms // 1000} s" if failing_ms < settle_ms else ""


def why_no_dns_fix(repair: Operation) -> str:
    """Why no DNS fix begins beside what is being done in the other lane; empty: it may."""
    return f"{NAMES[repair.kind]} is under way" if repair.kind in ENDS_DNS_FIX else ""


def _is_refused(last: LastRepair, step: HealingStep) -> bool:
    """Only a rejected dry run leaves OUTCOME_CANCELLED as the last repair."""
    return last.outcome == OUTCOME_CANCELLED and (last.check, last.step) == (step.check, step.number)


def _pausing(host: Host, step: HealingStep, check: Check, now_ms: int) -> str:
    """Why a failed DNS fix waits; empty: it does not. It waits as long as the check had failed before, 1 min to 1 h."""
    last = host.last_repair
    if step.kind != OPERATION_KIND_DNS_FIX or last.outcome != OUTCOME_FAILED or last.check != check.name:
        return ""
    jitter = 0.75 + zlib.crc32(host.name.encode()) % 1000 / 4000
    pause_ms = int(jitter * min(max(last.at_ms - check.since_ms, PAUSE_MS[0]), PAUSE_MS[1]))
    left_ms = last.at_ms + pause_ms - now_ms
    return f"the last fix failed: tried again in {left_ms // 1000} s" if left_ms > 0 else ""


def _lower(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()
