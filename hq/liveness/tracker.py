"""What this replica knows of who was heard when: deadlines kept in step with the cache, and recent transitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from hq.cache import Event
from hq.clock import Clock
from hq.entry import Entry, Mark
from hq.liveness.deadlines import Deadlines, LivenessTimes, RevisionKey
from hq.liveness.guard import Census
from hqpb.v1 import instance_pb2

_TRANSITIONS_KEPT = 2_000


class Transition(NamedTuple):
    """A flip (ready is False) or a recovery (True), as this replica saw it."""

    key: RevisionKey
    node: str
    ready: bool
    version: int
    wall_ms: int
    condition: instance_pb2.Condition


class Tracker:
    """Follows events and beats, and keeps a deadline for each ready revision.

    Attributes:
        flips, recoveries: seen since the start; for metrics.
    """

    def __init__(self, times: LivenessTimes, clock: Clock) -> None:
        self.times = times
        self.deadlines = Deadlines(times)
        self._clock = clock
        self._flipped: dict[RevisionKey, float] = {}  # within the last timeout, oldest first
        self._transitions: deque[Transition] = deque(maxlen=_TRANSITIONS_KEPT)
        self.flips = self.recoveries = 0

    def reset(self) -> None:
        """Another history, or a new listing: what was heard is unknown."""
        self.deadlines.clear()
        self._flipped.clear()

    def start(self, entries: Iterable[Entry], because: str) -> None:
        """A listing is in: everyone gets a full timeout from now."""
        now = self._clock.now()
        for entry in entries:
            for mark in entry.marks:
                if mark.ready:
                    self.deadlines.heard(RevisionKey(entry.traits.id, mark.id), now)
        self.deadlines.restart(now, because)

    def observe(self, event: Event) -> None:
        """An instance changed."""
        before = event.before.marks if event.before else ()
        if event.after is None or (event.before and event.before.traits.uid != event.after.traits.uid):
            self._forget(event.before)
            before = ()
        if event.after is not None:
            known = {mark.id: mark for mark in before}
            for mark in event.after.marks:
                self._observe_mark(event, known.pop(mark.id, None), mark)
            for gone in known:
                self._forget_revision(RevisionKey(event.traits.id, gone))

    def beat(self, entry: Entry, mark: Mark) -> None:
        """A beat was current."""
        if mark.ready:
            self.deadlines.heard(RevisionKey(entry.traits.id, mark.id), self._clock.now())

    def census(self, nodes: int, at_most_silent: int = 1_000_000) -> Census:
        """What the guard looks at. A declared removal is in none of the numbers."""
        now = self._clock.now()
        self._drop_old_flips(now)
        flipped = len(self._flipped)
        silent = self.deadlines.silent(now, at_most_silent) + flipped
        return Census(len(self.deadlines) + flipped, silent, nodes)

    def transitions(self, instance_id: str = "", at_most: int = 100) -> list[Transition]:
        """Newest first."""
        found = (t for t in reversed(self._transitions) if not instance_id or t.key.instance_id == instance_id)
        return [t for t, _ in zip(found, range(at_most), strict=False)]

    def _observe_mark(self, event: Event, old: Mark | None, new: Mark) -> None:
        key = RevisionKey(event.traits.id, new.id)
        if new.flipped and not (old and old.flipped):
            self.flips += 1
            self._flipped[key] = self._clock.now()
            self._note(event, key, ready=False)
        elif old is not None and old.flipped and new.ready:
            self.recoveries += 1
            self._flipped.pop(key, None)
            self._note(event, key, ready=True)
        if not new.ready:
            self.deadlines.forget(key)
        elif old is None or new.report() != old.report() or key not in self.deadlines:
            self.deadlines.heard(key, self._clock.now())

    def _note(self, event: Event, key: RevisionKey, *, ready: bool) -> None:
        assert event.after is not None
        statuses = event.after.status().revision  # decoded: transitions are rare
        condition = next((r.ready for r in statuses if r.id == key.revision_id), instance_pb2.Condition())
        wall_ms = self._clock.wall_ms()
        self._transitions.append(Transition(key, event.traits.node, ready, event.version, wall_ms, condition))

    def _forget(self, entry: Entry | None) -> None:
        for mark in entry.marks if entry else ():
            self._forget_revision(RevisionKey(entry.traits.id, mark.id) if entry else RevisionKey("", ""))

    def _forget_revision(self, key: RevisionKey) -> None:
        self.deadlines.forget(key)
        self._flipped.pop(key, None)

    def _drop_old_flips(self, now: float) -> None:
        while self._flipped:
            key = next(iter(self._flipped))
            if self._flipped[key] > now - self.times.timeout_s:
                return
            del self._flipped[key]
