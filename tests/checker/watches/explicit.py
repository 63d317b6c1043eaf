"""EXPLICIT: a break is said and followed by a snapshot; a stream begins with what it is."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Watched
from tests.checker.violation import Promise
from tests.checker.watches.word import WatchWord

_KINDS = ("OPENED", "SNAPSHOT", "SYNCED", "EVENTS", "BOOKMARK", "RESYNC")


class Explicit(WatchWord):
    promise = Promise(
        "EXPLICIT",
        "a stream begins with a snapshot or with SYNCED, and a break is a RESYNC with a reason, never silence",
        "hq/registry/watches.py (watch, _snapshot), hq/memory/watcher.py (lose)",
    )

    def __init__(self) -> None:
        self._synced = False
        self._epoch = ""

    def saw(self, message: Watched) -> Iterator[str]:
        kind = message.kind
        yield from self._same_epoch(message)
        if kind not in _KINDS:
            yield f"kind {kind}"
        if kind == "RESYNC":
            yield from self._break(message)
        if kind in ("OPENED", "RESYNC"):
            self._synced = False
        elif kind in ("SNAPSHOT", "SYNCED"):
            yield from self._beginning(message)
        elif not self._synced:
            yield "changes before SYNCED"

    def _same_epoch(self, message: Watched) -> Iterator[str]:
        if message.kind in ("OPENED", "RESYNC"):
            self._epoch = message.epoch if message.kind == "OPENED" else ""
            return
        if self._epoch and message.epoch != self._epoch:
            yield f"epoch {message.epoch} after {self._epoch}, without RESYNC"
        self._epoch = message.epoch

    @staticmethod
    def _break(message: Watched) -> Iterator[str]:
        if not message.reason:
            yield "a RESYNC without a reason"
        if message.token:
            yield "a RESYNC with a token: nothing can go on from here"

    def _beginning(self, message: Watched) -> Iterator[str]:
        if self._synced:
            yield f"{message.kind} in the middle, without RESYNC"
        if message.kind == "SNAPSHOT" and message.token:
            yield "a token before the snapshot is complete"
        self._synced = message.kind == "SYNCED"
