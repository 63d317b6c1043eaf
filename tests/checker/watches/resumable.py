"""RESUMABLE: a stream opened with a token goes on behind it, without a snapshot; RESYNC only where that is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.checker.history import Watched
from tests.checker.violation import Promise
from tests.checker.watches.word import WatchWord


class Resumable(WatchWord):
    """Attributes: `excused`, reasons for which a RESYNC is allowed: a part of each, e.g. "behind by"."""

    promise = Promise(
        "RESUMABLE",
        "a watch that is opened with a token goes on exactly behind it at any replica, and is not made to start over",
        "hq/registry/watches.py (_resumed), hq/memory/history.py (complete_after), store/compaction.py",
    )

    def __init__(self, excused: Sequence[str] = ()) -> None:
        self.excused = excused
        self._resumed: int | None = None
        self._began = False

    def saw(self, message: Watched) -> Iterator[str]:
        if message.kind == "OPENED":
            self._resumed, self._began = message.resumed_from, False
            return
        if message.kind == "RESYNC":
            if not any(part in message.reason for part in self.excused):
                yield f"RESYNC: {message.reason or 'no reason given'}"
            self._resumed = None
        if self._resumed is not None and message.kind == "SNAPSHOT":
            yield "a snapshot came in place of changes"
        if self._resumed is not None and not self._began and message.token and message.version < self._resumed:
            yield f"it goes on at version {message.version}, before its token of {self._resumed}"
        self._began = True
