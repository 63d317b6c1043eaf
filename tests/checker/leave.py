"""FLOOR: no floor is broken by leave. Judged by what clients did with their oks, not by what the CMS says of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.checker.violation import Promise, Violation

FLOOR = Promise(
    "FLOOR",
    "work that was begun with a final ok never leaves a service with less than its floor",
    "cms/ledger/decide.py, cms/desk.py, and who acted at that time",
)


@dataclass(frozen=True, slots=True)
class Work:
    """What a client did with a final ok. Seconds; `began` after the ok came, `ended` before it was given back."""

    task: str
    hosts: tuple[str, ...]
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class Service:
    """A service that does not change: where its instances are, how many are up without any work, and its floor."""

    name: str
    hosts: Mapping[str, str]  # of instances, by id
    down: frozenset[str]
    floor: int

    def left(self, busy: set[str]) -> int:
        """How many are up while there is work on these hosts."""
        return sum(host not in busy and name not in self.down for name, host in self.hosts.items())

    def is_touched(self, hosts: Sequence[str]) -> bool:
        """Work on these hosts takes something up down: repairs of the broken cost nothing."""
        return any(host in hosts and name not in self.down for name, host in self.hosts.items())


def check(works: Sequence[Work], services: Sequence[Service]) -> Iterator[Violation]:
    """Every beginning of work, with all that was under way then."""
    for work in works:
        under_way = [one for one in works if one.began <= work.began < one.ended]
        busy = {host for one in under_way for host in one.hosts}
        for service in services:
            left = service.left(busy)
            if service.is_touched(work.hosts) and left < service.floor:
                what = f"{service.name} has {left} up, its floor is {service.floor}, as {work.task} begins"
                yield FLOOR.broken(what, *under_way)
