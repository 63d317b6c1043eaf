"""Which endpoints to pass over for a while, because their callers say that they fail. Decisions only, no I/O."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hqclient.discovery.endpoint import Endpoint
from hqclient.timing import Clock

Identity = tuple[str, str, int, str, int]


@dataclass(frozen=True, slots=True)
class EjectionSettings:
    """How long, and how many at once.

    Attributes:
        first_s: about how long at first; it doubles with each further time.
        max_s: upper limit of that.
        max_share: at most this share of the endpoints at once. One of two may always be passed over; all never.
    """

    first_s: float = 5.0
    max_s: float = 60.0
    max_share: float = 0.5


@dataclass(slots=True)
class _Record:
    times: int = 0
    until: float = 0.0


class Ejections:
    """Remembers who failed. HQ's word that an instance is ready is not contradicted: this is one caller's view."""

    def __init__(self, clock: Clock, rng: random.Random, settings: EjectionSettings) -> None:
        self._clock, self._rng, self._settings = clock, rng, settings
        self._records: dict[Identity, _Record] = {}

    def __repr__(self) -> str:
        return f"Ejections({self._records})"

    def failed(self, endpoint: Endpoint) -> None:
        """A caller could not reach it: pass it over, for longer each time."""
        now, settings = self._clock.now(), self._settings
        record = self._records.setdefault(endpoint.identity, _Record())
        # A hundred calls that fail together are one failure, not a hundred.
        if now < record.until:
            return
        if now > record.until + settings.max_s:
            record.times = 0
        record.times += 1
        pause_s = min(settings.max_s, settings.first_s * 2.0 ** min(record.times - 1, 30))
        record.until = now + pause_s * self._rng.uniform(0.8, 1.2)

    def succeeded(self, endpoint: Endpoint) -> None:
        """It answered: its past is forgotten."""
        if self._records:
            self._records.pop(endpoint.identity, None)

    def keep_only(self, endpoints: Sequence[Endpoint]) -> None:
        """Forget those that are gone."""
        if self._records:
            there = {endpoint.identity for endpoint in endpoints}
            self._records = {who: record for who, record in self._records.items() if who in there}

    def excluded(self, endpoints: Sequence[Endpoint]) -> frozenset[Identity]:
        """Whom to pass over now; where that were too many, those who failed longest ago are let back in."""
        if not self._records:
            return frozenset()
        now = self._clock.now()
        out = [(r.until, e.identity) for e in endpoints if (r := self._records.get(e.identity)) and r.until > now]
        out.sort(reverse=True)
        return frozenset(identity for _, identity in out[: self._most(len(endpoints))])

    def _most(self, count: int) -> int:
        return min(count - 1, max(1, int(count * self._settings.max_share))) if count > 1 else 0
