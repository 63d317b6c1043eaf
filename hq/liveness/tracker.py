"""When this replica last heard whom: deadlines kept in step with the cache, and recent transitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from hq.liveness.deadlines import Deadlines, K, LivenessTimes, RevisionKey
from hq.liveness.guard import Census
from hq.liveness.queues import Queues
from hq.liveness.replay import Carried, Replay
from hq.memory.entry import Entry, Event, Mark
from hq.memory.record import LivenessPair
from hqpb.v1 import instance_pb2
from serving.clock import Clock

_TRANSITIONS_KEPT = 2_000
_NOTHING = Carried({}, {})


class Transition(NamedTuple):
    """An expiry (ready is False) or a recovery (True), as this replica saw it."""

    key: RevisionKey
    node: str
    ready: bool
    version: int
    wall_ms: int
    condition: instance_pb2.Condition


class Tracker:
    """Follows events and heartbeats; keeps deadlines, except on nodes under planned work.

    Attributes:
        deadlines: of each revision that is ready.
        agents: of each instance with a reporter, whatever is reported; by id.
        unbegun: until when a reporter of an instance may be expected; by id.
        agents_silenced: how many agents were judged silent since the start.
        replay: of what a start reads, until it is complete; then None.
        deaf: reports cannot be stored at the moment.
        many_refused_until: some other replica refuses the reports of more nodes than it can name.
        expiries, recoveries: seen since the start; for metrics.
    """

    def __init__(self, times: LivenessTimes, clock: Clock) -> None:
        self.times = times
        self.deadlines, self.agents = Queues[RevisionKey](times), Queues[str](times)
        self.unbegun = Deadlines[str](times)
        self._clock = clock
        self._suspended: frozenset[str] = frozenset()
        self._expired: dict[RevisionKey, float] = {}  # within the last timeout, oldest first
        self._silenced: dict[str, float] = {}  # likewise, agents
        self._transitions: deque[Transition] = deque(maxlen=_TRANSITIONS_KEPT)
        self.replay: Replay | None = None
        self.deaf = False
        self.many_refused_until = float("-inf")
        self.expiries = self.recoveries = self.agents_silenced = 0

    def reset(self) -> None:
        """Forget what was heard: the history is another one, or a new listing follows."""
        for deadlines in self._all():
            deadlines.clear()
        self._expired.clear()
        self._silenced.clear()
        self._suspended = frozenset()
        self.replay = Replay()

    def start(self, entries: Iterable[Entry], because: str, carried: Carried = _NOTHING) -> None:
        """All was read: everyone gets a full timeout from now, or what is left of it."""
        now, suspended = self._clock.now(), self._suspended
        ready: list[RevisionKey] = []
        agents: list[str] = []
        unbegun: list[str] = []
        of_ready, of_agents = dict[RevisionKey, LivenessPair](), dict[str, LivenessPair]()
        for entry in entries:
            traits = entry.traits
            if traits.node in suspended:
                continue
            has_reporter = False
            for mark in entry.marks:
                has_reporter = has_reporter or mark.incarnation != 0
                if mark.ready:
                    ready.append(RevisionKey(traits.id, mark.id))
                if mark.liveness is not None:
                    of_ready[RevisionKey(traits.id, mark.id)] = mark.liveness
                    if (pair := self._longest(entry.marks)) is not None:
                        of_agents[traits.id] = pair
            if not traits.silent:
                (agents if has_reporter else unbegun).append(traits.id)
        self.deadlines.start_all(ready, now, because, carried.revisions, of_ready)
        self.agents.start_all(agents, now, because, carried.agents, of_agents)
        self.unbegun.start(unbegun, now, because)
        self.replay = None

    def restart(self, because: str) -> None:
        """Heartbeats were missed: everyone gets a full timeout from now."""
        now = self._clock.now()
        for deadlines in self._all():
            deadlines.restart(now, because)

    def present_s(self, since: float) -> float:
        """For how long HQ was there to hear since a moment, or since the start."""
        return self.agents.present_s(since, self._clock.now())

    def away(self, since: float) -> None:
        """Stop silence from growing: HQ cannot hear; see Deadlines.away."""
        for deadlines in self._all():
            deadlines.away(since)

    def gap(self, began: float, now: float, because: str) -> None:
        """Postpone deadlines: HQ was away; see Deadlines.gap."""
        for deadlines in self._all():
            deadlines.gap(began, now, because)

    def _all(self) -> tuple[Queues[RevisionKey], Queues[str], Deadlines[str]]:
        return self.deadlines, self.agents, self.unbegun

    def suspend(self, nodes: Collection[str], entries_on: Callable[[str], Iterable[Entry]]) -> None:
        """Planned work is under way on these nodes and no others: no deadlines run there.

        Where it ended everyone gets a full timeout from now: agents may only just be coming back.
        """
        now, before, self._suspended = self._clock.now(), self._suspended, frozenset(nodes)
        for node in self._suspended - before:
            for entry in entries_on(node):
                self._forget(entry.traits.id, [mark.id for mark in entry.marks])
                self._forget_agent(entry.traits.id)
        for node in before - self._suspended:
            for entry in entries_on(node):
                self._hear_all(entry, now)
        if before - self._suspended:
            for deadlines in self._all():
                deadlines.assume(now)

    def observe(self, event: Event) -> None:
        """Follow a change of an instance."""
        before, after = event.before, event.after
        known = {mark.id: mark for mark in before.marks} if before else {}
        if before and (after is None or after.traits.uid != before.traits.uid):
            self._forget(before.traits.id, known)
            known = {}
        if after is not None:
            for mark in after.marks:
                self._observe_mark(event.version, after, known.pop(mark.id, None), mark)
            self._forget(after.traits.id, known)
        self._observe_agent(before, after)

    def _observe_agent(self, before: Entry | None, after: Entry | None) -> None:
        """Follow whether an agent of the instance is heard, whatever it reports."""
        if before and (after is None or after.traits.uid != before.traits.uid):
            self._forget_agent(before.traits.id)
            before = None
        if after is not None:
            self._follow_agent(before, after, self._clock.now())

    def _follow_agent(self, before: Entry | None, after: Entry, now: float) -> None:
        instance_id = after.traits.id
        if after.traits.silent and not (before and before.traits.silent):
            self.agents_silenced += 1
            if (
                self.agents.of(instance_id).unheard_s(instance_id, now) is not None
            ):  # else it may have been silent for months
                self._silenced[instance_id] = now
        if after.traits.silent or after.traits.node in self._suspended:
            self.agents.forget(instance_id)
            self.unbegun.forget(instance_id)
        elif not after.has_reporter():
            self.agents.forget(instance_id)
            if instance_id not in self.unbegun or (before and before.traits.node != after.traits.node):
                self.unbegun.record_contact(instance_id, now)
        elif instance_id not in self.agents or _has_news(before, after):
            self.unbegun.forget(instance_id)
            self._silenced.pop(instance_id, None)
            self._hear_agent(after, now)

    def heartbeat(self, entry: Entry, mark: Mark, now: float) -> None:
        """Take in a heartbeat that was current."""
        if self.replay is not None:
            self.replay.record_report(entry, mark)
            return
        if mark.ready:
            self._hear(entry, mark, now)
        instance_id, agents = entry.traits.id, self.agents
        if instance_id in agents:
            if mark.liveness is None and not agents.others:  # as nearly always
                agents.record_contact(instance_id, now)
            else:
                self._hear_agent(entry, now)

    def record_refusal(self, entry: Entry, mark: Mark) -> None:
        """Note that a report of this revision was refused for a reason of HQ's own."""
        if entry.traits.node in self._suspended:
            return
        now = self._clock.now()
        instance_id, key = entry.traits.id, RevisionKey(entry.traits.id, mark.id)
        self.agents.of(instance_id).record_refusal(instance_id, now)
        if mark.ready:
            self.deadlines.of(key).record_refusal(key, now)

    def census(self, nodes: int) -> Census:
        """Count what the guard decides by. Declared removals and planned work are in none of the numbers."""
        now = self._clock.now()
        _drop_old(self._expired, now - self.times.timeout_s)
        _drop_old(self._silenced, now - self.times.timeout_s)
        expired, silenced = len(self._expired), len(self._silenced)
        silent = self.deadlines.silent(now) + expired
        # Agents that were silent for long when this replica started are in none of the numbers.
        agents, silent_agents = self.agents.known_counts(now)
        return Census(
            len(self.deadlines) + expired,
            silent,
            nodes,
            now < self.many_refused_until,
            agents + silenced,
            silent_agents + silenced,
        )

    def transitions(self, instance_id: str = "", at_most: int = 100) -> list[Transition]:
        """Newest first."""
        found = (t for t in reversed(self._transitions) if not instance_id or t.key.instance_id == instance_id)
        return [t for t, _ in zip(found, range(at_most), strict=False)]

    def _observe_mark(self, version: int, entry: Entry, old: Mark | None, new: Mark) -> None:
        now, key = self._clock.now(), RevisionKey(entry.traits.id, new.id)
        if new.expired and not (old and old.expired):
            self.expiries += 1
            if entry.traits.node not in self._suspended:
                self._expired[key] = now
            self._note(version, entry, key, ready=False)
        elif old is not None and old.expired and new.ready:
            self.recoveries += 1
            self._expired.pop(key, None)
            self._note(version, entry, key, ready=True)
        if not new.ready:
            self.deadlines.forget(key)
        elif old is None or not old.ready or (new.incarnation and new.is_newer(old)):
            self._hear(entry, new, now)

    def _hear_all(self, entry: Entry, now: float) -> None:
        for mark in entry.marks:
            if mark.ready:
                self._hear(entry, mark, now)
        if not entry.traits.silent and entry.traits.node not in self._suspended:
            if entry.has_reporter():
                self._hear_agent(entry, now)
            else:
                self.unbegun.record_contact(entry.traits.id, now)

    def _hear(self, entry: Entry, mark: Mark, now: float) -> None:
        if entry.traits.node in self._suspended:
            return
        key, deadlines = RevisionKey(entry.traits.id, mark.id), self.deadlines
        if mark.liveness is None and not deadlines.others:  # as nearly always
            deadlines.record_contact(key, now)
        else:
            deadlines.hear(key, now, mark.liveness)

    def _hear_agent(self, entry: Entry, now: float) -> None:
        marks, agents = entry.marks, self.agents
        pair = marks[0].liveness if len(marks) == 1 else self._longest(marks)
        agents.hear(entry.traits.id, now, pair)

    def _longest(self, marks: Sequence[Mark]) -> LivenessPair | None:
        """Return the times of an instance's most patient reporter; None: the installation's times."""
        own = [mark.liveness for mark in marks if mark.incarnation and mark.liveness is not None]
        if not own or any(mark.incarnation and mark.liveness is None for mark in marks):
            ours_ms = round(self.times.timeout_s * 1000)
            own = [pair for pair in own if pair[1] > ours_ms]
        return max(own, key=lambda pair: pair[1], default=None)

    def _note(self, version: int, entry: Entry, key: RevisionKey, *, ready: bool) -> None:
        statuses = entry.status().revision  # decoded: transitions are rare
        condition = next((r.ready for r in statuses if r.id == key.revision_id), instance_pb2.Condition())
        wall_ms = self._clock.wall_ms()
        self._transitions.append(Transition(key, entry.traits.node, ready, version, wall_ms, condition))

    def _forget(self, instance_id: str, revision_ids: Iterable[str]) -> None:
        for revision_id in revision_ids:
            key = RevisionKey(instance_id, revision_id)
            self.deadlines.forget(key)
            self._expired.pop(key, None)

    def _forget_agent(self, instance_id: str) -> None:
        self.agents.forget(instance_id)
        self.unbegun.forget(instance_id)
        self._silenced.pop(instance_id, None)


def _drop_old(moments: dict[K, float], until: float) -> None:
    """Forget what was noted until then; `moments` has the oldest first."""
    while moments:
        key = next(iter(moments))
        if moments[key] > until:
            return
        del moments[key]


def _has_news(before: Entry | None, after: Entry) -> bool:
    """Whether any revision was reported again, or by another reporter."""
    known = {mark.id: mark for mark in before.marks} if before else {}
    return any(mark.id not in known or mark.is_newer(known[mark.id]) for mark in after.marks if mark.incarnation)
