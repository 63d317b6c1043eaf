"""What a watch promises, one checker per word; a failure prints the word.

A checker is told what one client sees of one watch: that it opened a stream (with a token or without), each message,
and nothing else, so the same checkers serve replicas in memory and real ones under real faults. What should have been
seen is asked of `Truth`, which reads the store's own order of changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.truth import TrueEvent, Truth

Message = pb.WatchInstancesResponse


class Broken(AssertionError):
    """A promise of the watch does not hold."""


class Checker:
    """Sees one watch through all its streams. The base sees to nothing."""

    word = ""

    def opened(self, token: str) -> None:
        """The client opened a stream; with a token it goes on where the token was given."""

    def saw(self, message: Message) -> None:
        """A message arrived."""

    def hold(self, condition: object, what: str) -> None:
        """Raises Broken."""
        if not condition:
            raise Broken(f"{self.word} is broken: {what}")


class Ordered(Checker):
    """Versions never go back."""

    word = "ORDERED"

    def __init__(self) -> None:
        self._newest = 0
        self._complete: dict[str, int] = {}

    def opened(self, token: str) -> None:
        self._newest = self._complete.get(token, 0)

    def saw(self, message: Message) -> None:
        if message.kind == pb.WATCH_KIND_RESYNC:
            self._newest = 0
        if message.kind == pb.WATCH_KIND_EVENTS:
            for event in message.events:
                self.hold(event.version >= self._newest, f"version {event.version} after {self._newest}")
                self._newest = event.version
        if message.resume_token:
            version = version_of(message)
            self.hold(version >= self._newest, f"a token of version {version} after events of {self._newest}")
            self._newest = self._complete[message.resume_token] = version


class Unique(Checker):
    """No event comes twice that a token had made certain; a client may well go on from an older token."""

    word = "UNIQUE"

    def __init__(self) -> None:
        self._seen: set[tuple[int, str]] = set()
        self._since_token: set[tuple[int, str]] = set()
        self._snapshot: set[str] = set()
        self._kept: dict[str, frozenset[tuple[int, str]]] = {}

    def opened(self, token: str) -> None:
        self._forget()
        self._seen |= self._kept[token] if token else frozenset()

    def saw(self, message: Message) -> None:
        if message.kind == pb.WATCH_KIND_RESYNC:
            self._forget()
        for event in message.events:
            if message.kind == pb.WATCH_KIND_SNAPSHOT:
                self.hold(event.put.meta.id not in self._snapshot, f"{event.put.meta.id} is twice in the snapshot")
                self._snapshot.add(event.put.meta.id)
                continue
            key = event.version, id_of(event)
            self.hold(key not in self._seen | self._since_token, f"version {key[0]} of {key[1]} came twice")
            self._since_token.add(key)
        if message.resume_token:
            self._seen |= self._since_token
            self._since_token.clear()
            self._kept[message.resume_token] = frozenset(self._seen)

    def _forget(self) -> None:
        self._seen.clear()
        self._since_token.clear()
        self._snapshot.clear()


class Whole(Checker):
    """The events of one version are in one message, or in several of which only the last has a token."""

    word = "WHOLE"

    def __init__(self) -> None:
        self._open = 0  # version that is under way; 0: none
        self._complete = 0

    def opened(self, token: str) -> None:
        self._open = self._complete = 0

    def saw(self, message: Message) -> None:
        if message.kind == pb.WATCH_KIND_RESYNC:
            self._open = self._complete = 0
        if message.kind != pb.WATCH_KIND_EVENTS:
            self.hold(not self._open or message.kind == pb.WATCH_KIND_RESYNC, f"version {self._open} was left open")
            return
        versions = {event.version for event in message.events}
        self.hold(versions, "a message of events holds none")
        self.hold(self._open in (0, *versions), f"version {self._open} was left open")
        self.hold(min(versions) > self._complete, f"version {min(versions)} was complete already")
        self._complete = max(versions) if message.resume_token else max(self._complete, *(v - 1 for v in versions))
        self._open = 0 if message.resume_token else max(versions)


class Complete(Checker):
    """At every token the client knows exactly what was true, and has been told of each change on the way."""

    word = "COMPLETE"

    def __init__(self, truth: Truth, wanted: pb.InstanceFilter) -> None:
        self._truth, self._wanted = truth, wanted
        self._known: dict[str, model.Instance] = {}
        self._events: list[TrueEvent] = []
        self._at: int | None = None  # everything up to here was told; None: nothing was yet
        self._collapsed = False
        self._kept: dict[str, tuple[int, dict[str, model.Instance]]] = {}

    def opened(self, token: str) -> None:
        self._events, self._collapsed = [], False
        self._at, known = self._kept[token] if token else (None, {})
        self._known = dict(known)

    def saw(self, message: Message) -> None:
        if message.kind == pb.WATCH_KIND_RESYNC:
            self.opened("")
        for event in message.events:
            self._take(event)
            if message.kind == pb.WATCH_KIND_EVENTS:
                self._events.append(TrueEvent(event.version, id_of(event), str(event.WhichOneof("change"))))
        self._collapsed = self._collapsed or message.collapsed
        if message.resume_token:
            self._check(version_of(message))
            self._kept[message.resume_token] = version_of(message), dict(self._known)

    def _take(self, event: pb.WatchEvent) -> None:
        instance_id = id_of(event)
        if event.HasField("put"):
            self._known[instance_id] = event.put
            return
        self.hold(instance_id in self._known, f"{instance_id} went at {event.version}, and nobody had told of it")
        self._known.pop(instance_id)

    def _check(self, version: int) -> None:
        true = {instance.meta.id: instance for instance in self._truth.matching(self._wanted, version)}
        differing = sorted(i for i in true.keys() | self._known.keys() if not _same(true.get(i), self._known.get(i)))
        self.hold(not differing, f"at version {version} the watch and the truth differ in {differing}")
        if self._at is not None and not self._collapsed:
            missing = set(self._truth.events(self._wanted, self._at, version)) ^ set(self._events)
            self.hold(not missing, f"between versions {self._at} and {version}: {sorted(missing)}")
        self._at, self._events, self._collapsed = version, [], False


class Resumable(Checker):
    """A stream opened with a token goes on behind it, without a snapshot; or says RESYNC where that is allowed.

    Attributes:
        excused: reasons for which the test allows a RESYNC now: a part of each, e.g. "fell behind".
    """

    word = "RESUMABLE"

    def __init__(self) -> None:
        self.excused: Sequence[str] = ()
        self._resumed = False

    def opened(self, token: str) -> None:
        self._resumed = bool(token)

    def saw(self, message: Message) -> None:
        if message.kind == pb.WATCH_KIND_RESYNC:
            excused = any(part in message.reason for part in self.excused)
            self.hold(excused, f"RESYNC: {message.reason or 'no reason given'}")
            self._resumed = False
        self.hold(not (self._resumed and message.kind == pb.WATCH_KIND_SNAPSHOT), "a snapshot came in place of changes")


class Bookmarkable(Checker):
    """A message with a token says which version that is; bookmarks have one, and hold no events."""

    word = "BOOKMARKABLE"

    def __init__(self) -> None:
        self._versions: dict[str, int] = {}

    def saw(self, message: Message) -> None:
        self.hold(len(message.sources) == 1, f"{len(message.sources)} sources")
        if message.kind == pb.WATCH_KIND_BOOKMARK:
            self.hold(message.resume_token, "a bookmark without a token")
            self.hold(not message.events, "a bookmark with events")
        if message.resume_token:
            known = self._versions.setdefault(message.resume_token, version_of(message))
            self.hold(known == version_of(message), f"one token for version {known} and {version_of(message)}")


class Explicit(Checker):
    """A break is said and followed by a snapshot; a stream begins with what it is: a snapshot, or what was missed."""

    word = "EXPLICIT"

    def __init__(self) -> None:
        self._synced = self._begun = False

    def opened(self, token: str) -> None:
        self._synced = self._begun = False

    def saw(self, message: Message) -> None:
        kind = message.kind
        self.hold(kind in pb.WatchKind.values()[1:], f"kind {kind}")
        if kind == pb.WATCH_KIND_RESYNC:
            self.hold(message.reason, "a RESYNC without a reason")
            self.hold(not message.resume_token, "a RESYNC with a token: nothing can go on from here")
            self._synced = self._begun = False
        elif kind == pb.WATCH_KIND_SNAPSHOT:
            self.hold(not self._synced, "a snapshot in the middle, without RESYNC")
            self.hold(not message.resume_token, "a token before the snapshot is complete")
        elif kind == pb.WATCH_KIND_SYNCED:
            self.hold(not self._synced, "SYNCED twice")
            self._synced = True
        else:
            self.hold(self._synced, "changes before SYNCED")


class Checkers:
    """All of them for one watch."""

    def __init__(self, truth: Truth, wanted: pb.InstanceFilter) -> None:
        self.resumable = Resumable()
        self.all: tuple[Checker, ...] = (
            *(Explicit(), Bookmarkable(), Ordered(), Unique(), Whole(), self.resumable),
            Complete(truth, wanted),
        )

    def opened(self, token: str) -> None:
        for checker in self.all:
            checker.opened(token)

    def saw(self, message: Message) -> None:
        for checker in self.all:
            checker.saw(message)


def version_of(message: Message) -> int:
    """Of the token in a message: its source stands there."""
    return message.sources[0].version


def id_of(event: pb.WatchEvent) -> str:
    if event.HasField("put"):
        return event.put.meta.id
    return (event.delete if event.HasField("delete") else event.left).id


def _same(true: model.Instance | None, seen: model.Instance | None) -> bool:
    """But for heartbeat times: a beat is no event."""
    return _timeless(true) == _timeless(seen)


def _timeless(instance: model.Instance | None) -> model.Instance | None:
    if instance is None:
        return None
    copy = model.Instance()
    copy.CopyFrom(instance)
    copy.status.ClearField("heartbeat")
    copy.status.ClearField("last_heartbeat_time")
    return copy
