"""What happened lately, for whoever looks at the demo."""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

KEPT = 200


class Event(NamedTuple):
    """Something that happened; `at_s` counts from the start of the demo."""

    number: int
    at_s: float
    text: str


class Events:
    """The last ones. They are numbered, so that each is shown once."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._kept: deque[Event] = deque(maxlen=KEPT)
        self._count = 0

    @property
    def elapsed_s(self) -> float:
        """Since the start of the demo."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        """Something happened."""
        self._count += 1
        self._kept.append(Event(self._count, self.elapsed_s, text))

    def after(self, number: int) -> list[Event]:
        """Those that came after that one, oldest first."""
        return [event for event in self._kept if event.number > number]
