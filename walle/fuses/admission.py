"""One decision on one automatic action: both fuses allow it, or one of them goes out.

Whoever stores the result compares the versions of both fuses in the same transaction: two processes that decide on
the tenth and the eleventh at the same moment cannot both store.
"""

from __future__ import annotations

from dataclasses import dataclass

from walle.fuses.fuse import Automation, Moment, Use, charge, exceeded, switch_of, trip
from walle.fuses.limits import DEAD, GLOBAL_COUNTERS, MAX_DEAD_HOSTS, Limits, project_counter
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, OPERATION_KIND_DNS_FIX, HostState, OperationKind
from wallepb.v1.project_pb2 import Fuse


@dataclass(frozen=True, slots=True)
class Action:
    """An automatic action on a host.

    Attributes:
        kind: the operation; None: the host is declared dead.
        state: of the host: only assigned hosts use limits.
        continues: the next step of a firing that was counted already: only the global limit counts it.
    """

    host: str
    check: str
    kind: OperationKind | None
    state: HostState
    operation_id: str = ""
    continues: bool = False

    @property
    def automation(self) -> Automation:
        return Automation.DNS if self.kind == OPERATION_KIND_DNS_FIX else Automation.HEALING

    def in_project(self) -> Use:
        counter = DEAD if self.kind is None else project_counter(self.kind, self.check)
        return Use(counter, self.host, self.operation_id)

    def globally(self) -> Use | None:
        """None: there is no global limit for this kind."""
        counter = MAX_DEAD_HOSTS if self.kind is None else GLOBAL_COUNTERS.get(self.kind)
        return None if counter is None else Use(counter, self.host, self.operation_id)


@dataclass(frozen=True, slots=True)
class Fuses:
    """The fuse of a project with its limits, and the global one."""

    project: Fuse
    limits: Limits
    everywhere: Fuse
    global_limits: Limits


@dataclass(frozen=True, slots=True)
class Admission:
    """Attributes:
    is_allowed: the action may be asked for.
    project, everywhere: the fuses as they must be stored, also when it is not allowed.
    reason: why not.
    tripped: the fuse that went out just now: its id.
    """

    is_allowed: bool
    project: Fuse
    everywhere: Fuse
    reason: str = ""
    tripped: str = ""


def switched_off(fuses: Fuses, automation: Automation) -> str:
    """Why this automation may do nothing at all; empty: it may."""
    for fuse in (fuses.everywhere, fuses.project):
        switch = switch_of(fuse, automation)
        if switch.off:
            return f"{automation} is off in {fuse.id}: {switch.reason} ({switch.by})"
    return ""


def admit(fuses: Fuses, action: Action, now: Moment) -> Admission:
    """Whether an automatic action may be asked for, and both fuses afterwards.

    Neither is charged unless both allow it. Credits are the project's: they never lift a global limit.
    """
    off = switched_off(fuses, action.automation)
    if off:
        return Admission(False, fuses.project, fuses.everywhere, off)
    if action.state != HOST_STATE_ASSIGNED:
        return Admission(True, fuses.project, fuses.everywhere)
    mine, everyones = action.in_project(), action.globally()
    project = fuses.project if action.continues else charge(fuses.project, fuses.limits, mine, now)
    if project is None:
        pair = exceeded(fuses.project, fuses.limits, mine, now.ms)
        return _tripped_in_project(fuses, action, pair, now)
    everywhere = charge(fuses.everywhere, fuses.global_limits, everyones, now) if everyones else fuses.everywhere
    if everywhere is None:
        assert everyones is not None
        return _tripped_everywhere(
            fuses, action, exceeded(fuses.everywhere, fuses.global_limits, everyones, now.ms), now
        )
    return Admission(True, project, everywhere)


def _tripped_in_project(fuses: Fuses, action: Action, pair: str, now: Moment) -> Admission:
    project = trip(fuses.project, action.automation, pair, now)
    reason = f"{action.automation} goes off in {project.id}: limit {pair} would be exceeded by {action.host}"
    return Admission(False, project, fuses.everywhere, reason, project.id)


def _tripped_everywhere(fuses: Fuses, action: Action, pair: str, now: Moment) -> Admission:
    everywhere = trip(fuses.everywhere, action.automation, pair, now)
    reason = f"{action.automation} goes off everywhere: global limit {pair} would be exceeded by {action.host}"
    return Admission(False, fuses.project, everywhere, reason, everywhere.id)
