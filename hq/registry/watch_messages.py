"""The messages of a watch, and how much goes into one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from hq.memory import frames
from hq.memory.entry import Entry
from hq.memory.history import put_event
from hq.registry.source import Source
from hqpb.v1 import service_pb2

SNAPSHOT, SYNCED, EVENTS, BOOKMARK, RESYNC = (
    service_pb2.WATCH_KIND_SNAPSHOT,
    service_pb2.WATCH_KIND_SYNCED,
    service_pb2.WATCH_KIND_EVENTS,
    service_pb2.WATCH_KIND_BOOKMARK,
    service_pb2.WATCH_KIND_RESYNC,
)
MESSAGE_BYTES: Final = 1 << 20  # of events, about
# Fields of WatchInstancesResponse.
KINDS: Final = {kind: b"\x08" + frames.varint(kind) for kind in service_pb2.WatchKind.values()}
TOKEN, SOURCES = b"\x1a", b"\x22"


class WatchMessage(NamedTuple):
    """One message of a watch; `events` are encoded fields `events = 2`. `token` is empty inside a version.

    The encoder empties `events`: otherwise they would be in memory twice while a message waits for its reader.
    """

    kind: service_pb2.WatchKind
    source: Source
    events: list[bytes]
    token: str = ""
    reason: str = ""
    collapsed: bool = False


def bookmarks(source: Source, tokens: Iterable[bytes]) -> list[bytes]:
    """Encoded bookmarks of one moment. Idle watches get nothing else, so this takes as few steps as possible."""
    kind, sources = KINDS[BOOKMARK], frames.delimited_field(SOURCES, source.message().SerializeToString())
    return [b"".join((kind, TOKEN, frames.varint(len(token)), token, sources)) for token in tokens]


def in_messages(snapshot: Iterator[Sequence[Entry]]) -> Iterator[list[bytes]]:
    """The snapshot, encoded, in portions of about a message's size. Empty portions between them let the loop run."""
    events: list[bytes] = []
    size = 0
    for number, portion in enumerate(snapshot):
        if number:
            yield []
        for entry in portion:
            events.append(put_event(entry.changed_at(), entry.frame()))
            size += len(events[-1])
            if size >= MESSAGE_BYTES:
                yield events
                events, size = [], 0
    if events:
        yield events


def in_portions(events: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Events in portions of about a message's size; no portion is empty."""
    portion: list[bytes] = []
    size = 0
    for event in events:
        portion.append(event)
        size += len(event)
        if size >= MESSAGE_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
