"""Answers of the front: bytes as they came; decoded only if JSON is asked for."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from google.protobuf.message import Message

from federated.encoded import scan
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json

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
