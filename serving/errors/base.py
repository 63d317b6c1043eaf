"""What all errors that reach a caller have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

Code = Literal[
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "UNAUTHENTICATED",
    "CANCELLED",
    "UNKNOWN",
    "DATA_LOSS",
]


class HqError(Exception):
    """Base of all errors that reach a caller. `reason` is a stable word for programs, str() is for people."""

    code: ClassVar[Code] = "INTERNAL"
    reason: ClassVar[str] = "INTERNAL"
    limit: str = ""  # the limit that refused, as /metrics names it; empty: none did
    request_id: str = ""  # of the call that ends with it; set when it is told
    plain_details: Sequence[Any] | None = None  # sent as they are (google.protobuf.Any) instead of our own

    @property
    def metadata(self) -> dict[str, str]:
        """Facts for programs, sent beside the reason in google.rpc.ErrorInfo."""
        return {}
