"""What would happen if an automation were switched on now: how many hosts wait, and which limit would trip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from walle.fuses.admission import Action, Fuses
from walle.fuses.fuse import Automation, hosts_in_window, switch_of
from walle.fuses.limits import Limits, format_limit, limit_of
from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED
from wallepb.v1.project_pb2 import Credit, Fuse


@dataclass(frozen=True, slots=True)
class Waiting:
    """The hosts that wait for one counter.

    Attributes:
        passes: how many of them the limit and the given credits let through now.
        credit_needed: credits that would let all of them pass; 0: the limit does.
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
            return f"{waits}: it holds"
        if self.is_global:
            return f"{waits}: it would trip at once; no credit lifts a global limit"
        return f"{waits}: it would trip at once; credits that would do: {self.credit_needed}"


def forecast(
    fuses: Fuses, actions: Iterable[Action], automation: Automation, credits_: Iterable[Credit], now_ms: int
) -> list[Waiting]:
    """Per counter, those that trip first, if this project's automation were switched on with these credits."""
    counted = [a for a in actions if a.automation is automation and a.state == HOST_STATE_ASSIGNED]
    given = {credit.counter: credit.left for credit in credits_}
    mine, everyones = _by_counter(counted)
    # Switching on from off begins at nothing; while it is on, what was used counts.
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


def _by_counter(actions: Iterable[Action]) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    mine: dict[str, set[str]] = {}
    everyones: dict[str, set[str]] = {}
    for action in actions:
        mine.setdefault(action.in_project().counter, set()).add(action.host)
        use = action.globally()
        if use is not None:
            everyones.setdefault(use.counter, set()).add(action.host)
    return mine, everyones


def _free(fuse: Fuse, limits: Limits, counter: str, hosts: set[str], now_ms: int) -> int:
    """How many of these hosts fit; those that are in a window already use nothing new."""
    return min(
        max(0, pair.count - len(hosts_in_window(fuse, counter, pair.period_s, now_ms) - hosts))
        for pair in limit_of(limits, counter).pair
    )


def _waiting(counter: str, hosts: set[str], free: int, limits: Limits, given: dict[str, int] | None = None) -> Waiting:
    passes = free + (given or {}).get(counter, 0)
    limit = format_limit(limit_of(limits, counter))
    return Waiting(counter, len(hosts), limit, passes, max(0, len(hosts) - free), is_global=given is None)
