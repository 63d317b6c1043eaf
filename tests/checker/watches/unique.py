"""UNIQUE: no event comes twice that a token had made certain; a client may well go on from an older token."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Watched
from tests.checker.violation import Promise
from tests.checker.watches.word import WatchWord


class Unique(WatchWord):
    promise = Promise(
        "UNIQUE",
        "no event comes twice on the way from one token to the next, nor again later; no instance twice in a snapshot",
        "store/follow.py (old events after a restart), hq/memory/fanout.py, hq/registry/watches.py (_unbroken)",
    )

    def __init__(self) -> None:
        self._certain = 0
        self._since: set[tuple[int, str]] = set()
        self._snapshot: set[str] = set()

    def saw(self, message: Watched) -> Iterator[str]:
        if message.kind in ("OPENED", "RESYNC"):
            self._certain = message.resumed_from or 0 if message.kind == "OPENED" else 0
            self._since.clear()
            self._snapshot.clear()
            return
        for event in message.events:
            if message.kind == "SNAPSHOT":
                if event.id in self._snapshot:
                    yield f"{event.id} is twice in the snapshot"
                self._snapshot.add(event.id)
                continue
            key = event.version, event.id
            if event.version <= self._certain or key in self._since:
                yield f"version {event.version} of {event.id} came twice"
            self._since.add(key)
        if message.token:
            self._certain = message.version
            self._since.clear()
