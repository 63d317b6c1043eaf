"""Frames: instances in encoded form, spliced from prepared parts, never decoded or encoded to answer a read.

A frame is the field `instances = 1` of an answer, ready to be copied:

    0x0A len ( 0x0A len meta versions · 0x12 len spec · 0x1A len status heartbeats agent )

`meta`, `spec` and `status` are bytes as the store holds them. The tails (versions; heartbeat times, agent) are the only
things that HQ adds, and hold no field that the stored parts hold: the wire format would merge a singular message
that occurs twice, but widely used decoders replace it and lose fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple


class FrameParts(NamedTuple):
    """The stored parts of one instance and what the tails are made from.

    Attributes:
        meta: encoded InstanceMeta without version and status_version.
        spec: encoded InstanceSpec.
        status: encoded InstanceStatus without last_heartbeat_time and heartbeat.
        version: of meta and spec.
        status_version: of status.
        heard: (revision id, milliseconds of Unix time) of each revision that was heard.
        agent: encoded field `agent` of InstanceStatus: one of the tails below, or `agent_silent`.
    """

    meta: bytes
    spec: bytes
    status: bytes
    version: int
    status_version: int
    heard: Sequence[tuple[str, int]] = ()
    agent: bytes = b""


class Shape(NamedTuple):
    """Where the stored parts of a frame lie: their lengths in bytes, without tags, lengths and tails."""

    meta: int
    spec: int
    status: int


def varint(value: int) -> bytes:
    """A non-negative number as the wire format writes it."""
    if value < 0x4000:
        return _SHORT[value]
    if value < 0x200000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    if 0x10000000 <= value < 0x800000000:  # seconds and nanoseconds: every frame has some
        a, b, c = value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80, value >> 21 & 0x7F | 0x80
        return bytes((value & 0x7F | 0x80, a, b, c, value >> 28))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


# Nearly all lengths: a start encodes ten times as many as there are instances.
_SHORT = [bytes((n,)) if n < 0x80 else bytes((n & 0x7F | 0x80, n >> 7)) for n in range(0x4000)]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset and the offset after it. For bytes that HQ itself wrote: no bounds are checked."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def delimited_field(tag: bytes, *payload: bytes) -> bytes:
    """A length-delimited field."""
    body = b"".join(payload)
    return tag + varint(len(body)) + body


_META, _SPEC, _STATUS = b"\x0a", b"\x12", b"\x1a"
_VERSION, _STATUS_VERSION = b"\x40", b"\x48"  # InstanceMeta 8 and 9, varint
_LAST_HEARTBEAT, _HEARTBEAT = b"\x0a", b"\x22"  # InstanceStatus 1 and 4
_LAST_MS = 253_402_300_799_999  # JSON cannot express times after the year 9999
AGENT_UNKNOWN, AGENT_HEARD = b"\x2a\x00", b"\x2a\x02\x08\x01"  # InstanceStatus 5, a Condition: empty, and TRUE
FRAME_TAG = b"\x0a"  # instances = 1 and instance = 1 of every answer that holds frames


def shape(parts: FrameParts) -> Shape:
    """The shape that `splice(parts)` will have."""
    return Shape(len(parts.meta), len(parts.spec), len(parts.status))


def splice(parts: FrameParts) -> bytes:
    """The frame of an instance."""
    meta, spec, status, version, status_version, heard, agent = parts
    versions, observed = version_tail(version, status_version), heartbeat_tail(heard) + agent
    meta_bytes, spec_bytes, status_bytes = len(meta) + len(versions), len(spec), len(status) + len(observed)
    meta_size, spec_size, status_size = varint(meta_bytes), varint(spec_bytes), varint(status_bytes)
    body_bytes = 3 + len(meta_size) + meta_bytes + len(spec_size) + spec_bytes + len(status_size) + status_bytes
    # In one piece: a start makes millions, and a body that is joined first would be copied once more.
    return b"".join(
        (
            FRAME_TAG,
            varint(body_bytes),
            _META,
            meta_size,
            meta,
            versions,
            _SPEC,
            spec_size,
            spec,
            _STATUS,
            status_size,
            status,
            observed,
        )
    )


def agent_silent(condition: bytes) -> bytes:
    """The field `agent` of InstanceStatus, from an encoded Condition."""
    return delimited_field(b"\x2a", condition)


def split_frame(frame: bytes, lengths: Shape) -> tuple[bytes, bytes, bytes]:
    """The stored meta, spec and status of a frame that `splice` made."""
    _, at = read_varint(frame, 1)
    meta_size, meta_at = read_varint(frame, at + 1)
    _, spec_at = read_varint(frame, meta_at + meta_size + 1)
    _, status_at = read_varint(frame, spec_at + lengths.spec + 1)
    return (
        frame[meta_at : meta_at + lengths.meta],
        frame[spec_at : spec_at + lengths.spec],
        frame[status_at : status_at + lengths.status],
    )


def body(frame: bytes) -> bytes:
    """The encoded Instance inside a frame."""
    _, at = read_varint(frame, 1)
    return frame[at:]


def version_tail(version: int, status_version: int) -> bytes:
    """The fields version and status_version of InstanceMeta; a zero is left out, as proto3 does."""
    tail = _VERSION + varint(version) if version else b""
    return tail + _STATUS_VERSION + varint(status_version) if status_version else tail


def heartbeat_tail(heard: Sequence[tuple[str, int]]) -> bytes:
    """The fields last_heartbeat_time and heartbeat of InstanceStatus."""
    if not heard:
        return b""
    if len(heard) == 1:  # as nearly everywhere: at a start, millions of them
        ((revision_id, unix_ms),) = heard
        time, named = timestamp(unix_ms), _revision_id_field(revision_id)
        size = _SHORT[len(time)]
        parts = (
            _LAST_HEARTBEAT,
            size,
            time,
            _HEARTBEAT,
            varint(len(named) + 2 + len(time)),
            named,
            b"\x12",
            size,
            time,
        )
        return b"".join(parts)
    times = [timestamp(unix_ms) for _, unix_ms in heard]
    latest = max(range(len(heard)), key=lambda i: heard[i][1]) if len(heard) > 1 else 0
    tail = delimited_field(_LAST_HEARTBEAT, times[latest])
    for (revision_id, _), time in zip(heard, times, strict=True):
        tail += delimited_field(_HEARTBEAT, _revision_id_field(revision_id), delimited_field(b"\x12", time))
    return tail


@lru_cache(4_096)  # many instances share a revision
def _revision_id_field(revision_id: str) -> bytes:
    return delimited_field(b"\x0a", revision_id.encode())


def timestamp(unix_ms: int) -> bytes:
    """An encoded google.protobuf.Timestamp; times before 1970 become 1970, those after the year 9999 its end."""
    seconds, ms = divmod(min(max(unix_ms, 0), _LAST_MS), 1000)
    encoded = b"\x08" + varint(seconds) if seconds else b""
    return encoded + b"\x10" + varint(ms * 1_000_000) if ms else encoded
