"""Calls whose requests and answers stay bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

import grpc

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]


def channel(address: str) -> grpc.aio.Channel:
    """A connection of its own."""
    return grpc.aio.insecure_channel(address, options=OPTIONS)


def unary(over: grpc.aio.Channel, path: str) -> Callable[..., Awaitable[bytes]]:
    """A method by its path, `/package.Service/Method`."""
    return cast("Callable[..., Awaitable[bytes]]", over.unary_unary(path, None, None))


def stream(over: grpc.aio.Channel, path: str) -> Callable[[bytes], Any]:
    """A method with a stream of answers."""
    return cast("Callable[[bytes], Any]", over.unary_stream(path, None, None))


async def ask(address: str, path: str, request: bytes) -> bytes:
    """One call. Raises AioRpcError."""
    async with channel(address) as over:
        return await unary(over, path)(request)
