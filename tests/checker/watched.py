"""Watches: each one of each client is shown to one checker per word (watches/)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.checker.history import Item, Op, Seen, Watched
from tests.checker.past import Past, TrueEvent, Wanted
from tests.checker.story import Story
from tests.checker.violation import Violation
from tests.checker.watches.bookmarkable import Bookmarkable
from tests.checker.watches.complete import Complete
from tests.checker.watches.explicit import Explicit
from tests.checker.watches.ordered import Ordered
from tests.checker.watches.resumable import Resumable
from tests.checker.watches.unique import Unique
from tests.checker.watches.whole import Whole
from tests.checker.watches.word import WatchWord

# What HQ may answer a token with where it cannot go on. Another history, a slow reader and a token that history in
# memory does not reach back to are promised; everything else is not.
EXCUSES = ("history", "behind by", "the token is of epoch", "the token is newer", "compacted")


class Filtered:
    """A past as one filter shows it."""

    def __init__(self, past: Past, wanted: Wanted) -> None:
        self._past, self._wanted = past, wanted

    def matching(self, version: int) -> dict[str, Item]:
        return self._past.matching(self._wanted, version)

    def at(self, instance_id: str, version: int) -> Item | None:
        passes = self._past.passes(self._wanted, instance_id, version)
        return self._past.item(instance_id, version) if passes else None

    def events(self, after: int, upto: int) -> Iterable[TrueEvent]:
        return self._past.events(self._wanted, after, upto)


def words(story: Story, wanted: Wanted) -> list[WatchWord]:
    """One checker per word, for one watch with this filter."""

    def truth_of(epoch: str) -> Filtered | None:
        past = story.past_of(epoch)
        return Filtered(past, wanted) if past is not None else None

    def shown(event: Seen) -> Item:
        return event.item

    return [
        *(Explicit(), Bookmarkable(), Ordered(), Unique(), Whole(), Resumable(EXCUSES)),
        Complete(truth_of, shown),
    ]


def check(story: Story) -> Iterator[Violation]:
    by_watch: defaultdict[str, list[tuple[Op, Watched]]] = defaultdict(list)
    for op in story.watched:
        if op.watch is not None:
            by_watch[op.watch.id].append((op, op.watch))
    for messages in by_watch.values():
        checkers = words(story, messages[0][1].wanted)
        for op, message in messages:
            for checker in checkers:
                for broken in checker.saw(message):
                    yield checker.promise.broken(f"{broken} (watch {message.id} at {message.replica})", op)
