"""Which endpoint a caller gets: by policy and nearness, skipping those that fail. Decisions only, no I/O."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from hqclient.backoff import backoff_limit_s
from hqclient.clock import ClientClock
from hqclient.discovery.endpoint import Endpoint, Key, with_traffic
from hqclient.discovery.endpoint_list import EndpointList

Rank = Callable[[Endpoint], tuple[int, ...]]
"""How far an endpoint is: only the nearest ones are picked from, the others serve when those are gone."""

SAMPLE = 32


class Picker(Protocol):
    """A way to choose. A picker may remember; use one per service handle."""

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        """One of `among`: not empty, in order of keys, never changed, with weights that are all above 0, or all 0.

        `uses`: an endpoint's uses in progress.
        """
        ...


class _WeightRange:
    """The smallest and the largest weight of a sequence, recomputed only for another sequence."""

    def __init__(self) -> None:
        self._among: Sequence[Endpoint] | None = None
        self.most, self.are_equal = 0, True

    def look_at(self, among: Sequence[Endpoint]) -> None:
        if among is not self._among:
            weights = [endpoint.weight for endpoint in among]
            self._among, self.most = among, max(weights)
            self.are_equal = self.most == min(weights)


class RoundRobin:
    """One after the other, starting at random. Endpoints that come and go do not disturb the order of the others.

    Where weights differ, each turn adds an endpoint's weight to its credit, and it is picked when that reaches the
    largest weight: in as many turns as the largest weight, each is picked exactly as often as its weight says.
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._last: Key | None = None
        self._weights = _WeightRange()
        self._credit: dict[Key, int] = {}

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        self._weights.look_at(among)
        if len(self._credit) > 2 * len(among):
            self._credit.clear()  # most of it is of endpoints that are gone
        if self._last is None:
            # In order, every new client would begin with the same endpoint, and one pick would never be a light one.
            picked = Random(self._rng).pick(among, uses)
        else:
            picked = self._next(among, bisect_right(among, self._last, key=lambda e: e.key))
        self._last = picked.key
        return picked

    def _next(self, among: Sequence[Endpoint], at: int) -> Endpoint:
        while not self._weights.are_equal and not self._may_take(among[at % len(among)]):
            at += 1
        return among[at % len(among)]

    def _may_take(self, endpoint: Endpoint) -> bool:
        most = self._weights.most
        credit = self._credit.get(endpoint.key)
        credit = self._rng.randrange(most) if credit is None else min(credit, most - 1)
        taken, self._credit[endpoint.key] = divmod(credit + endpoint.weight, most)
        return bool(taken)


class Random:
    """A random one, by weight."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._cumulated: tuple[Sequence[Endpoint], list[int]] = (), []

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        if among is not self._cumulated[0]:
            self._cumulated = among, list(accumulate(endpoint.weight or 1 for endpoint in among))
        sums = self._cumulated[1]
        return among[bisect_right(sums, self._rng.randrange(sums[-1]))]


class LeastUsed:
    """The one with the fewest uses in progress (`using` counts them); ties are broken at random.

    Of more than SAMPLE endpoints, the least used of SAMPLE random ones: nearly as even, and the cost does not grow with
    the number of endpoints. Where weights differ, an endpoint is drawn by weight, and of those with the same weight the
    least used is taken.
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._weights, self._random = _WeightRange(), Random(self._rng)

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        self._weights.look_at(among)
        if not self._weights.are_equal:
            weight = self._random.pick(among, uses).weight
            among = [endpoint for endpoint in among if endpoint.weight == weight]
        looked_at = among if len(among) <= SAMPLE else self._rng.sample(among, SAMPLE)
        least = min(uses(endpoint) for endpoint in looked_at)
        return self._rng.choice([endpoint for endpoint in looked_at if uses(endpoint) == least])


def near(*, node: str = "", labels: Mapping[str, str] | None = None) -> Rank:
    """Same node first, then those that share the most of these labels."""
    wanted = dict(labels or {})

    def rank(endpoint: Endpoint) -> tuple[int, ...]:
        other_node = bool(node) and endpoint.node != node
        unlike = sum(endpoint.labels.get(name) != value for name, value in wanted.items())
        return int(other_node), unlike

    return rank


def nearest(endpoints: Sequence[Endpoint], rank: Rank) -> Sequence[Endpoint]:
    """The endpoints of the lowest rank, in the given order."""
    ranks = [rank(endpoint) for endpoint in endpoints]
    lowest = min(ranks, default=())
    return [endpoint for endpoint, found in zip(endpoints, ranks, strict=True) if found == lowest]


Identity = tuple[str, str, int, str, int]


@dataclass(frozen=True, slots=True)
class EjectionSettings:
    """How long failing endpoints are skipped, and how many at once.

    Attributes:
        first_s: about how long at first; it doubles with each further time.
        max_s: upper limit of that.
        max_share: at most this share of the endpoints at once. One of two may always be skipped; never all.
    """

    first_s: float = 5.0
    max_s: float = 60.0
    max_share: float = 0.5


