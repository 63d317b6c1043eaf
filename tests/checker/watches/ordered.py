"""ORDERED: versions never go back."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Watched
from tests.checker.violation import Promise
from tests.checker.watches.word import WatchWord


class Ordered(WatchWord):
    promise = Promise(
        "ORDERED",
        "the versions of a watch never go back, from the token on with which it was opened",
        "hq/memory/fanout.py, hq/memory/history.py (since), hq/registry/watches.py (_resumed)",
    )

    def __init__(self) -> None:
        self._newest = 0

    def saw(self, message: Watched) -> Iterator[str]:
        if message.kind == "OPENED":
            self._newest = message.resumed_from or 0
        if message.kind == "RESYNC":
            self._newest = 0
        if message.kind == "EVENTS":
            for event in message.events:
                if event.version < self._newest:
                    yield f"version {event.version} after {self._newest}"
                self._newest = event.version
        if message.token:
            if message.version < self._newest:
                yield f"a token of version {message.version} after events of {self._newest}"
            self._newest = message.version
