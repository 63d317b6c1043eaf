"""Hosts that fail together: if most hosts of a rack or a switch fail, the hosts are not the cause.

A host fails by the checks of its project's scheme. All hosts of a place are counted, whoever owns them; a host's own
project says how many of them have to fail.

Such an incident is shown, and no host in it is touched. Hosts that still fail when it is over count as failing
from its end, so that those that are just starting are not rebooted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from walle.healing.scheme import scheme_of
from walle.tables import IN_USE
from wallepb.v1.host_pb2 import HOST_STATUS_DEAD, Host, Location
from wallepb.v1.project_pb2 import IncidentBounds, Project

MIN_HOSTS: Final = 3
BEGINS_PERCENT: Final = 50
MAX_MIN_HOSTS: Final = 1000


class BadBounds(ValueError):
    """An incident could not begin or not end; the message names the field."""


class Bounds(NamedTuple):
    """When hosts of a place fail together.

    Attributes:
        begins: more than this percentage fails.
        ends: at most this percentage fails.
    """

    min_hosts: int = MIN_HOSTS
    begins: int = BEGINS_PERCENT
    ends: int = BEGINS_PERCENT // 2

    def hold(self, failing: int, total: int, *, is_open: bool) -> bool:
        if is_open:
            return 100 * failing > self.ends * total
        return failing >= self.min_hosts and 100 * failing > self.begins * total


def bounds_of(project: Project) -> Bounds:
    given = project.incidents
    begins = given.begins_percent or BEGINS_PERCENT
    return Bounds(given.min_hosts or MIN_HOSTS, begins, given.ends_percent or begins // 2)


def check_bounds(given: IncidentBounds) -> None:
    """Raises BadBounds."""
    bounds = bounds_of(Project(incidents=given))
    if not 2 <= bounds.min_hosts <= MAX_MIN_HOSTS:
        raise BadBounds(f"incidents.min_hosts: {bounds.min_hosts}: write 2 to {MAX_MIN_HOSTS}")
    if bounds.begins > 99:
        raise BadBounds(f"incidents.begins_percent: {bounds.begins}: write 1 to 99: more than that have to fail")
    if bounds.ends > bounds.begins:
        raise BadBounds(f"incidents.ends_percent: {bounds.ends} is more than begins_percent, {bounds.begins}")


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


@dataclass(slots=True)
class Incidents:
    """The incidents now, and when the past ones ended. `observe` updates them; all of it is plain data.

    Attributes:
        watched_since_ms: since when this process looks; before that an incident may have ended unseen.
        project: a project by its id.
        open: by place and bounds: each is for the hosts of projects with these bounds.
        ended_ms: when the last one of a place ended, whatever the bounds: those of a project may have changed since.
        seen: the bounds that hosts of a place had at the last look.
    """

    watched_since_ms: int = 0
    project: Callable[[str], Project | None] = lambda name: None
    open: dict[tuple[FailureDomain, Bounds], Incident] = field(default_factory=dict)
    ended_ms: dict[FailureDomain, int] = field(default_factory=dict)
    seen: dict[FailureDomain, set[Bounds]] = field(default_factory=dict)

    def observe(self, hosts: Iterable[Host], now_ms: int, near: Host | None = None) -> list[Incident]:
        """Look at all hosts, or only at the places of one; returns the incidents that begin now."""
        if near is not None:
            hosts = (host for host in hosts if _is_near(host.location, near.location))
        began, counted = [], self._count(hosts)
        near_places = None if near is None else set(places_of(near.location))
        was_open = {place: one for (place, _), one in self.open.items()}
        # Open ones as well, since no host may be left in their place.
        for key in {*self.open, *((place, bounds) for place, found in counted.items() for bounds in found.bounds)}:
            place, bounds = key
            if near_places is not None and place not in near_places:
                continue
            known, found = self.open.get(key), counted.get(place, PlaceCount())
            if known is None and bounds not in self.seen.get(place, ()):
                known = was_open.get(place)  # a project's bounds were changed: the incident goes on unless these end it
            if bounds in found.bounds and bounds.hold(found.failing, found.hosts, is_open=known is not None):
                self.open[key] = Incident(place, known.since_ms if known else now_ms, found.failing, found.hosts)
                began += [] if known else [self.open[key]]
            elif known is not None:
                self.open.pop(key, None)
                self.ended_ms[place] = now_ms
        looked_at = counted if near_places is None else near_places & counted.keys()
        self.seen.update((place, counted[place].bounds) for place in looked_at)
        return began

    def incident_of(self, host: Host) -> Incident | None:
        """The incident that this host is part of."""
        if not self.open:
            return None
        return next((self.open[key] for key in self._keys(host) if key in self.open), None)

    def ended_for(self, host: Host) -> int:
        """When the last incident of its places ended, or could have ended."""
        ended = (self.ended_ms.get(place, 0) for place in places_of(host.location))
        return max(self.watched_since_ms, *ended, 0)

    def _keys(self, host: Host) -> list[tuple[FailureDomain, Bounds]]:
        bounds = bounds_of(self._project(host.project))
        return [(place, bounds) for place in places_of(host.location)]

    def _project(self, name: str) -> Project:
        return self.project(name) or Project(id=name)

    def _count(self, hosts: Iterable[Host]) -> dict[FailureDomain, PlaceCount]:
        """How many hosts of each place fail, of how many in use.

        Those given up or under manual work do not count, and those under planned work neither: they fail as planned.
        """
        counted: dict[FailureDomain, PlaceCount] = {}
        rules: dict[str, tuple[frozenset[str], Bounds]] = {}
        for host in hosts:
            is_planned = bool(host.scenario) or (host.operation.intent.executor and not host.operation.check)
            if is_planned or host.state not in IN_USE or host.status == HOST_STATUS_DEAD:
                continue
            if host.project not in rules:
                project = self._project(host.project)
                rules[host.project] = frozenset(scheme_of(project)), bounds_of(project)
            checks, bounds = rules[host.project]
            is_failing = any(check.failing and check.name in checks for check in host.check)  # however briefly
            for place in places_of(host.location):
                found = counted.setdefault(place, PlaceCount())
                found.hosts += 1
                found.failing += is_failing
                found.bounds.add(bounds)
        return counted


@dataclass(slots=True)
class PlaceCount:
    """Hosts of a place, and the bounds of their projects."""

    failing: int = 0
    hosts: int = 0
    bounds: set[Bounds] = field(default_factory=set)
