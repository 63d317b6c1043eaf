"""Hosts that fail together: if most hosts of a rack or a switch fail, the hosts are not the cause.

Such an incident is shown, and no host in it is touched. Hosts that still fail when it is over count as failing
from its end, so that those that are just starting are not rebooted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from wallepb.v1.host_pb2 import HOST_STATE_ASSIGNED, HOST_STATE_PROBATION, HOST_STATUS_DEAD, Host, Location

MIN_HOSTS: Final = 3
BEGINS_AT: Final = 0.5  # more than this share of the hosts fails
ENDS_AT: Final = 0.25  # at most this share fails


@dataclass(frozen=True, slots=True, order=True)
class FailureDomain:
    """A rack or a switch."""

    kind: str
    dc: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.dc}/{self.name}" if self.dc else f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Incident:
    """One place whose hosts fail together.

    Attributes:
        since_ms: when it was first seen, on the ledger's clock.
        failing, hosts: how many of how many, now.
    """

    place: FailureDomain
    since_ms: int
    failing: int
    hosts: int

    def __str__(self) -> str:
        return f"{self.place}: {self.failing} of {self.hosts} hosts fail together: no repair begins"


def places_of(location: Location) -> list[FailureDomain]:
    named = (("rack", location.rack), ("switch", location.switch))
    return [FailureDomain(kind, location.dc, name) for kind, name in named if name]


def _is_near(one: Location, other: Location) -> bool:
    return one.dc == other.dc and (one.rack == other.rack != "" or one.switch == other.switch != "")


def is_failing(host: Host) -> bool:
    """A check of it fails, however briefly."""
    return any(check.failing for check in host.check)


@dataclass(slots=True)
class Incidents:
    """The incidents now, and when the past ones ended. `observe` updates them; all of it is plain data.

    Attributes:
        watched_since_ms: since when this process looks; before that an incident may have ended unseen.
    """

    watched_since_ms: int = 0
    open: dict[FailureDomain, Incident] = field(default_factory=dict)
    ended_ms: dict[FailureDomain, int] = field(default_factory=dict)

    def observe(self, hosts: Iterable[Host], now_ms: int, near: Host | None = None) -> list[Incident]:
        """Look at all hosts, or only at the places of one; returns the incidents that begin now."""
        if near is not None:
            hosts = (host for host in hosts if _is_near(host.location, near.location))
        began, counted = [], count(hosts)
        # Nobody may be left in a place that has an incident.
        places = self.open.keys() | counted.keys() if near is None else places_of(near.location)
        for place in places:
            known, (failing, total) = self.open.get(place), counted.get(place, (0, 0))
            if _holds(failing, total, is_open=known is not None):
                self.open[place] = Incident(place, known.since_ms if known else now_ms, failing, total)
                began += [] if known else [self.open[place]]
            elif known is not None:
                del self.open[place]
                self.ended_ms[place] = now_ms
        return began

    def incident_of(self, host: Host) -> Incident | None:
        """The incident that this host is part of."""
        return next((self.open[place] for place in places_of(host.location) if place in self.open), None)

    def ended_for(self, host: Host) -> int:
        """When the last incident of its places ended, or could have ended."""
        ended = (self.ended_ms.get(place, 0) for place in places_of(host.location))
        return max(self.watched_since_ms, *ended, 0)


def count(hosts: Iterable[Host]) -> dict[FailureDomain, tuple[int, int]]:
    """How many hosts of each place fail, of how many in use.

    Those given up or under manual work do not count, and those under planned work neither: they fail as planned.
    """
    counted: dict[FailureDomain, tuple[int, int]] = {}
    for host in hosts:
        is_used = host.state in (HOST_STATE_ASSIGNED, HOST_STATE_PROBATION) and host.status != HOST_STATUS_DEAD
        is_planned = bool(host.scenario) or (host.operation.intent.executor and not host.operation.check)
        if is_planned or not is_used:
            continue
        for place in places_of(host.location):
            failing, total = counted.get(place, (0, 0))
            counted[place] = (failing + is_failing(host), total + 1)
    return counted


def _holds(failing: int, total: int, *, is_open: bool) -> bool:
    if is_open:
        return failing > total * ENDS_AT
    return total >= MIN_HOSTS and failing >= MIN_HOSTS and failing > total * BEGINS_AT
