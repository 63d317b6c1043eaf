"""FLOOR, CALENDAR, STARVED, BOUNCE, WHOLE: what the CMS gives leave for, judged by what clients asked for and did.

Nothing that the CMS says of itself is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.checker.violation import Promise, Violation

FLOOR = Promise(
    "FLOOR",
    "work that was begun with a final ok never leaves a service with less than its floor",
    "cms/ledger/decide.py, cms/desk.py, and who acted at that time",
)
CALENDAR = Promise(
    "CALENDAR",
    "planned work and roll-outs begin in their windows and outside freezes only, also where the ok came before",
    "cms/ledger/decide.py (_closed_windows, withdrawals), cms/ledger/calendar.py",
)
STARVED = Promise(
    "STARVED",
    "whoever can be granted is granted at last, whatever is more needed",
    "cms/ledger/decide.py (in_order), cms/ledger/book.py (has_turn, has_aged)",
)
BOUNCE = Promise(
    "BOUNCE",
    "no provisional ok is given and taken back for ever",
    "cms/ledger/decide.py (_take_back, withdrawals)",
)
WHOLE = Promise(
    "WHOLE",
    "tasks of a group become final together",
    "cms/ledger/decide.py (confirm), cms/moves.py",
)
MOST_TAKEN_BACK = 20


@dataclass(frozen=True, slots=True)
class Work:
    """What a client did with a final ok. Seconds; `began` after the ok came, `ended` before it was given back.

    Attributes:
        is_brief: it was asked for as work that takes a few minutes.
        is_exempt: repairs and urgent work, for which the calendar is always open.
        group: it was to begin together with others of this name.
    """

    task: str
    hosts: tuple[str, ...]
    began: float
    ended: float
    is_brief: bool = False
    is_exempt: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """How it went with a task. Seconds.

    Attributes:
        granted: when the ok became final; None: not while it was watched.
        taken_back: how often a provisional ok was.
    """

    task: str
    asked: float
    granted: float | None
    taken_back: int = 0


@dataclass(frozen=True, slots=True)
class Service:
    """A service that does not change: where its instances are, how many are up without any work, and its floor.

    Attributes:
        brief_floor: what brief work may leave; None: no less than other work.
        bound_s: brief work that lasts longer ends that allowance until it is over.
    """

    name: str
    hosts: Mapping[str, str]  # of instances, by id
    down: frozenset[str]
    floor: int
    brief_floor: int | None = None
    bound_s: float = 3600.0

    def floor_for(self, work: Work, under_way: Sequence[Work]) -> int:
        if self.brief_floor is None or not work.is_brief:
            return self.floor
        is_late = any(one.began + self.bound_s <= work.began for one in under_way if self.is_touched(one.hosts))
        return self.floor if is_late else self.brief_floor

    def left(self, busy: set[str]) -> int:
        """How many are up while there is work on these hosts."""
        return sum(host not in busy and name not in self.down for name, host in self.hosts.items())

    def is_touched(self, hosts: Sequence[str]) -> bool:
        """Whether work on these hosts takes something up down: repairs of the broken cost nothing."""
        return any(host in hosts and name not in self.down for name, host in self.hosts.items())


def check(works: Sequence[Work], services: Sequence[Service]) -> Iterator[Violation]:
    """Every beginning of work, with all that was under way then."""
    for work in works:
        under_way = [one for one in works if one.began <= work.began < one.ended]
        busy = {host for one in under_way for host in one.hosts}
        for service in services:
            left, floor = service.left(busy), service.floor_for(work, under_way)
            if service.is_touched(_new_hosts(work, under_way)) and left < floor:
                what = f"{service.name} has {left} up, its floor is {floor}, as {work.task} begins"
                yield FLOOR.broken(what, *under_way)


def _new_hosts(work: Work, under_way: Sequence[Work]) -> list[str]:
    """Hosts that no other work has taken. Brief work counts only if no other work has the host."""
    others = {host for one in under_way if one != work and (work.is_brief or not one.is_brief) for host in one.hosts}
    return [host for host in work.hosts if host not in others]


def check_calendar(works: Sequence[Work], closed: Sequence[tuple[float, float]]) -> Iterator[Violation]:
    """`closed`: from when to when nothing but repairs and urgent work may begin."""
    for work in works:
        if not work.is_exempt and any(begin <= work.began < end for begin, end in closed):
            yield CALENDAR.broken(f"{work.task} begins at {work.began:.0f}, while the calendar is closed", work)


def check_asks(asks: Sequence[Ask], ended: float, patience_s: float) -> Iterator[Violation]:
    """`ended`: until when they were watched; `patience_s`: how long the one with the least need may wait."""
    for ask in asks:
        waited_s = (ended if ask.granted is None else ask.granted) - ask.asked
        if waited_s > patience_s:
            yield STARVED.broken(f"{ask.task} waited for {waited_s:.0f} s", ask)
        if ask.taken_back > MOST_TAKEN_BACK:
            yield BOUNCE.broken(f"the ok of {ask.task} was taken back {ask.taken_back} times", ask)


def check_groups(works: Sequence[Work], sizes: Mapping[str, int]) -> Iterator[Violation]:
    """`sizes`: how many tasks each group has."""
    groups: dict[str, list[Work]] = {}
    for work in works:
        if work.group:
            groups.setdefault(work.group, []).append(work)
    for name, begun in groups.items():
        if len(begun) < sizes[name] or len({work.began for work in begun}) > 1:
            yield WHOLE.broken(f"{len(begun)} of {sizes[name]} tasks of {name} began, not all at once", *begun)
