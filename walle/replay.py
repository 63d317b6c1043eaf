"""The recorded fuses, decided again. Pure.

A fuse's record says what used it, and what switched it. Each change is made again from the record before it, under the
limits in force then, and has to give what was stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from walle.fuses.fuse import (
    AUTOMATION,
    GLOBAL,
    Automation,
    LimitUse,
    Moment,
    charge,
    counters_of,
    exceeded_limit,
    return_credit,
    switch_off,
    switch_on,
    trip,
)
from walle.fuses.limits import DNS_FIXES, GLOBAL_DNS, Limits
from wallepb.v1.project_pb2 import Fuse, FuseEntry, FusesStart, Mark, Switching

_MOST_KEPT: Final = 20


class FuseEvent(NamedTuple):
    """An event of a fuse: a use of a limit, a switching, or a credit that came back (all three None).

    Attributes:
        limits: of its fuse, as they were then.
    """

    fuse: str
    at: Moment
    limits: Limits
    use: LimitUse | None = None
    switching: Switching | None = None
    returned: Mark | None = None

    @property
    def is_trip(self) -> bool:
        """Whether a limit switched it off."""
        said = self.switching
        return said is not None and said.off and said.by == AUTOMATION and bool(said.at_ms and said.host)

    @property
    def pair(self) -> str:
        """The limit that tripped, as `ssh 1d:10`."""
        assert self.switching is not None
        return self.switching.reason.removeprefix("limit ").removesuffix(" would be exceeded")

    @property
    def tripped_use(self) -> LimitUse:
        """The use that the tripped limit did not allow."""
        assert self.switching is not None
        return LimitUse(self.pair.rpartition(" ")[0], self.switching.host)


class FuseChange(NamedTuple):
    """A fuse before and after, and what happened between the two."""

    before: Fuse
    after: Fuse
    events: list[FuseEvent]


class RecordedFuses:
    """Fuses and limits as a record tells of them."""

    def __init__(self) -> None:
        self.fuses: dict[str, Fuse] = {}
        self._limits: dict[str, Limits] = {}

    def learn(self, entry: FuseEntry) -> FuseChange | FusesStart | None:
        """The change or the beginning that an entry tells of; None: limits changed."""
        kind = entry.WhichOneof("entry")
        if kind == "start":
            self._limits = {one.fuse: dict(one.limits) for one in entry.start.limits}
            self.fuses = {one.id: one for one in entry.start.fuse}
            return entry.start
        if kind == "limits":
            self._limits[entry.limits.fuse] = dict(entry.limits.limits)
            return None
        after = entry.fuse
        before = self.fuses.get(after.id) or Fuse(id=after.id)
        self.fuses[after.id] = after
        return FuseChange(before, after, events_between(before, after, self._limits.get(after.id, {})))


def events_between(before: Fuse, after: Fuse, limits: Limits) -> list[FuseEvent]:
    """Return the events that lead from one to the other, in their order."""
    known = {mark.SerializeToString() for mark in before.mark}
    found = [
        FuseEvent(after.id, Moment(mark.at_ms, mark.time), limits, LimitUse(mark.counter, mark.host, mark.operation_id))
        for mark in after.mark
        if mark.SerializeToString() not in known
    ]
    newest = before.switching[0] if before.switching else None
    switched = list(takewhile(lambda one: one != newest, after.switching))[::-1]
    found += [FuseEvent(after.id, Moment(one.at_ms, one.time), limits, switching=one) for one in switched]
    if not found and len(after.credit) == len(before.credit):
        kept = {mark.SerializeToString() for mark in after.mark}
        gone = [mark for mark in before.mark if mark.by_credit and mark.SerializeToString() not in kept]
        found = [FuseEvent(after.id, Moment(one.at_ms, one.time), limits, returned=one) for one in gone]
    return sorted(found, key=lambda one: one.at.ms)


def happen(fuse: Fuse, event: FuseEvent) -> Fuse | None:
    """The fuse after an event; None: the limits would have decided otherwise."""
    if event.use is not None:
        return charge(fuse, event.limits, event.use, event.at)
    if event.returned is not None:
        return return_credit(fuse, event.returned.operation_id, event.at.ms) or fuse
    assert event.switching is not None
    said, automation = event.switching, Automation(event.switching.automation)
    if event.is_trip:
        pair = exceeded_limit(fuse, event.limits, event.tripped_use, event.at.ms)
        return trip(fuse, automation, pair, event.at, said.host) if pair == event.pair else None
    if said.off:
        return switch_off(fuse, automation, said.by, said.reason, event.at)
    dns_counter = GLOBAL_DNS if fuse.id == GLOBAL else DNS_FIXES
    mine = counters_of(fuse, automation, dns_counter) | {one.counter for one in said.credit}
    return switch_on(fuse, automation, mine, said.by, said.reason, event.at, said.credit)


def replay_change(change: FuseChange) -> bool:
    """Whether the fuse comes out as it was stored."""
    if not change.after.mark and not change.after.switching:
        return True  # its project was deleted
    if any(event.switching is not None and not event.switching.at_ms for event in change.events):
        return True  # an earlier version switched it, and did not say when on the ledger's clock
    fuse: Fuse | None = change.before
    for event in change.events:
        fuse = happen(fuse, event) if fuse is not None else None
    return fuse == change.after


@dataclass(slots=True)
class FuseRepetition:
    """The result of deciding again under the recorded limits.

    Attributes:
        differing: changes that came out otherwise, the first ones.
    """

    changes: int = 0
    uses: int = 0
    trips: int = 0
    differing: list[FuseChange] = field(default_factory=list)


def repeat_fuses(entries: Iterable[FuseEntry]) -> FuseRepetition:
    """Decide again under the recorded limits."""
    recorded, made = RecordedFuses(), FuseRepetition()
    for entry in entries:
        change = recorded.learn(entry)
        if not isinstance(change, FuseChange):
            continue
        made.changes += 1
        made.uses += sum(one.use is not None for one in change.events)
        made.trips += sum(one.is_trip for one in change.events)
        if not replay_change(change) and len(made.differing) < _MOST_KEPT:
            made.differing.append(change)
    return made


def events_of(entries: Iterable[FuseEntry]) -> Iterator[FusesStart | FuseEvent]:
    """All that happened in a record, in its order; what is known at each beginning comes first."""
    recorded = RecordedFuses()
    for entry in entries:
        change = recorded.learn(entry)
        if isinstance(change, FuseChange):
            yield from change.events
        elif change is not None:
            yield change
