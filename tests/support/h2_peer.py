"""The other side of a machine of serving.h2, by hand: bytes in, and what it wrote as frames."""

from __future__ import annotations

from typing import Any, NamedTuple

from serving.h2 import frames, hpack
from serving.h2.frames import ErrorCode
from serving.h2.machine import Http2Machine
from serving.h2.outgoing import Http2Stream
from serving.h2.state import FAILED, Event, Http2Settings
from serving.head import AmbiguousHead, Head

Pairs = list[tuple[bytes, bytes]]

REQUEST: Pairs = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/a"), (b":authority", b"x")]
OK = hpack.encode([(b":status", b"200")])
DONE = hpack.encode([(b"grpc-status", b"0")])
MIB = 1 << 20


class Frame(NamedTuple):
    kind: int
    flags: int
    stream_id: int
    payload: bytes


def parse(data: bytes) -> list[Frame]:
    """Whole frames; a preface before them is left out."""
    found, at = [], len(frames.PREFACE) if data.startswith(frames.PREFACE) else 0
    while at < len(data):
        high, low, kind, flags, stream_id = frames.FRAME.unpack_from(data, at)
        start, at = at + frames.HEADER_BYTES, at + frames.HEADER_BYTES + (high << 8 | low)
        assert at <= len(data), "a frame is not whole"
        found.append(Frame(kind, flags, stream_id, data[start:at]))
    return found


def written(machine: Http2Machine) -> bytes:
    """What it wants to write now."""
    size, taken = machine.outgoing.size, b"".join(machine.outgoing.take())
    assert size == len(taken), "the size of what is to be written is miscounted"
    return taken


def sent(machine: Http2Machine) -> list[Frame]:
    """The same as frames."""
    return parse(written(machine))


def all_events(machine: Http2Machine, most: int = 64) -> list[Event]:
    """All events, taken turn by turn as a driver does."""
    found = machine.events(most)
    while machine.is_behind:
        found += machine.events(most)
    return found


def tell(machine: Http2Machine, *data: bytes) -> list[Event]:
    """All that comes of these bytes, each in a turn of its own."""
    found: list[Event] = []
    for part in data:
        machine.receive(part)
        found += all_events(machine)
    return found


def server(room: int = 16 * MIB, **settings: int) -> Http2Machine:
    """Greeted by a client; nothing is left to be written."""
    machine = Http2Machine(Http2Settings(**settings))
    tell(machine, frames.PREFACE + frames.settings({}))
    machine.outgoing.take()
    machine.outgoing.room = room
    return machine


def request(stream_id: int, more: Pairs | None = None, *, end: bool = True) -> bytes:
    """A request, its headers in plain literals."""
    flags = frames.END_HEADERS | (frames.END_STREAM if end else 0)
    return frames.frame(frames.HEADERS, flags, stream_id, hpack.encode([*REQUEST, *(more or [])]))


def data(stream_id: int, payload: bytes = b"", *, end: bool = False) -> bytes:
    return frames.frame(frames.DATA, frames.END_STREAM if end else 0, stream_id, payload)


def ping(payload: bytes = b"12345678") -> bytes:
    return frames.frame(frames.PING, 0, 0, payload)


def opened(machine: Http2Machine, stream_id: int, *, end: bool = True) -> Http2Stream:
    """A stream that the client has just opened."""
    ((_, stream, _, _),) = tell(machine, request(stream_id, end=end))
    assert stream is not None
    return stream


def fault(events: list[Event]) -> str:
    """The error code that ended the connection; empty: it goes on."""
    return next((what.partition(":")[0] for kind, _, what, _ in events if kind == FAILED), "")


def resets(found: list[Frame]) -> dict[int, ErrorCode]:
    """Streams that were reset, and why."""
    return {f.stream_id: ErrorCode(int.from_bytes(f.payload, "big")) for f in found if f.kind == frames.RST_STREAM}


def goaways(found: list[Frame]) -> list[tuple[int, ErrorCode]]:
    """The last streams of all GOAWAYs, and why."""
    pairs = [frames.GOAWAY_HEAD.unpack_from(f.payload) for f in found if f.kind == frames.GOAWAY]
    return [(last, ErrorCode(code)) for last, code in pairs]


def body(found: list[Frame], stream_id: int) -> bytes:
    """All DATA of a stream."""
    return b"".join(f.payload for f in found if f.kind == frames.DATA and f.stream_id == stream_id)


def is_ended(found: list[Frame], stream_id: int) -> bool:
    """Whether END_STREAM was sent."""
    return any(
        f.flags & frames.END_STREAM
        for f in found
        if f.stream_id == stream_id and f.kind in (frames.DATA, frames.HEADERS)
    )


def plain(events: list[Event]) -> list[tuple[Any, ...]]:
    """Events as values that can be compared."""
    return [(kind, stream.id if stream else 0, _plain(what), end) for kind, stream, what, end in events]


def _plain(what: Any) -> Any:
    if isinstance(what, AmbiguousHead):
        return str(what), _plain(what.head)
    if isinstance(what, Head):
        return what.method, what.target, what.authority, what.status, what.fields, what.named
    return what
