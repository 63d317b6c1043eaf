"""When a revision's silence becomes too long. Pure: no I/O, time comes in as an argument.

Silence is measured from when *this replica* learned of a report, on its own monotonic clock. HQ's own silence is not
the instances' silence: the measuring clock stands still while HQ was away (a gap), and no deadline passes before the
agents had a chance to be heard again.

Because the timeout is one for all, order of deadlines is order of hearing: a dict that is re-inserted into is the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class RevisionKey(NamedTuple):
    """A revision of an instance."""

    instance_id: str
    revision_id: str


@dataclass(frozen=True, slots=True)
class LivenessTimes:
    """Seconds.

    Attributes:
        timeout_s: silence for so long makes a revision not ready.
        report_interval_s: how often agents report when nothing changes.
        retry_s: what an agent may need to try again after HQ was away.
        flush_s: a beat may be under way for so long after it was heard.
    """

    timeout_s: float = 600.0
    report_interval_s: float = 180.0
    retry_s: float = 10.0
    flush_s: float = 0.5

    @property
    def silent_after_s(self) -> float:
        """Two reports missed: the guard counts such a revision as silent."""
        return min(2 * self.report_interval_s, self.timeout_s)


class Deadlines:
    """The deadlines of the revisions that are ready.

    Attributes:
        postponed_because: why no deadline can pass before `floor`; empty: it can.
        floor: no deadline is earlier, in seconds of the injected clock.
    """

    def __init__(self, times: LivenessTimes) -> None:
        self._times = times
        self._heard: dict[RevisionKey, float] = {}  # on the measuring clock, oldest first
        self._stood_s = 0.0
        self._newest = float("-inf")
        self.floor = float("-inf")
        self.postponed_because = ""

    def __len__(self) -> int:
        return len(self._heard)

    def __contains__(self, key: RevisionKey) -> bool:
        return key in self._heard

    def heard(self, key: RevisionKey, now: float) -> float:
        """A report or beat was learned of: move the deadline to now + timeout at least; return it.

        A revision whose deadline has passed but was not swept yet is renewed: nobody has been told otherwise.
        """
        measured = max(self._newest, now - self._stood_s)
        self._heard.pop(key, None)
        self._heard[key] = self._newest = measured
        return self._deadline(measured)

    def forget(self, key: RevisionKey) -> None:
        """The revision is not ready any more, or gone."""
        self._heard.pop(key, None)

    def clear(self) -> None:
        self._heard.clear()

    def restart(self, now: float, because: str) -> None:
        """After a start, a new listing or a new epoch: batches of beats were missed, everyone gets a full timeout."""
        self._raise_floor(now + self._times.timeout_s, because)

    def gap(self, began: float, now: float, because: str) -> None:
        """HQ was away from `began` until now, and everything since was replayed.

        The later of deadline + gap and now + min(gap, interval) + a retry. Not more: the retry is never longer than the
        gap itself, so that gaps that come often and are short cannot postpone a flip for ever.
        """
        away_s = max(0.0, now - began)
        self._stood_s += away_s
        chance_s = min(away_s, self._times.report_interval_s) + min(away_s, self._times.retry_s)
        self._raise_floor(now + chance_s, because)

    def _raise_floor(self, floor: float, because: str) -> None:
        if floor > self.floor:
            self.floor, self.postponed_because = floor, because

    def deadline(self, key: RevisionKey) -> float | None:
        """On the injected clock; None: none runs."""
        measured = self._heard.get(key)
        return None if measured is None else self._deadline(measured)

    def silence_s(self, key: RevisionKey, now: float) -> float | None:
        """For how long nothing was heard while HQ was there to hear; None: no deadline runs."""
        measured = self._heard.get(key)
        return None if measured is None else max(0.0, now - self._stood_s - measured)

    def expired(self, now: float, at_most: int = 1_000_000) -> list[RevisionKey]:
        """The revisions whose deadline has passed by more than a flush takes, longest silence first."""
        if now < self.floor + self._times.flush_s:
            return []
        return list(self._silent_for(self._times.timeout_s + self._times.flush_s, now, at_most))

    def silent(self, now: float, at_most: int = 1_000_000) -> int:
        """How many have been silent for over two report intervals; counting ends at `at_most`."""
        return sum(1 for _ in self._silent_for(self._times.silent_after_s, now, at_most))

    def silent_keys(self, now: float, at_most: int) -> Iterator[RevisionKey]:
        """Those that `silent` counts."""
        return self._silent_for(self._times.silent_after_s, now, at_most)

    def next_expiry(self) -> float | None:
        """When `expired` can become longer; None: there are no deadlines."""
        oldest = next(iter(self._heard.values()), None)
        return None if oldest is None else self._deadline(oldest) + self._times.flush_s

    def _silent_for(self, silence_s: float, now: float, at_most: int) -> Iterator[RevisionKey]:
        latest = now - self._stood_s - silence_s
        for count, (key, measured) in enumerate(self._heard.items()):
            if measured > latest or count >= at_most:
                return
            yield key

    def _deadline(self, measured: float) -> float:
        return max(measured + self._stood_s + self._times.timeout_s, self.floor)
