"""What should be done about a host now. Worked out also while a fuse is out: then it is shown and not done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from walle.fuses.admission import Action
from walle.healing.incidents import Incidents
from walle.healing.scheme import Step, next_step, scheme_of
from walle.kinds import NAMES
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_PROBATION,
    HOST_STATUS_READY,
    Check,
    Host,
    HostState,
    HostStatus,
)
from wallepb.v1.project_pb2 import Project

SETTLE_MS: Final = 300_000
_HEALED_STATES: Final = (HOST_STATE_ASSIGNED, HOST_STATE_PROBATION)


@dataclass(frozen=True, slots=True)
class Decision:
    """What would be done about a host, and what is in the way apart from fuses.

    Attributes:
        step: None: there is nothing to do.
        blocked: why it is not done now; empty: only the fuses decide.
    """

    host: str
    step: Step | None = None
    blocked: str = ""

    def __str__(self) -> str:
        if self.step is None:
            return f"{self.host}: nothing to do"
        what = "declare it dead" if self.step.kind is None else NAMES[self.step.kind]
        return f"{self.host}: {what}, since {self.step.why}" + (f" (not now: {self.blocked})" if self.blocked else "")


def decide(host: Host, project: Project, incidents: Incidents, now_ms: int, settle_ms: int = SETTLE_MS) -> Decision:
    """The most important failing check that the project's scheme knows, and its next step.

    `settle_ms`: how long a check must have been failing before it counts.
    """
    scheme = scheme_of(project)
    failing = {check.name: check for check in host.check if check.failing}
    first = next((name for name in scheme if name in failing), None)
    if first is None or host.HasField("operation"):
        return Decision(host.name)
    step = next_step(host, first, scheme[first], now_ms)
    return Decision(host.name, step, _blocked(host, failing[first], incidents, now_ms, settle_ms))


def awaited(host: Host, project: Project, now_ms: int) -> list[Step]:
    """The next step of every failing check: when the first is repaired, the others still ask for theirs."""
    failing = {check.name for check in host.check if check.failing}
    return [next_step(host, name, steps, now_ms) for name, steps in scheme_of(project).items() if name in failing]


def action_of(decision: Decision, host: Host, operation_id: str) -> Action:
    """What the fuses are asked about."""
    assert decision.step is not None
    return Action(host.name, decision.step.check, decision.step.kind, host.state, operation_id)


def _blocked(host: Host, check: Check, incidents: Incidents, now_ms: int, settle_ms: int) -> str:
    incident = incidents.of(host)
    if host.state not in _HEALED_STATES:
        return f"state {_lower(HostState.Name(host.state), 'HOST_STATE_')}"
    if host.status != HOST_STATUS_READY:
        return f"status {_lower(HostStatus.Name(host.status), 'HOST_STATUS_')}"
    if host.scenario:
        return f"scenario {host.scenario}"
    if incident is not None:
        return f"incident: {incident}"
    failing_ms = now_ms - max(check.since_ms, incidents.ended_for(host))
    return f"failing for {failing_ms // 1000} s, counts from {settle_ms // 1000} s" if failing_ms < settle_ms else ""


def _lower(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()
