"""BOOKMARKABLE: a message with a token says which version that is; bookmarks have one, and hold no events."""

from __future__ import annotations

from collections.abc import Iterator

from tests.checker.history import Watched
from tests.checker.violation import Promise
from tests.checker.watches.word import WatchWord


class Bookmarkable(WatchWord):
    promise = Promise(
        "BOOKMARKABLE",
        "a bookmark has a token and no events; SYNCED has a token: from there a client can go on",
        "hq/registry/watches.py (_bookmark, _token)",
    )

    def saw(self, message: Watched) -> Iterator[str]:
        if message.kind in ("BOOKMARK", "SYNCED") and not message.token:
            yield f"a {message.kind} without a token"
        if message.kind == "BOOKMARK" and message.events:
            yield "a bookmark with events"
