"""What a fake replica can be told to do instead of answering."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped,unused-ignore]

Context = Any
Deed = Callable[[Context], Awaitable[None]]
Code = grpc.StatusCode


def refuse(
    code: grpc.StatusCode,
    reason: str,
    text: str = "refused by the test",
    *,
    retry_delay_s: float | None = None,
    metadata: dict[str, str] | None = None,
) -> Deed:
    """End the call as HQ would, with its details."""
    status = status_pb2.Status(code=code.value[0], message=text)
    _pack(status, error_details_pb2.ErrorInfo(reason=reason, domain="hq", metadata=metadata or {}))
    if retry_delay_s is not None:
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(round(retry_delay_s * 1000))
        _pack(status, retry)

    async def deed(context: Context) -> None:
        await context.abort(code, text, (("grpc-status-details-bin", status.SerializeToString()),))

    return deed


def cut(code: grpc.StatusCode = Code.UNAVAILABLE) -> Deed:
    """End the call without a word from HQ, as a broken connection does."""

    async def deed(context: Context) -> None:
        await context.abort(code, "Socket closed")

    return deed


async def hang(context: Context) -> None:
    """Do not answer."""
    await asyncio.Event().wait()


def _pack(status: Any, detail: Any) -> None:
    packed = any_pb2.Any()
    packed.Pack(detail)
    status.details.append(packed)
