"""How often one peer may call: a bucket of tokens for each address."""

from __future__ import annotations

from typing import Final

from serving.clock import Clock
from serving.errors import Overloaded

_BURST_S: Final = 2.0  # a peer that was quiet may send so many seconds' worth at once
_MAX_PEERS: Final = 10_000


class PeerRate:
    """Lets each peer make so many calls per second on average."""

    def __init__(self, per_s: float, clock: Clock) -> None:
        self._per_s = per_s
        self._clock = clock
        self._burst = max(1.0, per_s * _BURST_S)
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens, as of when

    def take(self, peer: str) -> None:
        """Count one call of a peer; only its host counts, not its port.

        Raises:
            Overloaded: it is over its rate.
        """
        now = self._clock.now()
        host = peer.rpartition(":")[0]
        tokens, since = self._buckets.pop(host, (self._burst, now))
        tokens = min(self._burst, tokens + (now - since) * self._per_s)
        allowed = tokens >= 1.0
        self._buckets[host] = (tokens - allowed, now)
        if len(self._buckets) > _MAX_PEERS:
            del self._buckets[next(iter(self._buckets))]  # the one that was quiet for longest
        if not allowed:
            wait_s = (1.0 - tokens) / self._per_s
            raise Overloaded(f"{host} may make {self._per_s:g} calls per second", wait_s)
