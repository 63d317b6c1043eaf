"""grpc.reflection within the limits of streams: everybody may ask, but streams end after a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import grpc
from grpc_reflection.v1alpha import reflection  # type: ignore[import-untyped]

from serving.calls.incoming import grpc_host
from serving.errors import Overloaded
from serving.limiting.admission import Admission

_MAX_REQUEST_BYTES: Final = 4_096  # a name, which is sent back


class BoundedReflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]
    """Describes services. Each stream counts as one of its peer's, and ends after a while."""

    def __init__(self, services: Sequence[str], admission: Admission, patience_s: float) -> None:
        super().__init__(services)
        self._admission, self._patience_s = admission, patience_s

    async def ServerReflectionInfo(self, requests: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        peer = grpc_host(context.peer())
        try:
            self._admission.open_stream(peer)
        except Overloaded as error:
            self._admission.count(error)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        try:
            async with asyncio.timeout(self._patience_s):
                async for answer in super().ServerReflectionInfo(_small(requests, context), context):
                    yield answer
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, f"reflection ends after {self._patience_s:g} s")
        finally:
            self._admission.close_stream(peer)


async def _small(requests: Any, context: Any) -> AsyncIterator[Any]:
    async for request in requests:
        if request.ByteSize() > _MAX_REQUEST_BYTES:
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, f"{_MAX_REQUEST_BYTES} bytes are the limit for a name"
            )
        yield request
