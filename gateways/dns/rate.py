"""How many questions one address may ask in a second: whoever forges its victim's address gets no more out of us."""

from __future__ import annotations

from serving.clock import Clock

_MOST_ADDRESSES = 100_000


class Rate:
    """Counts by address (an IPv6 network of 64 bits is one) in windows of a second.

    Attributes:
        per_s: 0: as many as it likes.
    """

    def __init__(self, per_s: int, clock: Clock) -> None:
        self.per_s, self._clock = per_s, clock
        self._second = -1
        self._counts: dict[str, int] = {}

    def allows(self, address: str) -> bool:
        """Count one; False: it is over its share."""
        if not self.per_s:
            return True
        second = int(self._clock.now())
        if second != self._second:
            self._second = second
            self._counts = {}
        who = address if ":" not in address else _network(address)
        count = self._counts.get(who, 0) + 1
        if count == 1 and len(self._counts) >= _MOST_ADDRESSES:
            who, count = "", self._counts.get("", 0) + 1  # more than anybody has: all others share one
        self._counts[who] = count
        return count <= self.per_s


def _network(address: str) -> str:
    """The first 64 bits, as text that only serves to tell networks apart."""
    head, has_gap, _ = address.partition("::")
    words = head.split(":")
    return ":".join(words[:4]) + ("::" if has_gap and len(words) < 4 else "")
