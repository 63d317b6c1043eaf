"""Domain limits: how many racks, switches or hosts may be under work at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cms.ledger.tasks import Task

PLURALS: Final = {"host": "hosts", "rack": "racks", "switch": "switches", "dc": "data centres"}
KINDS: Final = tuple(PLURALS)


@dataclass(frozen=True, slots=True)
class Site:
    """Where a host stands; empty: not known."""

    dc: str = ""
    rack: str = ""
    switch: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True)
class DomainLimit:
    """At most `most` domains of a kind under work at once, among the hosts of a set.

    Attributes:
        within: the site values that a host needs to be in the set, e.g. {"dc": "ams"}; empty: all hosts.
    """

    name: str
    kind: str
    most: int
    within: Mapping[str, str] = field(default_factory=dict)


_NOWHERE: Final = Site()


class DomainLimits:
    """All domain limits, and the domains that are under work. Broken hosts count like others."""

    def __init__(self, limits: Iterable[DomainLimit] = (), sites: Mapping[str, Site] | None = None) -> None:
        self.by_name = {limit.name: limit for limit in limits}
        self.sites = dict(sites or {})
        self.busy: dict[str, dict[str, set[str]]] = {name: {} for name in self.by_name}

    def domains(self, limit: DomainLimit, hosts: Iterable[str]) -> set[str]:
        """The domains of hosts that a limit counts. A host with an unknown site is a domain of its own."""
        found = set()
        for host in hosts:
            site = self.sites.get(host, _NOWHERE)
            if all(getattr(site, name) == value for name, value in limit.within.items()):
                found.add(host if limit.kind == "host" else getattr(site, limit.kind) or f"host {host}")
        return found

    def hold(self, task: Task) -> None:
        """Under every limit, add the task to the holders of its hosts' domains."""
        for name, limit in self.by_name.items():
            for domain in self.domains(limit, task.hosts):
                self.busy[name].setdefault(domain, set()).add(task.id)

    def release(self, task: Task) -> None:
        """Take the task out of them again."""
        for name, limit in self.by_name.items():
            for domain in self.domains(limit, task.hosts):
                holders = self.busy[name].get(domain, set())
                holders.discard(task.id)
                if not holders:
                    self.busy[name].pop(domain, None)
