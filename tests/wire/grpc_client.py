"""A client of the fake table over gRPC."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from typing import Any

import grpc
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from grpc import aio
from grpc_status import rpc_status  # type: ignore[import-untyped]

from hqpb.v1 import service_pb2
from tests.wire.fake_table import GET, WATCH


class Client:
    """The two calls of the fake table, by hand."""

    def __init__(self, channel: aio.Channel) -> None:
        self.channel = channel
        self._get: Any = channel.unary_unary(f"/{GET}")
        self._watch: Any = channel.unary_stream(f"/{WATCH}")

    async def get(
        self, text: str, timeout: float | None = None, metadata: tuple[tuple[str, str], ...] = ()
    ) -> service_pb2.GetInstanceResponse:
        body = service_pb2.GetInstanceRequest(id=text).SerializeToString()
        answer = await self._get(body, timeout=timeout, metadata=aio.Metadata(*metadata))
        return service_pb2.GetInstanceResponse.FromString(answer)

    async def raw(self, body: bytes, compression: grpc.Compression | None = None) -> bytes:
        answer: bytes = await self._get(body, compression=compression)
        return answer

    def open_watch(self, order: str) -> Any:
        """The stream's call object, to be read and cancelled by hand."""
        return self._watch(service_pb2.WatchInstancesRequest(resume_token=order).SerializeToString())

    async def watch(
        self, order: str, timeout: float | None = None
    ) -> AsyncGenerator[service_pb2.WatchInstancesResponse, None]:
        body = service_pb2.WatchInstancesRequest(resume_token=order).SerializeToString()
        async for answer in self._watch(body, timeout=timeout):
            yield service_pb2.WatchInstancesResponse.FromString(answer)


def details_of(error: aio.AioRpcError) -> dict[str, object]:
    """Details by their short name; they must agree with code and message."""
    status = rpc_status.from_call(error)
    assert status is not None
    found = {}
    for packed in status.details:
        name = packed.type_url.rpartition(".")[2]
        found[name] = getattr(error_details_pb2, name)()
        assert packed.Unpack(found[name])
    return found


async def code_of(call: Awaitable[object]) -> grpc.StatusCode:
    """How a call ends."""
    try:
        await call
    except aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK
