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
    """Base of all errors that reach a caller. `reason` is a stable word for programs, str() is for people.

    Attributes:
        ours: HQ or its store failed, whatever was asked: a report that ends so is not silence. Not so for what the
            caller can mend, and for a replica that goes away: others are there.
    """

    code: ClassVar[Code] = "INTERNAL"
    reason: ClassVar[str] = "INTERNAL"
    ours: ClassVar[bool] = True
    limit: str = ""  # the limit that refused, as /metrics names it; empty: none did
    request_id: str = ""  # of the call that ends with it; set when it is told
    plain_details: Sequence[Any] | None = None  # sent as they are (google.protobuf.Any) instead of our own

    @property
    def is_ours(self) -> bool:
        """It is `ours`, and no limit that this caller alone exceeded."""
        return self.ours and not self.limit.endswith(("_per_peer", "_per_peer_s"))

    @property
    def metadata(self) -> dict[str, str]:
        """Facts for programs, sent beside the reason in google.rpc.ErrorInfo."""
        return {}
