"""Answers that stay encoded, and what they say of their sources."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from google.protobuf.message import Message

from federated.encoded import scan
from federated.errors import Silence
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json


def silent_source(name: str, silence: Silence) -> service_pb2.Source:
    """The source of a location whose instances are missing from the answer."""
    return service_pb2.Source(cluster=name, error=str(silence))


def last_good_source(encoded: bytes, age_s: float, silence: Silence) -> bytes:
    """The encoded source of an old answer that is served because the location is silent now."""
    source = service_pb2.Source.FromString(encoded)
    if source.HasField("staleness"):  # else it was not known then, and is not now
        staleness_s = source.staleness.ToMilliseconds() / 1000 + age_s
        source.staleness.FromMilliseconds(round(staleness_s * 1000))
    source.stale = True
    source.error = f"no response: {silence}; showing the last one, {age_s:.1f} s old"
    return source.SerializeToString()


def encoded_sources(sources: dict[str, bytes], silent: dict[str, Silence], number: int = 3) -> bytes:
    """Sources in order of locations, as repeated field `number` of an answer."""
    missing = {name: silent_source(name, silence).SerializeToString() for name, silence in silent.items()}
    together = sorted({**sources, **missing}.items())
    return b"".join(scan.delimited(number, source) for _, source in together)


_SLICE_S: Final = 0.005  # JSON is made for so long before the loop gets a turn


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
    """An encoded FindInstancesResponse, which may be large."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        self._body = body

    def proto(self) -> bytes:
        return self._body

    async def json(self) -> bytes:
        loop = asyncio.get_running_loop()
        began = loop.time()
        twins, rest = [], []
        for field in scan.fields(self._body):
            if field.number != 1:
                rest.append(self._body[field.at : field.end])
                continue
            twins.append(to_json(instance_pb2.Instance.FromString(self._body[field.value_at : field.end])))
            if loop.time() - began > _SLICE_S:
                await asyncio.sleep(0)
                began = loop.time()
        others = json.loads(to_json(service_pb2.FindInstancesResponse.FromString(b"".join(rest))))
        tail = json.dumps(others, separators=(",", ":"), ensure_ascii=False).encode()
        if not twins:
            return tail
        listed = b'{"instances":[' + b",".join(twins) + b"]"
        return listed + b"," + tail[1:] if others else listed + b"}"
