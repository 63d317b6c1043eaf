"""Limits of one peer: how much it may hold at the same time, and how often it may call."""

from __future__ import annotations

from typing import Final

from serving.clock import Clock
from serving.errors import Overloaded


class Shares:
    """Counts what each peer holds, up to a limit. Peers that hold nothing take no memory.

    Attributes:
        held: by peer. Read it, but change it by the methods only.
        most: that one may hold.
    """

    def __init__(self, limit: str, most: int, words: str) -> None:
        self._limit = limit
        self.most = most
        self._words = words
        self.held: dict[str, int] = {}

    def take(self, peer: str, amount: int = 1) -> None:
        """Count in.

        Raises:
            Overloaded: the peer would hold more than it may; nothing was counted.
        """
        held = self.held.get(peer, 0) + amount
        if held > self.most:
            raise self._over(peer)
        if held:
            self.held[peer] = held

    def check(self, peer: str, amount: int) -> None:
        """Whether this much more could be counted in. Raises Overloaded: as `take`."""
        if self.held.get(peer, 0) + amount > self.most:
            raise self._over(peer)

    def _over(self, peer: str) -> Overloaded:
        return Overloaded(
            f"{peer} may have no more than {self.most} {self._words}: finish some first", limit=self._limit
        )

    def count(self, peer: str, amount: int = 1) -> None:
        """Count in, or out, whatever the limit."""
        held = self.held.get(peer, 0) + amount
        if held:
            self.held[peer] = held
        else:
            self.held.pop(peer, None)

    def has_room(self, peer: str) -> bool:
        """Whether the peer holds no more than it may."""
        return self.held.get(peer, 0) <= self.most

    def give_back(self, peer: str, amount: int = 1) -> None:
        """Count out what was counted in."""
        left = self.held[peer] - amount
        if left:
            self.held[peer] = left
        else:
            del self.held[peer]

    def held_by(self, peer: str) -> int:
        """Return how much the peer holds now."""
        return self.held.get(peer, 0)


_BURST_S: Final = 2.0  # a caller that was quiet may send this many seconds' worth at once
_MAX_CALLERS: Final = 10_000


class PeerRate:
    """Lets each caller make `per_s` calls per second on average."""

    def __init__(self, per_s: float, clock: Clock) -> None:
        self._per_s = per_s
        self._clock = clock
        self._burst = max(1.0, per_s * _BURST_S)
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, as of when

    def take(self, caller: str) -> None:
        """Count one call.

        Raises:
            Overloaded: the caller is over its rate.
        """
        now = self._clock.now()
        tokens, since = self._buckets.pop(caller, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_s)
        allowed = tokens >= 1.0
        self._buckets[caller] = (tokens - allowed, now)
        if len(self._buckets) > _MAX_CALLERS:
            del self._buckets[next(iter(self._buckets))]  # the one that was quiet for longest
        if not allowed:
            wait_s = (1.0 - tokens) / self._per_s
            words = f"{caller} has made more than {self._per_s:g} calls per second"
            raise Overloaded(words, wait_s, limit="max_calls_per_peer_s")
