"""Pauses between tries of what fails again and again: doubled from 1 min to 1 h. Pure: time and chance come in."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

PAUSE_MS: Final = (60_000, 3_600_000)


def pause_ms(failures: int) -> int:
    """The longest pause after so many failures in a row; 0 after none."""
    return min(PAUSE_MS[0] << min(failures - 1, 6), PAUSE_MS[1]) if failures > 0 else 0


@dataclass(slots=True)
class _Streak:
    """Failures in a row: how many, since when, and until when nothing is tried."""

    failures: int
    since_ms: int
    until_ms: int


class Backoff:
    """Back-off of failing work, by host and name. Not stored: a process that takes over tries each once, at once."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._streaks: dict[str, dict[str, _Streak]] = {}

    def may_try(self, host: str, what: str, now_ms: int) -> bool:
        streak = self._streak(host, what)
        return streak is None or now_ms >= streak.until_ms

    def note(self, host: str, what: str, now_ms: int, *, failed: bool) -> None:
        """Note a try. The pause is half to all of the longest one, at random."""
        if not failed:
            self._streaks.get(host, {}).pop(what, None)
            return
        streak = self._streaks.setdefault(host, {}).setdefault(what, _Streak(0, now_ms, now_ms))
        streak.failures += 1
        longest_ms = pause_ms(streak.failures)
        streak.until_ms = now_ms + self._rng.randint(longest_ms // 2, longest_ms)

    def failing_ms(self, host: str, what: str, now_ms: int) -> int:
        """How long it has been failing; 0: it is not."""
        streak = self._streak(host, what)
        return now_ms - streak.since_ms if streak is not None else 0

    def forget(self, host: str, but: str = "") -> None:
        """Forget all that is known of a host, but for one name."""
        streak = self._streak(host, but)
        self._streaks.pop(host, None)
        if streak is not None:
            self._streaks[host] = {but: streak}

    def _streak(self, host: str, what: str) -> _Streak | None:
        return self._streaks.get(host, {}).get(what)
