"""A history sorted for the checkers: etcd's own past by epochs, and what the order of calls says of revisions."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from tests.checker.history import OK, READS, REPORTS, WRITES, Cut, Event, Fault, Final, Op, Range, Raw
from tests.checker.past import Past

FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Limits:
    """What was promised in the installation that the history is of.

    Attributes:
        stale_after_s: an answer that is older says so.
        liveness_timeout_s: nobody is expired within; None: not to be checked.
        transit_s: a source that a gateway follows may be so much older than it says: its messages were under way.
        ghost_s: an answer that is called fresh shows nothing that was deleted longer ago; None: not to be checked.
        gone_s: nothing is ready that was silent for longer, and for what faults forgive; None: not to be checked.
        forgiven_s: each fault forgives the time that it lasts, and this.
    """

    stale_after_s: float = 10.0
    liveness_timeout_s: float | None = None
    transit_s: float = 0.0
    ghost_s: float | None = None
    gone_s: float | None = None
    forgiven_s: float = 0.0


class Times:
    """What calls and their answers prove of when revisions came to be, in one epoch.

    An answer that names a version proves that it was there then, and so does the observer of etcd; a write proves that
    its version was not there before its call.
    """

    def __init__(self, answered: Iterable[tuple[int, int]], called: Iterable[tuple[int, int]]) -> None:
        """Pairs of a time and a version."""
        first, last = sorted(answered), sorted(called)
        self._answered_at = [at for at, _ in first]
        self._newest = list(accumulate((version for _, version in first), max))
        self._called_at = [at for at, _ in last]
        self._oldest = list(accumulate((version for _, version in reversed(last)), min))[::-1]

    def floor(self, at_ns: int) -> int:
        """A version that was there before this time; the greatest that can be told."""
        place = bisect_left(self._answered_at, at_ns)
        return self._newest[place - 1] if place else 0

    def ceiling(self, at_ns: int | None) -> int:
        """A version that was not yet there at this time; the smallest that can be told."""
        place = bisect_right(self._called_at, FOREVER if at_ns is None else at_ns)
        return self._oldest[place] if place < len(self._oldest) else FOREVER


class Story:
    """A history, sorted.

    Attributes:
        pasts: one per epoch. ops: all calls, in the order of the file; writes, reports, reads: parts of them.
        users: how many calls wrote a marker.
    """

    def __init__(self, events: Iterable[Event], limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.pasts = [Past()]
        self.cuts: list[Cut] = []
        self.ops: list[Op] = []
        self.ranges: list[tuple[Past, Range]] = []
        self.faults: list[Fault] = []
        self.finals: list[Final] = []
        for event in events:
            self._take(event)
        self.writes = [op for op in self.ops if op.op in WRITES]
        self.reports = [op for op in self.ops if op.op in REPORTS]
        self.reads = [op for op in self.ops if op.op in READS]
        self.watched = [op for op in self.ops if op.watch is not None]
        self.users = Counter(op.write.marker for op in self.ops if op.write is not None)
        self._by_epoch = {epoch: past for past in reversed(self.pasts) for epoch in past.epochs}
        self.times = {id(past): self._times(past) for past in self.pasts}

    def _take(self, event: Event) -> None:
        if isinstance(event, Op):
            self.ops.append(event)
        elif isinstance(event, Raw):
            self.pasts[-1].add(event)
        elif isinstance(event, Cut):
            self.cuts.append(event)
            self.pasts.append(Past(raw for raw in self.pasts[-1].raws if raw.revision <= event.revision))
        elif isinstance(event, Range):
            self.ranges.append((self.pasts[-1], event))
        elif isinstance(event, Fault):
            self.faults.append(event)
        else:
            self.finals.append(event)

    def past_of(self, epoch: str) -> Past | None:
        """The past whose versions an answer of this epoch names; without an epoch the last one."""
        return self._by_epoch.get(epoch) if epoch else self.pasts[-1]

    def pasts_of(self, op: Op) -> list[Past]:
        """Pasts in which a write may have taken place, by its times."""
        starts = [0, *(cut.at_ns for cut in self.cuts)]
        ends = [*(cut.at_ns for cut in self.cuts), FOREVER]
        back = FOREVER if op.return_ns is None else op.return_ns
        spans = zip(self.pasts, starts, ends, strict=True)
        return [past for past, start, end in spans if op.call_ns < end and back >= start]

    def floor(self, past: Past, at_ns: int) -> int:
        return self.times[id(past)].floor(at_ns)

    def ceiling(self, past: Past, at_ns: int | None) -> int:
        return self.times[id(past)].ceiling(at_ns)

    def window(self, past: Past, op: Op) -> range:
        """The revisions that a call may have made, by what other calls prove."""
        return range(self.floor(past, op.call_ns) + 1, min(self.ceiling(past, op.return_ns), past.head + 1))

    def _times(self, past: Past) -> Times:
        answered = [(raw.seen_ns, raw.revision) for raw in past.raws if raw.seen_ns]
        called = []
        for op, version in self._proofs(past):
            if op.return_ns is not None:
                answered.append((op.return_ns, version))
            if op.op in WRITES or op.op == "report":
                called.append((op.call_ns, version))
        return Times(answered, called)

    def _proofs(self, past: Past) -> Iterator[tuple[Op, int]]:
        """Calls that certainly saw or made a version of this past."""
        for op in self.ops:
            if op.read is not None and op.outcome == OK:
                if self.past_of(op.read.epoch) is past and op.read.version <= past.head:
                    yield op, op.read.version
            elif op.write is not None and op.outcome == OK and past in self.pasts_of(op):
                made = self.made(past, op)
                if made:
                    yield op, made

    def made(self, past: Past, op: Op) -> int:
        """The revision that a call certainly made in a past; 0: it cannot be told."""
        if op.write is None or op.op == "heartbeat":
            return 0
        if not op.write.marker:
            return op.write.version if past.touched(op.key, op.write.version) else 0
        landings = [each for each in past.landings.get(op.write.marker, ()) if each.id == op.key]
        alone = self.users[op.write.marker] == 1 and len(landings) == 1
        return landings[0].revision if alone else 0
