"""What a watch has shown so far, and where it may go on. Decisions only, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from clients.errors import HqApiError
from hqpb.v1 import instance_pb2, service_pb2


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """Some instances of a snapshot. Complete only when Synced follows."""

    instances: tuple[instance_pb2.Instance, ...]


@dataclass(frozen=True, slots=True)
class Synced:
    """What was shown is complete: the snapshot, or what was held before a resume."""

    resume_token: str
    sources: tuple[service_pb2.Source, ...]


@dataclass(frozen=True, slots=True)
class Changes:
    """Events in order of their versions, never a part of a version.

    Attributes:
        collapsed: steps in between are left out: the replica itself had missed them.
    """

    events: tuple[service_pb2.WatchEvent, ...]
    resume_token: str
    sources: tuple[service_pb2.Source, ...]
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing was missed up to the version in sources."""

    resume_token: str
    sources: tuple[service_pb2.Source, ...]


@dataclass(frozen=True, slots=True)
class Resync:
    """Forget everything that this watch has shown: a fresh snapshot follows."""

    reason: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """There is no stream at the moment: what was shown may be getting old. The watch goes on by itself."""

    error: HqApiError
    retry_in_s: float


WatchItem = SnapshotPart | Synced | Changes | Bookmark | Resync | Interrupted


class WatchProgress:
    """Turns messages of any number of streams, one after the other, into one unbroken story."""

    def __init__(self, resume_token: str = "") -> None:
        self.resume_token = resume_token
        self._shows_parts = False  # of a snapshot that is not complete
        self._has_state = bool(resume_token)  # whoever brings a token holds the state that belongs to it
        self._pending: list[service_pb2.WatchEvent] = []  # of a version that is not complete
        self._collapsed = False

    def __repr__(self) -> str:
        state = "complete" if self._has_state else "partial" if self._shows_parts else "empty"
        return f"WatchProgress({state}, resume_token={self.resume_token!r})"

    def received(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        """What to show for a message. Kinds of a later API are passed over."""
        match message.kind:
            case service_pb2.WATCH_KIND_SNAPSHOT:
                return self._snapshot(message)
            case service_pb2.WATCH_KIND_SYNCED:
                return self._synced(message)
            case service_pb2.WATCH_KIND_EVENTS:
                return self._events(message)
            case service_pb2.WATCH_KIND_BOOKMARK:
                return self._bookmark(message)
            case service_pb2.WATCH_KIND_RESYNC:
                self._forget()
                return [Resync(message.reason or "the server lost continuity")]
            case _:
                return []

    def broke(self) -> list[WatchItem]:
        """The stream ended, in whatever way; what to show for it. What follows comes from another stream."""
        self._pending.clear()
        if not self._shows_parts:
            return []
        self._forget()
        return [Resync("the stream ended before the snapshot was complete")]

    def voided(self, reason: str) -> list[WatchItem]:
        """The server refuses the token: start over; what to show for it."""
        shown = self._has_state or self._shows_parts
        self._forget()
        return [Resync(reason)] if shown else []

    def _snapshot(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        # The contract announces a second snapshot by RESYNC. Without it we still must not mix two of them.
        unannounced = self.voided("a new snapshot began") if self._has_state else []
        self._shows_parts = True
        instances = tuple(event.put for event in message.events if event.HasField("put"))
        return [*unannounced, SnapshotPart(instances)] if instances else unannounced

    def _synced(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        self._has_state, self._shows_parts = True, False
        self._move(message)
        return [Synced(self.resume_token, tuple(message.sources))]

    def _events(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        self._pending.extend(message.events)
        self._collapsed |= message.collapsed
        if not message.resume_token:
            return []
        changes = Changes(tuple(self._pending), message.resume_token, tuple(message.sources), self._collapsed)
        self._pending.clear()
        self._collapsed = False
        self._move(message)
        return [changes]

    def _bookmark(self, message: service_pb2.WatchInstancesResponse) -> list[WatchItem]:
        self._move(message)
        return [Bookmark(self.resume_token, tuple(message.sources))]

    def _move(self, message: service_pb2.WatchInstancesResponse) -> None:
        if self._has_state and message.resume_token:
            self.resume_token = message.resume_token

    def _forget(self) -> None:
        self.resume_token = ""
        self._has_state = self._shows_parts = self._collapsed = False
        self._pending.clear()
