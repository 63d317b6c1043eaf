"""Which of several endpoints to take. Decisions only, no I/O."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from hqclient.discovery.endpoint import Endpoint, Key

Rank = Callable[[Endpoint], tuple[int, ...]]
"""How far an endpoint is: only the nearest ones are picked from, the others serve when those are gone."""

SAMPLE = 32


class Picker(Protocol):
    """A way to choose. A picker may remember; use one per service handle."""

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        """One of `among`, which is not empty and in order of keys. `uses`: how many are under way at an endpoint."""
        ...


class RoundRobin:
    """One after the other, beginning anywhere. Endpoints that come and go do not disturb the turn of the others."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()
        self._last: Key | None = None

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        if self._last is None:
            # Else every client that starts begins with the same endpoint.
            picked = self._rng.choice(among)
        else:
            picked = among[bisect_right(among, self._last, key=lambda e: e.key) % len(among)]
        self._last = picked.key
        return picked


class Random:
    """Any."""

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        return self._rng.choice(among)


class LeastUsed:
    """The one with the fewest uses under way (`using` counts them); any of those that tie.

    Of more than SAMPLE endpoints, the least used of SAMPLE random ones: nearly as even, and it does not cost more with
    every endpoint.
    """

    def __init__(self, rng: random.Random | None = None) -> None:
        self._rng = rng or random.Random()

    def pick(self, among: Sequence[Endpoint], uses: Callable[[Endpoint], int]) -> Endpoint:
        looked_at = among if len(among) <= SAMPLE else self._rng.sample(among, SAMPLE)
        least = min(uses(endpoint) for endpoint in looked_at)
        return self._rng.choice([endpoint for endpoint in looked_at if uses(endpoint) == least])


def near(*, node: str = "", labels: Mapping[str, str] | None = None) -> Rank:
    """Same node first, then those with the most of these labels alike."""
    wanted = dict(labels or {})

    def rank(endpoint: Endpoint) -> tuple[int, ...]:
        other_node = bool(node) and endpoint.node != node
        unlike = sum(endpoint.labels.get(name) != value for name, value in wanted.items())
        return int(other_node), unlike

    return rank


def nearest(endpoints: Sequence[Endpoint], rank: Rank) -> Sequence[Endpoint]:
    """Those of the lowest rank, in the order given."""
    ranks = [rank(endpoint) for endpoint in endpoints]
    lowest = min(ranks, default=())
    return [endpoint for endpoint, found in zip(endpoints, ranks, strict=True) if found == lowest]
