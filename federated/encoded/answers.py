"""Answers that stay encoded, and their sources."""

from __future__ import annotations

from google.protobuf.message import Message

from federated.encoded import scan
from federated.errors import NoAnswer
from hqapi.pieces import Pieces
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json


def silent_source(name: str, silence: NoAnswer) -> service_pb2.Source:
    """The source of a location whose instances are missing from the answer."""
    return service_pb2.Source(cluster=name, error=str(silence))


def last_good_source(encoded: bytes, age_s: float, silence: NoAnswer) -> bytes:
    """The encoded source of an old answer that is served because the location is silent now."""
    source = service_pb2.Source.FromString(encoded)
    if source.HasField("staleness"):  # otherwise it was unknown then, and still is
        staleness_s = source.staleness.ToMilliseconds() / 1000 + age_s
        source.staleness.FromMilliseconds(round(staleness_s * 1000))
    source.stale = True
    source.error = f"no response: {silence}; showing the last one, {age_s:.1f} s old"
    return source.SerializeToString()


def encoded_sources(sources: dict[str, bytes], silent: dict[str, NoAnswer], number: int = 3) -> bytes:
    """Sources in order of locations, as repeated field `number` of an answer."""
    missing = {name: silent_source(name, silence).SerializeToString() for name, silence in silent.items()}
    together = sorted({**sources, **missing}.items())
    return b"".join(scan.delimited_field(number, source) for _, source in together)


class RawAnswer:
    """An encoded message of a type."""

    __slots__ = ("_body", "_type")

    def __init__(self, body: bytes, type_: type[Message]) -> None:
        self._body, self._type = body, type_

    def proto(self) -> bytes:
        return self._body

    async def json(self) -> bytes:
        return to_json(self._type.FromString(self._body))


class ListAnswer:
    """A FindInstancesResponse whose instances stay encoded: fields `instances = 1`, and the rest of the message."""

    __slots__ = ("_frames", "_pieces", "_tail")

    def __init__(self, frames: list[bytes], tail: bytes, pieces: Pieces) -> None:
        self._frames, self._tail, self._pieces = frames, tail, pieces

    def proto(self) -> bytes:
        return b"".join((*self._frames, self._tail))

    async def json(self) -> bytes:
        return await frames_as_json(self._frames, self._pieces) + tail_as_json(self._tail)


async def frames_as_json(frames: list[bytes], pieces: Pieces) -> bytes:
    """The beginning of a FindInstancesResponse in JSON, up to the end of its instances; `tail_as_json` continues."""
    encoded = await pieces.all("json", _frame_as_json, frames)
    return b'{"instances":[' + b",".join(encoded) + b"]," if encoded else b"{"


def tail_as_json(tail: bytes) -> bytes:
    """The rest of an encoded FindInstancesResponse; it contains at least the sources."""
    return to_json(service_pb2.FindInstancesResponse.FromString(tail))[1:]


def _frame_as_json(frame: bytes) -> bytes:
    field = next(scan.fields(frame))
    return to_json(instance_pb2.Instance.FromString(frame[field.value_at : field.end]))
