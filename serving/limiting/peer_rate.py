"""How often one caller may call: a bucket of tokens for each identity, or address where there is none."""

from __future__ import annotations

from typing import Final

from serving.clock import Clock
from serving.errors import Overloaded

_BURST_S: Final = 2.0  # a caller that was quiet may send so many seconds' worth at once
_MAX_CALLERS: Final = 10_000


class PeerRate:
    """Lets each caller make so many calls per second on average."""

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
            words = f"{caller} may make {self._per_s:g} calls per second"
            raise Overloaded(words, wait_s, limit="max_calls_per_peer_s")
