"""Plans waves: which hosts could be worked on together, as things stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cms.ledger.book import TaskLedger
from cms.ledger.claims import Round, claim_of
from cms.ledger.limits import Site
from cms.ledger.tasks import Task
from cms.ledger.why import Why, explain_obstacles


@dataclass(slots=True)
class WavePlan:
    """Waves of hosts; each begins when all of the one before is available again.

    Attributes:
        misfits: hosts that cannot be worked on as things stand, and why.
    """

    waves: list[list[str]] = field(default_factory=list)
    misfits: dict[str, Why] = field(default_factory=dict)


def plan(book: TaskLedger, hosts: Sequence[str], action: str, now: float) -> WavePlan:
    """Waves by first fit, rack by rack. Present holds stay in force in all of them."""
    book.picture.age(now)
    ordered = sorted(set(hosts), key=lambda host: (*_place(book.limits.sites.get(host, Site())), host))
    tasks = {host: Task("plan", 0, action, hosts=(host,)) for host in ordered}
    claims = {host: claim_of([task], book.picture, book.limits, book.locations) for host, task in tasks.items()}
    made = WavePlan()
    for host in list(claims):
        obstacles = _empty(book, now).obstacles(claims[host])
        if obstacles:
            made.misfits[host] = explain_obstacles(book, [tasks[host]], obstacles)
            del claims[host]
    while claims:
        wave, together = [], _empty(book, now)
        for host, claim in claims.items():
            if not together.obstacles(claim):
                together.take(claim)
                wave.append(host)
        made.waves.append(wave)
        for host in wave:
            del claims[host]
    return made


def _place(site: Site) -> tuple[str, str, str]:
    return site.dc, site.rack, site.switch


def _empty(book: TaskLedger, now: float) -> Round:
    return Round(book.picture, book.limits, book.overdue(now))
