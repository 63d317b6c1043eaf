"""Replays recorded uses of fuses under other limits. Pure.

Until the first decision that differs this is exact. From then on it is an estimate: hosts break as recorded, and people
switch on when they did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from walle.fuses.fuse import (
    GLOBAL,
    Automation,
    LimitUse,
    Moment,
    charge,
    exceeded_limit,
    switch_of,
    trip,
)
from walle.fuses.limits import DNS_FIXES, GLOBAL_DNS, Limits
from walle.replay import FuseEvent, events_of, happen
from wallepb.v1.project_pb2 import Fuse, FuseEntry, FusesStart


class FuseTrip(NamedTuple):
    """A fuse that trips: `limit` as `ssh 1d:10`, and the host that would have exceeded it."""

    fuse: str
    automation: Automation
    at: Moment
    limit: str
    host: str


class AskedAction(NamedTuple):
    """An automatic action: the limits that it uses in its project and globally, and the trip that it caused, if any."""

    uses: list[tuple[FuseEvent, LimitUse]]
    tripped: FuseTrip | None


@dataclass(slots=True)
class LimitsComparison:
    """Decisions under the recorded limits and under other ones.

    Attributes:
        actions: how many automatic actions that use limits were asked for.
        recorded, other: trips under the recorded limits and under the others, in their order.
        held_back: actions that began, and would not have.
        let_through: actions that a limit did not allow, and that would have begun.
        diverged: when the first decision differs; None: none does.
        used: the fuses and counters that were asked.
    """

    actions: int = 0
    recorded: list[FuseTrip] = field(default_factory=list)
    other: list[FuseTrip] = field(default_factory=list)
    held_back: int = 0
    let_through: int = 0
    diverged: Moment | None = None
    used: set[tuple[str, str]] = field(default_factory=set)


class _OtherFuses:
    """The fuses as they would be."""

    def __init__(self, others: Mapping[str, Limits]) -> None:
        self._others, self._fuses = others, dict[str, Fuse]()

    def begin(self, start: FusesStart) -> None:
        """Take over the fuses as a recorder that started over found them."""
        self._fuses = {one.id: one for one in start.fuse}

    def fuse(self, fuse_id: str) -> Fuse:
        return self._fuses.get(fuse_id) or Fuse(id=fuse_id)

    def switch(self, event: FuseEvent) -> None:
        """Repeat a person's switching, or the return of a credit."""
        self._fuses[event.fuse] = happen(self.fuse(event.fuse), event) or self.fuse(event.fuse)

    def ask(self, action: AskedAction) -> FuseTrip | bool:
        """True: the action begins. A trip: the action caused it. False: a fuse was off already."""
        charged: dict[str, Fuse] = {}
        automation = _automation_of(action)
        if any(switch_of(self.fuse(one), automation).off for one in (GLOBAL, *(e.fuse for e, _ in action.uses))):
            return False
        for event, use in action.uses:
            fuse, limits = self.fuse(event.fuse), {**event.limits, **self._others.get(event.fuse, {})}
            after = charge(fuse, limits, use, event.at)
            if after is None:
                pair = exceeded_limit(fuse, limits, use, event.at.ms)
                self._fuses[event.fuse] = trip(fuse, automation, pair, event.at, use.host)
                return FuseTrip(event.fuse, automation, event.at, pair, use.host)
            charged[event.fuse] = after
        self._fuses |= charged
        return True


def compare_limits(entries: Iterable[FuseEntry], others: Mapping[str, Limits]) -> LimitsComparison:
    """Decide again what is recorded; `others`: by fuse, limits that replace the recorded ones of their counters."""
    fuses, made = _OtherFuses(others), LimitsComparison()
    for step in _steps(events_of(entries)):
        if isinstance(step, FusesStart):
            fuses.begin(step)
        elif isinstance(step, FuseEvent):
            fuses.switch(step)
        else:
            _compare(step, fuses.ask(step), made)
    return made


def _compare(action: AskedAction, outcome: FuseTrip | bool, made: LimitsComparison) -> None:
    made.actions += 1
    made.used |= {(event.fuse, use.counter) for event, use in action.uses}
    other = outcome if isinstance(outcome, FuseTrip) else None
    if action.tripped is not None:
        made.recorded.append(action.tripped)
    if other is not None:
        made.other.append(other)
    made.held_back += action.tripped is None and outcome is not True
    made.let_through += action.tripped is not None and outcome is True
    if made.diverged is None and (other != action.tripped or outcome is False):
        made.diverged = action.uses[0][0].at


def _steps(events: Iterable[FusesStart | FuseEvent]) -> Iterator[FusesStart | FuseEvent | AskedAction]:
    """The uses of one operation, in its project and globally, are one action; its project is asked first."""
    asked: AskedAction | None = None
    for event in events:
        if asked is not None and not (isinstance(event, FuseEvent) and _is_of(event, asked)):
            yield asked
            asked = None
        if not isinstance(event, FuseEvent):
            yield event
        elif event.use is not None and asked is not None:
            asked.uses.insert(0 if event.fuse != GLOBAL else 1, (event, event.use))
        elif event.use is not None:
            asked = AskedAction([(event, event.use)], None)
        elif event.is_trip:
            assert event.switching is not None
            use, automation = event.tripped_use, Automation(event.switching.automation)
            yield AskedAction([(event, use)], FuseTrip(event.fuse, automation, event.at, event.pair, use.host))
        else:
            yield event
    if asked is not None:
        yield asked


def _is_of(event: FuseEvent, asked: AskedAction) -> bool:
    last, use = asked.uses[-1]
    return event.use is not None and event.fuse != last.fuse and use.operation_id == event.use.operation_id != ""


def _automation_of(action: AskedAction) -> Automation:
    if action.tripped is not None:
        return action.tripped.automation
    return Automation.DNS if action.uses[0][1].counter in (DNS_FIXES, GLOBAL_DNS) else Automation.HEALING
