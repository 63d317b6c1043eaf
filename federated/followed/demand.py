"""Which filters are requested often enough to be followed. Pure: the time is given."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final

_REMEMBERED: Final = 10_000  # filters that are not followed (yet)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of what is followed.

    Attributes:
        often, within_s: asked this often within so many seconds, a filter is followed.
        new_per_s: new filters to follow, per second.
        most: filters at once; a fifth of them for one identity, where identities are known.
        max_bytes: of everything held; a tenth of it for one filter.
        idle_s: a filter not requested for this long is no longer followed.
        again_s: a filter that could not be followed is only retried after this time.
    """

    often: int = 5
    within_s: float = 10.0
    new_per_s: int = 10
    most: int = 1_000
    max_bytes: int = 256 << 20
    idle_s: float = 60.0
    again_s: float = 300.0


class Demand:
    """Counts questions; remembers a bounded number of filters.

    Attributes:
        followed: by filter, who began it and when it was last asked for.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._asked: OrderedDict[bytes, deque[float]] = OrderedDict()
        self._begun: deque[float] = deque(maxlen=bounds.new_per_s)
        self._barred: OrderedDict[bytes, float] = OrderedDict()
        self.followed: dict[bytes, tuple[str, float]] = {}

    def record_request(self, key: bytes, identity: str, now: float) -> bool:
        """Count a request for a filter. True: follow it from now on."""
        if key in self.followed:
            self.followed[key] = (self.followed[key][0], now)
            return False
        times = self._asked.pop(key, None) or deque(maxlen=self._bounds.often)
        times.append(now)
        self._asked[key] = times
        if len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)
        if len(times) < self._bounds.often or now - times[0] > self._bounds.within_s or not self._room(identity, now):
            return False
        if self._barred.get(key, now) > now:
            return False
        del self._asked[key]
        self._begun.append(now)
        self.followed[key] = (identity, now)
        return True

    def idle(self, now: float) -> list[bytes]:
        """Filters that nobody asks for any more."""
        return [key for key, (_, last) in self.followed.items() if now - last > self._bounds.idle_s]

    def drop(self, key: bytes) -> None:
        """Stop following a filter."""
        self.followed.pop(key, None)

    def bar(self, key: bytes, now: float) -> None:
        """Keep a filter from being followed for `again_s`: it is too large, or a location does not allow it."""
        self.drop(key)
        self._barred[key] = now + self._bounds.again_s
        if len(self._barred) > _REMEMBERED:
            self._barred.popitem(last=False)

    def _room(self, identity: str, now: float) -> bool:
        if len(self._begun) == self._bounds.new_per_s and now - self._begun[0] < 1.0:
            return False
        own = sum(who == identity for who, _ in self.followed.values())
        return len(self.followed) < self._bounds.most and not (identity and own >= self._bounds.most // 5)
