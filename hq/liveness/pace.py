"""How many flips may go ahead now, when they go ahead at a bounded rate. Pure."""

from __future__ import annotations


class Pace:
    """An allowance that grows with time, up to one second's worth, and shrinks with every flip that is seen.

    Flips of all replicas are counted: many replicas are not faster than one.
    """

    def __init__(self) -> None:
        self._allowance = 0.0
        self._last: tuple[float, int] | None = None  # when it was counted, and how many flips were seen by then

    def allowed(self, now: float, flips_per_s: float, flips_seen: int) -> int:
        """How many flips may be written now. `flips_seen` is the number seen ever."""
        before, seen_before = self._last or (now, flips_seen)
        self._last = now, flips_seen
        most = max(1.0, flips_per_s)
        allowance = self._allowance + (now - before) * flips_per_s - (flips_seen - seen_before)
        self._allowance = max(-most, min(allowance, most))
        return max(0, int(self._allowance))
