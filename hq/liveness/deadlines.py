"""When a revision's silence becomes too long. Pure: no I/O, time comes in as an argument.

Silence is measured from when *this replica* learned of a report, on its own monotonic clock, and without the times at
which HQ itself was away. All deadlines here share one timeout (queues.py has those with others), so they are in the
order of hearing: the queue is a dict whose keys are re-inserted."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from itertools import takewhile
from typing import Generic, NamedTuple, TypeVar

from hq.liveness.absences import DowntimeLog, Unheard

_TICKS = 600  # per timeout; numbers of silent revisions are exact to one tick


K = TypeVar("K", bound=Hashable)


class RevisionKey(NamedTuple):
    """A revision of an instance."""

    instance_id: str
    revision_id: str


@dataclass(frozen=True, slots=True)
class LivenessTimes:
    """Seconds.

    Attributes:
        timeout_s: this much silence makes a revision not ready.
        report_interval_s: how often agents report when nothing changes.
        retry_s: what an agent may need to try again after HQ was away.
        flush_s: how long a heartbeat may be under way after it was heard.
    """

    timeout_s: float = 600.0
    report_interval_s: float = 180.0
    retry_s: float = 10.0
    flush_s: float = 0.5

    @property
    def silent_after_s(self) -> float:
        """The silence from which on the guard counts a revision as silent: two reports missed."""
        return min(2 * self.report_interval_s, self.timeout_s)

    @property
    def grace_s(self) -> float:
        """The most that one gap can postpone a deadline by, beyond its own length."""
        return self.report_interval_s + self.retry_s


class Silence(NamedTuple):
    """For how long nothing was heard, and before that reports were refused, in seconds in which HQ was there."""

    silent_s: float
    refused_s: float = 0.0


@dataclass(slots=True)
class _RefusedReports:
    """Reports refused since the revision was last heard; `is_spent`: they have come for longer than they may count."""

    heard: float
    is_spent: bool = False


class Deadlines(Generic[K]):
    """Deadlines of those who report, such as the revisions that are ready, or the agents of instances.

    Attributes:
        times: by which all of these are judged.
        floor: no deadline is earlier, in seconds of the injected clock, unless gaps postponed it by a grace already.
        chance_until: those not heard since the start have no earlier deadline; each gap before it moves it.
        postponed_because: why deadlines are postponed to one of these.
    """

    def __init__(self, times: LivenessTimes) -> None:
        self.times = times
        self._absences = DowntimeLog()
        self._heard: dict[K, float] = {}  # oldest first
        self._tick_s = times.timeout_s / _TICKS
        self._refused: dict[K, _RefusedReports] = {}
        self._counts: dict[int, int] = {}  # revisions by tick of hearing, oldest first
        self._newest, self._newest_tick = float("-inf"), 0
        self.floor = self.chance_until = float("-inf")
        self._gap_floor = self._started = float("-inf")
        self.postponed_because = ""
        self._unheard = Unheard()
        self._known_since = float("-inf")

    def __len__(self) -> int:
        return len(self._heard)

    def __contains__(self, key: object) -> bool:
        return key in self._heard

    def sibling(self, times: LivenessTimes) -> Deadlines[K]:
        """Another queue, still empty, with the same history of absences."""
        other = Deadlines[K](times)
        other._absences, other._unheard = deepcopy(self._absences), deepcopy(self._unheard)
        other._known_since, other._gap_floor = self._known_since, self._gap_floor
        other.floor, other.postponed_because = self._gap_floor, self.postponed_because
        return other

    def record_contact(self, key: K, now: float) -> None:
        """Let silence start over: a report or heartbeat was learned of.

        A revision whose deadline has passed but was not swept yet is renewed: nobody has been told otherwise.
        """
        if self._refused:
            self._refused.pop(key, None)
        self._move(key, now)

    def start(self, keys: Iterable[K], now: float, because: str, carried: Mapping[K, Silence] | None = None) -> None:
        """Count all of these as heard now, but go on with what is carried over; discard the rest.

        HQ's absence was not silence, but the silence before it was. Whatever is carried over, agents get a report
        interval and a retry to report in, uninterrupted by gaps. In bulk: at a start there are millions.
        """
        self.clear()
        self.restart(now, because)
        most_s = max(0.0, self.times.timeout_s - self.times.grace_s)
        silences = {key: min(silence.silent_s, most_s) for key, silence in (carried or {}).items()}
        heard = {key: now - silences[key] for key in sorted(silences, key=silences.__getitem__, reverse=True)}
        others = dict.fromkeys((key for key in keys if key not in heard) if heard else keys, now)
        for key, silence in (carried or {}).items():
            if silence.refused_s:
                self._refused[key] = _RefusedReports(heard[key] - silence.refused_s)
        self._absences.restart(min([now, *heard.values(), *(refused.heard for refused in self._refused.values())]))
        for refused in self._refused.values():
            refused.is_spent = now - refused.heard > self.times.timeout_s
        self._newest, self._newest_tick = now, self._tick(now)
        for moment in heard.values():
            tick = self._tick(moment)
            self._counts[tick] = self._counts.get(tick, 0) + 1
        if others:
            self._counts[self._newest_tick] = self._counts.get(self._newest_tick, 0) + len(others)
        heard.update(others)
        self._heard, self._started, self.chance_until = heard, now, now + self.times.grace_s

    def record_refusal(self, key: K, now: float) -> None:
        """Note that HQ refused a report for a reason of its own: not silence, within a timeout of the last one taken.

        So an agent that keeps trying does not expire within two timeouts, and one that stops is not spared longer.
        """
        heard = self._heard.get(key)
        if heard is None:
            return
        refused = self._refused.setdefault(key, _RefusedReports(heard))
        if self._absences.silence_s(refused.heard, now) <= self.times.timeout_s:
            self._move(key, now)
        else:
            refused.is_spent = True

    def is_refused(self, key: K) -> bool:
        """Whether reports were refused since the last one that was taken."""
        return key in self._refused

    def forget(self, key: K) -> None:
        """Drop the deadline of a revision that is not ready any more, or gone."""
        self._refused.pop(key, None)
        self._drop(key)

    def _move(self, key: K, now: float) -> None:
        """Move a key to the end of the queue."""
        if now > self._newest:
            self._newest, self._newest_tick = now, self._tick(now)
        self._drop(key)
        self._heard[key] = self._newest
        self._counts[self._newest_tick] = self._counts.get(self._newest_tick, 0) + 1

    def _drop(self, key: K) -> None:
        heard = self._heard.pop(key, None)
        if heard is not None:
            tick = self._newest_tick if heard == self._newest else self._tick(heard)
            left = self._counts[tick] = self._counts[tick] - 1
            if not left:
                del self._counts[tick]

    def clear(self) -> None:
        self._heard.clear()
        self._refused.clear()
        self._counts.clear()

    def restart(self, now: float, because: str) -> None:
        """Give everyone a full timeout: heartbeats were missed, by a start, a new listing or a new epoch."""
        self._absences.restart(now)
        self._unheard.restart(now)
        self._known_since, self._started = now, float("-inf")
        self._raise_floor(now + self.times.timeout_s, because)

    def away(self, since: float) -> None:
        """Stop silence from growing, since HQ cannot hear, until `gap` says that it can again."""
        self._absences.away(since)

    def gap(self, began: float, now: float, because: str) -> None:
        """Postpone deadlines: HQ was away from `began` until now, and everything since was replayed.

        Deadlines move to the later of deadline + gap and now + min(gap, report interval) + a retry. The latter
        postpones none by more than one grace of time in which HQ was there: frequent gaps cannot postpone an expiry
        for ever.
        """
        self._absences.add(began, now)
        self._unheard.gap(began, now)
        chance_s = min(max(0.0, now - began), self.times.report_interval_s) + self.times.retry_s
        self._gap_floor = now + chance_s
        self._raise_floor(self._gap_floor, because)
        if began < self.chance_until:
            # An agent not heard since the start may have failed for hours, and may try again only much later.
            self.chance_until, self.postponed_because = now + self.times.grace_s, because

    def deadline(self, key: K) -> float | None:
        """The deadline on the injected clock, if HQ stays; None: none runs."""
        heard = self._heard.get(key)
        if heard is None:
            return None
        natural = self._natural(heard, self.times.timeout_s)
        refused = self._refused.get(key)
        if refused is not None and refused.is_spent:
            natural = max(natural, self._natural(refused.heard, 2 * self.times.timeout_s))
        grace_s = self.times.grace_s
        if heard < self._started:
            return max(natural, self.chance_until, min(self._gap_floor, natural + grace_s))
        return max(natural, min(self.floor, natural + grace_s))

    def _natural(self, heard: float, patience_s: float) -> float:
        since = max(heard, self._absences.since)
        return since + patience_s + self._absences.absent_s(since)

    def silence_s(self, key: K, now: float) -> float | None:
        """For how long nothing was heard while HQ was there to hear, refused or not; None: no deadline runs."""
        refused = self._refused.get(key)
        heard = self._heard.get(key) if refused is None else refused.heard
        return None if heard is None else self._absences.silence_s(heard, now)

    def assume(self, now: float) -> None:
        """Note that contact at this moment was no report: HQ gave everyone a full timeout."""
        self._unheard.assume(now)

    def listening_since(self, key: K) -> float | None:
        """From when on this replica has heard no report at all of a revision; None: it heard one, or no deadline runs.

        It knows of nothing earlier: it started then, or lost continuity, or planned work ended.
        """
        heard = self._heard.get(key)
        if heard is None or key in self._refused or self._unheard.unheard_s(heard, heard) is not None:
            return None
        return max(heard, self._absences.since, self._started)

    def silence(self, key: K, now: float) -> Silence | None:
        """Return the silence that a restart goes on with; None: no deadline runs."""
        heard = self._heard.get(key)
        if heard is None:
            return None
        silent_s, refused = self._absences.silence_s(heard, now), self._refused.get(key)
        refused_s = self._absences.silence_s(refused.heard, now) - silent_s if refused is not None else 0.0
        return Silence(silent_s, max(0.0, refused_s))

    def silent_keys(self, now: float) -> list[K]:
        """Who has not been heard for over a report interval and a retry, refused or not."""
        latest = self._absences.heard_before(self.times.grace_s, now)
        silent = list(takewhile(lambda key: self._heard[key] <= latest, self._heard))
        return silent + [key for key, refused in self._refused.items() if self._heard[key] > latest >= refused.heard]

    def present_s(self, since: float, now: float) -> float:
        """For how long HQ was there to hear since a moment, or since the start."""
        return self._absences.silence_s(max(since, self._started), now)

    def unheard_s(self, key: K, now: float) -> float | None:
        """How long ago a report came, at most, whether HQ was there or not; None: this replica knows of none."""
        refused = self._refused.get(key)
        heard = self._heard.get(key) if refused is None else refused.heard
        return None if heard is None else self._unheard.unheard_s(heard, now)

    def expired_keys(self, now: float, held_s: float = 0.0) -> Iterator[K]:
        """The revisions whose deadline has passed by more than a flush takes, longest silence first.

        With `held_s`, only those whose silence is too long by that much more. Exhaust the iterator before anything else
        is heard or forgotten.
        """
        fresh = self._limits(now, self.floor, held_s)
        is_chance_over = now >= self.chance_until + self.times.flush_s
        carried = self._limits(now, self._gap_floor, held_s) if is_chance_over else (float("-inf"), float("-inf"))
        for key, heard in self._heard.items():
            is_carried = heard < self._started
            latest, spent = carried if is_carried else fresh
            if heard > latest:
                if not is_carried or self._started > fresh[0]:
                    return
                continue
            refused = self._refused.get(key) if self._refused else None
            if refused is None or not refused.is_spent or refused.heard <= spent:
                yield key

    def _limits(self, now: float, floor: float, held_s: float) -> tuple[float, float]:
        """The latest times of hearing that expire now: in general, and for those refused for too long."""
        too_long_s = self._too_long_s(now, floor) + held_s
        heard_before, timeout_s = self._absences.heard_before, self.times.timeout_s
        return heard_before(too_long_s, now), heard_before(too_long_s + timeout_s, now) if self._refused else 0.0

    def expired_count(self, now: float) -> int:
        """How many `expired_keys` yields, to a tick, and those that refused reports spare a little longer. Quick."""
        return self._count(self._too_long_s(now, self.floor), now)

    def silent(self, now: float) -> int:
        """How many have been silent for over two report intervals, to a tick. Quick, however many there are."""
        return self._count(self.times.silent_after_s, now)

    def known_counts(self, now: float) -> tuple[int, int]:
        """Counts over the revisions heard since HQ was last started (to a tick): all of them, and those silent as in
        `silent`.
        """
        latest, begun = self._absences.heard_before(self.times.silent_after_s, now), self._tick_of_start()
        ticks = [(tick, count) for tick, count in self._counts.items() if tick > begun]
        return sum(c for _, c in ticks), sum(c for tick, c in ticks if (tick + 1) * self._tick_s <= latest)

    def _tick_of_start(self) -> float:
        since = self._known_since
        return since if since == float("-inf") else self._tick(since)

    def _too_long_s(self, now: float, floor: float) -> float:
        times = self.times
        postponed = now < floor + times.flush_s
        return times.timeout_s + times.flush_s + (times.grace_s if postponed else 0.0)

    def _count(self, silence_s: float, now: float) -> int:
        latest = self._absences.heard_before(silence_s, now)
        total = 0
        for tick, count in self._counts.items():
            if (tick + 1) * self._tick_s > latest:
                break
            total += count
        return total

    def _tick(self, moment: float) -> int:
        return int(moment // self._tick_s)

    def _raise_floor(self, floor: float, because: str) -> None:
        if floor > self.floor:
            self.floor, self.postponed_because = floor, because