@dataclass(slots=True)
class _FailureRecord:
    times: int = 0
    until: float = 0.0


class Ejections:
    """Remembers who failed. This is one caller's view: it does not dispute HQ's verdict that an instance is ready."""

    def __init__(self, clock: ClientClock, rng: random.Random, settings: EjectionSettings) -> None:
        self._clock, self._rng, self._settings = clock, rng, settings
        self._records: dict[Identity, _FailureRecord] = {}

    def __repr__(self) -> str:
        return f"Ejections({self._records})"

    def record_failure(self, endpoint: Endpoint) -> None:
        """A caller could not reach it: skip it, for longer each time."""
        now, settings = self._clock.now(), self._settings
        record = self._records.setdefault(endpoint.identity, _FailureRecord())
        # A hundred calls that fail together are one failure, not a hundred.
        if now < record.until:
            return
        if now > record.until + settings.max_s:
            record.times = 0
        record.times += 1
        pause_s = backoff_limit_s(record.times, settings.first_s, settings.max_s)
        record.until = now + pause_s * self._rng.uniform(0.8, 1.2)

    def record_success(self, endpoint: Endpoint) -> None:
        """It answered: its failures are forgotten."""
        if self._records:
            self._records.pop(endpoint.identity, None)

    def keep_only(self, endpoints: Sequence[Endpoint]) -> None:
        """Forget the failures of endpoints that are gone."""
        if self._records:
            there = {endpoint.identity for endpoint in endpoints}
            self._records = {who: record for who, record in self._records.items() if who in there}

    def ejected_identities(self, endpoints: Sequence[Endpoint]) -> frozenset[Identity]:
        """Endpoints to skip now; if that would be too many, those that failed longest ago are let back in."""
        if not self._records:
            return frozenset()
        now = self._clock.now()
        out = [(r.until, e.identity) for e in endpoints if (r := self._records.get(e.identity)) and r.until > now]
        out.sort(reverse=True)
        return frozenset(identity for _, identity in out[: self._most(len(endpoints))])

    def _most(self, count: int) -> int:
        return min(count - 1, max(1, int(count * self._settings.max_share))) if count > 1 else 0


class Chooser:
    """Picks from a listing: skips those without weight and those that fail, keeps the nearest of the rest, and lets the
    picker choose.
    """

    def __init__(self, listing: EndpointList, picker: Picker, prefer: Rank | None, ejections: Ejections) -> None:
        self.ejections = ejections
        self._listing, self._picker, self._prefer = listing, picker, prefer
        self._uses: Counter[Identity] = Counter()
        self._seen: tuple[int, frozenset[Identity]] = (-1, frozenset())
        self._candidates: Sequence[Endpoint] = ()
        self._weighted: tuple[int, Sequence[Endpoint]] = -1, ()

    def pick(self) -> Endpoint | None:
        """One endpoint; None: there is none at all."""
        candidates = self._nearest()
        return self._picker.pick(candidates, self.uses) if candidates else None

    def uses(self, endpoint: Endpoint) -> int:
        """How many uses of it are in progress."""
        return self._uses.get(endpoint.identity, 0)

    def begin_use(self, endpoint: Endpoint) -> None:
        """One more use."""
        self._uses[endpoint.identity] += 1

    def end_use(self, endpoint: Endpoint) -> None:
        """One use fewer."""
        self._uses[endpoint.identity] -= 1
        if self._uses[endpoint.identity] <= 0:
            del self._uses[endpoint.identity]

    def _nearest(self) -> Sequence[Endpoint]:
        """Return the endpoints to pick from; recomputed only when something changed."""
        if self._weighted[0] != self._listing.generation:
            self._weighted = self._listing.generation, with_traffic(self._listing.endpoints)
        endpoints = self._weighted[1]
        excluded = self.ejections.ejected_identities(endpoints)
        if self._seen != (self._listing.generation, excluded):
            self._seen = self._listing.generation, excluded
            left = [e for e in endpoints if e.identity not in excluded] if excluded else endpoints
            self._candidates = nearest(left, self._prefer) if self._prefer else left
        return self._candidates


class EndpointUse:
    """One use of an endpoint, counted until `done`."""

    def __init__(self, chooser: Chooser, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._chooser = chooser
        self._is_done = False
        chooser.begin_use(endpoint)

    def done(self, *, failed: bool | None = None) -> None:
        """End the use. `failed`: the endpoint could not be reached; None: nothing is known about it."""
        if self._is_done:
            return
        self._is_done = True
        self._chooser.end_use(self.endpoint)
        if failed:
            self._chooser.ejections.record_failure(self.endpoint)
        elif failed is False:
            self._chooser.ejections.record_success(self.endpoint)
