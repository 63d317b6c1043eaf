"""One decision on one automatic action, by both fuses; and a forecast of their decisions.

The transaction that stores the result compares the versions of both fuses: two processes that decide on
the tenth and the eleventh at the same moment cannot both store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from walle.fuses.fuse import (
    ALL_PROJECTS,
    GLOBAL,
    Automation,
    LimitUse,
    Moment,
    charge,
    exceeded_limit,
    hosts_in_window,
    switch_of,
    trip,
)
from walle.fuses.limits import DEAD, GLOBAL_COUNTERS, MAX_DEAD_HOSTS, Limits, format_limit, limit_of, project_counter
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, OPERATION_KIND_DNS_FIX, HostState, OperationKind
from wallepb.v1.project_pb2 import Credit, Fuse


@dataclass(frozen=True, slots=True)
class AutomaticAction:
    """An automatic action on a host.

    Attributes:
        kind: the operation; None: the host is declared dead.
        state: of the host: only assigned hosts use limits.
        continues: the next step for a failure that was already counted: only the global limit counts it.
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

    def in_project(self) -> LimitUse:
        counter = DEAD if self.kind is None else project_counter(self.kind, self.check)
        return LimitUse(counter, self.host, self.operation_id)

    def globally(self) -> LimitUse | None:
        """The use of a global limit; None: there is none for this kind."""
        counter = MAX_DEAD_HOSTS if self.kind is None else GLOBAL_COUNTERS.get(self.kind)
        return None if counter is None else LimitUse(counter, self.host, self.operation_id)


@dataclass(frozen=True, slots=True)
class Fuses:
    """The fuse of a project with its limits, and the global one."""

    project: Fuse
    limits: Limits
    everywhere: Fuse
    global_limits: Limits


@dataclass(frozen=True, slots=True)
class FuseAdmission:
    """The decision on an action.

    Attributes:
        is_allowed: the action may be asked for.
        project, everywhere: the fuses to be stored, even if it is not allowed.
        reason: why not.
        tripped: the id of the fuse that just tripped.
    """

    is_allowed: bool
    project: Fuse
    everywhere: Fuse
    reason: str = ""
    tripped: str = ""


def stops_approved(fuses: Fuses, automation: Automation, state: HostState) -> bool:
    """Whether an operation that was allowed before may not begin any more.

    A person who switched off stops all of them. A limit that tripped stops only what came after it: what the limit and
    its credits had covered begins. Hosts that use no limits were covered by none.
    """
    switches = [switch_of(fuse, automation) for fuse in (fuses.everywhere, fuses.project)]
    return any(one.off and not (one.tripped_by and state == HOST_STATE_ASSIGNED) for one in switches)


def switched_off(fuses: Fuses, automation: Automation, *, sees_all: bool = True) -> str:
    """Why this automation is off; empty: it is on. `sees_all` False: not by whose hosts the global fuse tripped."""
    for fuse in (fuses.everywhere, fuses.project):
        switch = switch_of(fuse, automation)
        if switch.off:
            if fuse.id == GLOBAL and not sees_all:
                return f"{automation} is off for {ALL_PROJECTS}"
            where = f"for {ALL_PROJECTS}" if fuse.id == GLOBAL else f"in {fuse.id}"
            return f"{automation} is off {where}: {switch.reason} ({switch.by})"
    return ""


def admit(fuses: Fuses, action: AutomaticAction, now: Moment) -> FuseAdmission:
    """Whether an automatic action may be asked for, and both fuses afterwards.

    Neither is charged unless both allow it. Credits are the project's: they never lift a global limit.
    """
    off = switched_off(fuses, action.automation)
    if off:
        return FuseAdmission(False, fuses.project, fuses.everywhere, off)
    if action.state != HOST_STATE_ASSIGNED:
        return FuseAdmission(True, fuses.project, fuses.everywhere)
    mine, everyones = action.in_project(), action.globally()
    project = fuses.project if action.continues else charge(fuses.project, fuses.limits, mine, now)
    if project is None:
        pair = exceeded_limit(fuses.project, fuses.limits, mine, now.ms)
        return _tripped_in_project(fuses, action, pair, now)
    everywhere = charge(fuses.everywhere, fuses.global_limits, everyones, now) if everyones else fuses.everywhere
    if everywhere is None:
        assert everyones is not None
        return _tripped_everywhere(
            fuses, action, exceeded_limit(fuses.everywhere, fuses.global_limits, everyones, now.ms), now
        )
    return FuseAdmission(True, project, everywhere)


