"""What a location has shown in one watch, and what is given out of it. Decisions only: no I/O."""

from __future__ import annotations

from typing import NamedTuple

from federated.encoded import scan
from hqpb.v1 import service_pb2 as pb


class Message(NamedTuple):
    """A message of a location, taken apart.

    Attributes:
        rest: the encoded message without its resume token.
    """

    kind: int
    token: str
    source: bytes
    rest: bytes


def apart(body: bytes) -> Message:
    """Take an encoded WatchInstancesResponse apart; its events stay as they are. Raises Malformed."""
    kind, token, source, at = 0, "", b"", 0
    rest: list[bytes] = []
    for field in scan.fields(body):
        if field.number == 1:
            kind = field.value
        elif field.number == 3 and field.kind == scan.DELIMITED:
            token = body[field.value_at : field.end].decode()
            rest.append(body[at : field.at])
            at = field.end
        elif field.number == 4 and field.kind == scan.DELIMITED:
            source = body[field.value_at : field.end]
    return Message(kind, token, source, b"".join((*rest, body[at:])))


class Portion(NamedTuple):
    """What the watch gives out in one go: nothing of another location may come in between.

    Attributes:
        name: the location.
        bodies: encoded messages without resume tokens.
        token: the location's own, valid once all of them are given out; empty: they complete nothing.
        forget: what was given out of this location before is void.
    """

    name: str
    bodies: list[bytes]
    token: str = ""
    forget: bool = False


class Progress:
    """What a location has shown in a watch, and where it goes on. Decisions only.

    Attributes:
        token: the location's own resume token; empty: from a snapshot.
    """

    def __init__(self, name: str, token: str) -> None:
        self.name, self.token = name, token
        self._is_partial = False  # parts of a snapshot were given out, but not all
        self._parts: list[bytes] = []  # of a version

    def received(self, message: Message) -> list[Portion]:
        """What to give out for a message."""
        match message.kind:
            case pb.WATCH_KIND_SNAPSHOT:
                void = self.voided("a new snapshot begins") if self.token else []
                self._is_partial = True
                return [*void, Portion(self.name, [message.rest])]
            case pb.WATCH_KIND_EVENTS:
                return self._events(message)
            case pb.WATCH_KIND_RESYNC:
                self._forget()
                return [Portion(self.name, [message.rest], forget=True)]
            case _:
                self._is_partial = self._is_partial and message.kind != pb.WATCH_KIND_SYNCED
                self.token = message.token or self.token
                return [Portion(self.name, [message.rest], message.token)]

    def broke(self) -> list[Portion]:
        """What to give out because the stream ended, in whatever way."""
        self._parts.clear()
        return self.voided("the stream ended before the snapshot was complete") if self._is_partial else []

    def voided(self, reason: str) -> list[Portion]:
        """What to give out because all that was shown is void."""
        self._forget()
        return [Portion(self.name, [resync(self.name, reason)], forget=True)]

    def _events(self, message: Message) -> list[Portion]:
        self._parts.append(message.rest)
        if not message.token:
            return []
        parts, self._parts = self._parts, []
        self.token = message.token
        return [Portion(self.name, parts, message.token)]

    def _forget(self) -> None:
        self.token, self._is_partial = "", False
        self._parts.clear()


def resync(name: str, reason: str) -> bytes:
    """Forget what was shown of this location, and of no other."""
    source = pb.Source(cluster=name)
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_RESYNC, sources=[source], reason=reason).SerializeToString()


def nothing(name: str, reason: str) -> bytes:
    """This location has been shown completely: it has no instances here, for this reason."""
    source = pb.Source(cluster=name, error=reason)
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SYNCED, sources=[source]).SerializeToString()


def trouble(name: str, error: str) -> bytes:
    """What was shown of this location may be getting old."""
    source = pb.Source(cluster=name, error=error)
    return pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, sources=[source]).SerializeToString()
