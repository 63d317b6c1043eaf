"""One location's instances for one filter, as its watch shows them: encoded, by id. Pure: the time is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from federated.calls.one_location import Portion
from federated.encoded import scan
from federated.encoded.merge import instance_id
from hqpb.v1 import service_pb2 as pb

QUIET_S: Final = 6.0  # a replica sends a bookmark at least every five seconds
_STALE_S: Final = 10.0  # when replicas, too, report themselves stale
_SOURCE_KEPT_S: Final = 0.1


class LocationFrames:
    """Frames (fields `instances = 1` as an answer holds them) of one location.

    Attributes:
        frames: by id.
        changed: ids whose frame changed or went since they were last taken from here; None: all may have.
        size_bytes: of the frames, including those of a snapshot in progress.
        last_at: when the last message came.
    """

    def __init__(self) -> None:
        self.frames: dict[bytes, bytes] = {}
        self.changed: set[bytes] | None = None
        self.size_bytes = 0
        self.last_at = float("-inf")
        self._is_open = False
        self._is_complete = False
        self._coming: dict[bytes, bytes] = {}
        self._source = pb.Source()
        self._usable_until = float("-inf")
        self._encoded, self._encoded_at = b"", float("-inf")

    def is_usable(self, now: float) -> bool:
        """Whether it may answer: it is complete and recent, and its source reports no problem."""
        return now < self._usable_until and self._is_open and self._is_complete

    @property
    def was_complete(self) -> bool:
        """Whether it was complete once: its content is a last good answer."""
        return self._is_complete or bool(self.frames)

    def source(self, now: float) -> bytes:
        """The encoded Source of an answer that is given now; its staleness grows until the next message."""
        if now - self._encoded_at > _SOURCE_KEPT_S:
            source = pb.Source()
            source.CopyFrom(self._source)
            if source.HasField("staleness"):
                late_s = now - self.last_at + _SOURCE_KEPT_S
                source.staleness.FromMilliseconds(round(self._source.staleness.ToMilliseconds() + late_s * 1000))
            self._encoded, self._encoded_at = source.SerializeToString(), now
        return self._encoded

    def apply_portion(self, portion: Portion, now: float) -> None:
        """Apply what the watch sent. Raises Malformed."""
        if portion.forget:
            self._is_complete = False
            self.size_bytes -= sum(map(len, self._coming.values()))
            self._coming = {}
        for body in portion.bodies:
            self._apply_body(body, now)

    def on_stream_end(self) -> None:
        """Stop answering, since the watch ended; the next one resumes or starts over, and says so."""
        self._is_open = False

    def _apply_body(self, body: bytes, now: float) -> None:
        kind, events, source = _parse_message(body)
        if kind == pb.WATCH_KIND_RESYNC:
            return
        if source:
            self._source = pb.Source.FromString(source)
            self._is_open, self.last_at, self._encoded_at = True, now, float("-inf")
            self._usable_until = now + _good_for_s(self._source)
        target = self._coming if kind == pb.WATCH_KIND_SNAPSHOT else self.frames
        for at, end in events:
            for one, frame in _changes(body, at, end):
                self._put_frame(target, one, frame)
        if kind == pb.WATCH_KIND_SYNCED and not self._is_complete:
            self._swap()

    def _swap(self) -> None:
        self.frames, self._coming = self._coming, {}
        self.size_bytes = sum(map(len, self.frames.values()))
        self.changed, self._is_complete = None, True

    def _put_frame(self, target: dict[bytes, bytes], one: bytes, frame: bytes) -> None:
        before = target.pop(one, b"") if not frame else target.get(one, b"")
        if frame:
            target[one] = frame
        self.size_bytes += len(frame) - len(before)
        if target is self.frames and self.changed is not None:
            self.changed.add(one)


def _good_for_s(source: pb.Source) -> float:
    """How long memory may answer after a message with this source."""
    if source.stale or source.error or source.trust == pb.EPOCH_TRUST_DOUBTED:
        return 0.0
    return min(QUIET_S, _STALE_S - source.staleness.ToMilliseconds() / 1000)


def _parse_message(body: bytes) -> tuple[int, list[tuple[int, int]], bytes]:
    """Kind, places of the events and last source of an encoded WatchInstancesResponse. Raises Malformed."""
    kind, source = 0, b""
    events = []
    for field in scan.fields(body):
        if field.number == 1:
            kind = field.value
        elif field.number == 2:
            events.append((field.value_at, field.end))
        elif field.number == 4:
            source = body[field.value_at : field.end]
    return kind, events, source


def _changes(body: bytes, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    """The id and the new frame (empty: it is gone) of the WatchEvent in body[at:end]."""
    for field in scan.fields(body, at, end):
        if field.number == 2:
            yield (
                instance_id(body, field.value_at, field.end),
                scan.delimited_field(1, body[field.value_at : field.end]),
            )
        elif field.number in (3, 4):
            mention = scan.fields(body, field.value_at, field.end)
            yield next((body[f.value_at : f.end] for f in mention if f.number == 1), b""), b""
