"""Errors with any of gRPC's sixteen codes, as a test service is told to raise them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import grpc
from google.protobuf.any_pb2 import Any as Envelope

from serving.errors import ServiceError

_KINDS: Final[dict[int, Any]] = {
    code.value[0]: type(code.name.title().replace("_", ""), (ServiceError,), {"code": code.name, "reason": code.name})
    for code in grpc.StatusCode
    if code is not grpc.StatusCode.OK
}


def failure(code: int, message: str, details: Sequence[Envelope] = ()) -> ServiceError:
    """An error whose status has this code and message, and exactly these details. Raises ValueError: no such code."""
    if code not in _KINDS:
        raise ValueError(f"{code} is not a code of an error")
    error: Any = _KINDS[code](message)
    error.plain_details = list(details)
    return error  # type: ignore[no-any-return]