def _tripped_in_project(fuses: Fuses, action: AutomaticAction, pair: str, now: Moment) -> FuseAdmission:
    project = trip(fuses.project, action.automation, pair, now, action.host)
    reason = f"{action.automation} is switched off in {project.id}: limit {pair} would be exceeded by {action.host}"
    return FuseAdmission(False, project, fuses.everywhere, reason, project.id)


def _tripped_everywhere(fuses: Fuses, action: AutomaticAction, pair: str, now: Moment) -> FuseAdmission:
    everywhere = trip(fuses.everywhere, action.automation, pair, now, action.host)
    reason = f"{action.automation} is switched off everywhere: global limit {pair} would be exceeded by {action.host}"
    return FuseAdmission(False, fuses.project, everywhere, reason, everywhere.id)


@dataclass(frozen=True, slots=True)
class WaitingHosts:
    """The hosts that wait for one counter.

    Attributes:
        passes: how many of them the limit and the given credits admit now.
        credit_needed: credits needed to admit all of them; 0: the limit suffices.
    """

    counter: str
    hosts: int
    limit: str
    passes: int
    credit_needed: int
    is_global: bool = False

    @property
    def trips(self) -> bool:
        return self.hosts > self.passes

    @property
    def wants_credit(self) -> bool:
        return bool(self.credit_needed) and not self.is_global

    def __str__(self) -> str:
        scope = "global " if self.is_global else ""
        who = "1 host waits" if self.hosts == 1 else f"{self.hosts} hosts wait"
        waits = f"{self.counter}: {who}, the {scope}limit is {self.limit}"
        if not self.trips:
            return f"{waits}: the fuse would not trip"
        if self.is_global:
            return f"{waits}: the fuse would trip at once; credits do not raise a global limit"
        return f"{waits}: the fuse would trip at once; credits needed: {self.credit_needed}"


def forecast(
    fuses: Fuses, actions: Iterable[AutomaticAction], automation: Automation, credits_: Iterable[Credit], now_ms: int
) -> list[WaitingHosts]:
    """Waiting hosts by counter, those that trip first on top, if automation were switched on with these credits."""
    counted = [a for a in actions if a.automation is automation and a.state == HOST_STATE_ASSIGNED]
    given = {credit.counter: credit.left for credit in credits_}
    mine, everyones = _by_counter(counted)
    # Switching on resets the counters; if it is already on, previous use counts.
    project = Fuse() if switch_of(fuses.project, automation).off else fuses.project
    everywhere, limits = fuses.everywhere, fuses.global_limits
    waiting = [
        _waiting(c, hosts, _free(project, fuses.limits, c, hosts, now_ms), fuses.limits, given)
        for c, hosts in mine.items()
    ]
    waiting += [
        _waiting(c, hosts, _free(everywhere, limits, c, hosts, now_ms), limits) for c, hosts in everyones.items()
    ]
    return sorted(waiting, key=lambda w: (not w.trips, w.is_global, w.counter))


def _by_counter(actions: Iterable[AutomaticAction]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    mine: dict[str, set[str]] = {}
    everyones: dict[str, set[str]] = {}
    for action in actions:
        mine.setdefault(action.in_project().counter, set()).add(action.host)
        use = action.globally()
        if use is not None:
            everyones.setdefault(use.counter, set()).add(action.host)
    return mine, everyones


def _free(fuse: Fuse, limits: Limits, counter: str, hosts: set[str], now_ms: int) -> int:
    """How many of these hosts fit; those already in a window use nothing more."""
    return min(
        max(0, pair.count - len(hosts_in_window(fuse, counter, pair.period_s, now_ms) - hosts))
        for pair in limit_of(limits, counter).pair
    )


def _waiting(
    counter: str, hosts: set[str], free: int, limits: Limits, given: dict[str, int] | None = None
) -> WaitingHosts:
    passes = free + (given or {}).get(counter, 0)
    limit = format_limit(limit_of(limits, counter))
    return WaitingHosts(counter, len(hosts), limit, passes, max(0, len(hosts) - free), is_global=given is None)
