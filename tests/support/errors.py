"""What a gRPC error of HQ says in its details."""

from __future__ import annotations

from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]


def details_of(error: grpc.aio.AioRpcError) -> dict[str, Any]:
    """The google.rpc details by the name of their type, e.g. "ErrorInfo"."""
    trailers = dict(error.trailing_metadata() or ())
    status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
    found = {}
    for detail in status.details:
        name = detail.TypeName().rpartition(".")[2]
        message = getattr(error_details_pb2, name)()
        detail.Unpack(message)
        found[name] = message
    return found


def reason_of(error: grpc.aio.AioRpcError) -> str:
    """The stable word, e.g. "VERSION_CONFLICT"."""
    return str(details_of(error)["ErrorInfo"].reason)


def retry_delay_s(error: grpc.aio.AioRpcError) -> float:
    """After how long the caller shall try again."""
    return float(details_of(error)["RetryInfo"].retry_delay.ToMilliseconds()) / 1000
