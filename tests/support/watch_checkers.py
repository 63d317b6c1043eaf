"""What a watch promises, one checker per word (tests/checker/watches/), for tests that hold a stream in their hands.

A checker is told what one client sees of one watch: that it opened a stream (with a token or without), each message,
and nothing else; a failure prints the word. What should have been seen is asked of `Truth`, which reads the store's own
order of changes and keeps whole instances: here they are compared field by field, where a history has marks only.
"""

from __future__ import annotations

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.checker.history import Seen, Watched
from tests.checker.past import TrueEvent
from tests.checker.watches.bookmarkable import Bookmarkable
from tests.checker.watches.complete import Complete
from tests.checker.watches.explicit import Explicit
from tests.checker.watches.ordered import Ordered
from tests.checker.watches.resumable import Resumable
from tests.checker.watches.unique import Unique
from tests.checker.watches.whole import Whole
from tests.checker.watches.word import WatchWord
from tests.support.reference_instances import Truth, passes

Message = pb.WatchInstancesResponse


class Broken(AssertionError):
    """A promise of the watch does not hold."""


class _Filtered:
    """The truth as one filter shows it. Heartbeat times are left out: a heartbeat is no event."""

    def __init__(self, truth: Truth, wanted: pb.InstanceFilter) -> None:
        self._truth, self._wanted = truth, wanted

    def matching(self, version: int) -> dict[str, object]:
        return {each.meta.id: _timeless(each) for each in self._truth.matching(self._wanted, version)}

    def at(self, instance_id: str, version: int) -> object:
        instance = self._truth.at(version).get(instance_id)
        return _timeless(instance) if instance is not None and passes(self._wanted, instance) else None

    def events(self, after: int, upto: int) -> list[TrueEvent]:
        return [TrueEvent(*event) for event in self._truth.events(self._wanted, after, upto)]


class Checkers:
    """All of them for one watch."""

    def __init__(self, truth: Truth, wanted: pb.InstanceFilter) -> None:
        self.resumable = Resumable()
        filtered = _Filtered(truth, wanted)
        self.all: tuple[WatchWord, ...] = (
            *(Explicit(), Bookmarkable(), Ordered(), Unique(), Whole(), self.resumable),
            Complete(lambda _: filtered, lambda seen: _timeless(self._puts.get((seen.id, seen.version)))),
        )
        self._puts: dict[tuple[str, int], model.Instance] = {}
        self._tokens: dict[str, int] = {}

    def opened(self, token: str) -> None:
        self._show(Watched("", "OPENED", resumed_from=self._tokens[token] if token else None))

    def saw(self, message: Message) -> None:
        if len(message.sources) != 1:
            raise Broken(f"BOOKMARKABLE is broken: {len(message.sources)} sources")
        version = version_of(message)
        if message.resume_token and self._tokens.setdefault(message.resume_token, version) != version:
            raise Broken(f"BOOKMARKABLE is broken: one token for several versions, {version} is one of them")
        self._puts = {(e.put.meta.id, e.version): e.put for e in message.events if e.HasField("put")}
        self._show(_watched(message))

    def _show(self, message: Watched) -> None:
        for checker in self.all:
            for broken in checker.saw(message):
                raise Broken(f"{checker.promise.word} is broken: {broken}")


def _watched(message: Message) -> Watched:
    return Watched(
        "",
        pb.WatchKind.Name(message.kind).removeprefix("WATCH_KIND_"),
        version_of(message),
        token=bool(message.resume_token),
        events=tuple(Seen(str(e.WhichOneof("change")), id_of(e), e.version) for e in message.events),
        collapsed=message.collapsed,
        reason=message.reason,
    )


def version_of(message: Message) -> int:
    """Version that the token in a message names."""
    return message.sources[0].version


def id_of(event: pb.WatchEvent) -> str:
    if event.HasField("put"):
        return event.put.meta.id
    return (event.delete if event.HasField("delete") else event.left).id


def _timeless(instance: model.Instance | None) -> model.Instance | None:
    if instance is None:
        return None
    copy = model.Instance()
    copy.CopyFrom(instance)
    copy.status.ClearField("heartbeat")
    copy.status.ClearField("last_heartbeat_time")
    return copy
