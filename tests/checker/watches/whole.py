"""WHOLE: the events of one version are in one message, or in several of which only the last has a token."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Watched
from tests.checker.violation import Promise
from tests.checker.watches.word import WatchWord


class Whole(WatchWord):
    promise = Promise(
        "WHOLE",
        "the events of one version come together: nothing else in between, and no token before the last of them",
        "store/unfragment.py, hq/replica.py (apply), hq/registry/watches.py (_messages)",
    )

    def __init__(self) -> None:
        self._open = 0  # version that is under way; 0: none
        self._complete = 0

    def saw(self, message: Watched) -> Iterator[str]:
        if message.kind in ("OPENED", "RESYNC"):
            self._open = self._complete = 0
            return
        if message.kind != "EVENTS":
            if self._open:
                yield f"version {self._open} was left open"
            return
        versions = {event.version for event in message.events}
        if not versions:
            yield "a message of events holds none"
            return
        if self._open not in (0, *versions):
            yield f"version {self._open} was left open"
        if min(versions) <= self._complete:
            yield f"version {min(versions)} was complete already"
        self._complete = max(versions) if message.token else max(self._complete, *(v - 1 for v in versions))
        self._open = 0 if message.token else max(versions)
