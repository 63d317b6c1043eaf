"""Errors of every server, in the order of what the caller does next.

`serving/error_statuses.py` is the one place that turns these into gRPC statuses, HTTP statuses and error details; what
goes wrong between the ends of a connection is in `protocol_errors.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


class ServiceError(Exception):
    """Base of all errors that reach a caller. `reason` is a stable word for programs, str() is for people.

    Attributes:
        ours: HQ or its store failed, whatever the request: a report that ends like this is not silence. False for what
            the caller can fix, and for a replica that shuts down: there are others.
    """

    code: ClassVar[Code] = "INTERNAL"
    reason: ClassVar[str] = "INTERNAL"
    ours: ClassVar[bool] = True
    limit: str = ""  # the limit that refused, as /metrics names it; empty: none did
    request_id: str = ""  # of the call that ends with it; set when it is sent
    plain_details: Sequence[Any] | None = None  # sent as they are (google.protobuf.Any) instead of our own

    @property
    def is_ours(self) -> bool:
        """Whether it is `ours`, and not a limit that this caller alone exceeded."""
        return self.ours and not self.limit.endswith(("_per_peer", "_per_peer_s"))

    @property
    def metadata(self) -> dict[str, str]:
        """Facts for programs, sent beside the reason in google.rpc.ErrorInfo."""
        return {}


class OutcomeUnknown(ServiceError):
    """The write may or may not have been stored; read to find out, or repeat it if it is a creation with request_id."""

    code: ClassVar[Code] = "DEADLINE_EXCEEDED"
    reason = "OUTCOME_UNKNOWN"


class DeadlineExceeded(ServiceError):
    """The caller's deadline passed first; nothing was stored."""

    code: ClassVar[Code] = "DEADLINE_EXCEEDED"
    reason = "DEADLINE_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a request: path of the field, as in a field mask with indexes, and what is wrong with it."""

    field: str
    description: str


class InvalidRequest(ServiceError):
    """The request can never succeed as it is; `violations` name the fields."""

    code: ClassVar[Code] = "INVALID_ARGUMENT"
    reason = "INVALID_REQUEST"
    ours = False

    def __init__(self, *violations: Violation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" if v.field else v.description for v in violations))
        self.violations = violations


def invalid(field: str, description: str) -> InvalidRequest:
    """An InvalidRequest with one violation."""
    return InvalidRequest(Violation(field, description))


class TooLarge(ServiceError):
    """The message or answer is over a limit of size."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "TOO_LARGE"
    ours = False

    def __init__(self, message: str, limit: str = "max_request_bytes") -> None:
        super().__init__(message)
        self.limit = limit


class UnknownMethod(ServiceError):
    """There is no such call."""

    code: ClassVar[Code] = "UNIMPLEMENTED"
    reason = "UNKNOWN_METHOD"
    ours = False


class Unauthenticated(ServiceError):
    """The caller is not authenticated; the message says what to send, and never repeats what was sent."""

    code: ClassVar[Code] = "UNAUTHENTICATED"
    reason = "UNAUTHENTICATED"
    ours = False


class PermissionDenied(ServiceError):
    """The caller may not do this; the message says what is missing. `key`: the call's object, for the audit log."""

    code: ClassVar[Code] = "PERMISSION_DENIED"
    reason = "PERMISSION_DENIED"
    ours = False

    def __init__(self, message: str, *, key: str = "", needs: str = "") -> None:
        """`needs`: the roles of which one is missing, separated by commas."""
        super().__init__(message)
        self.key, self._needs = key, needs

    @property
    def metadata(self) -> dict[str, str]:
        return {"needs": self._needs} if self._needs else {}


class FailedPrecondition(ServiceError):
    """Stored records rule the call out; sent with a google.rpc.PreconditionFailure. `subject`: the object, or empty."""

    code: ClassVar[Code] = "FAILED_PRECONDITION"
    reason = "FAILED_PRECONDITION"
    ours = False

    def __init__(self, description: str, subject: str = "") -> None:
        super().__init__(description)
        self.subject = subject


class StartOver(FailedPrecondition):
    """Versions or tokens that the caller holds are void; read everything again."""

    reason = "START_OVER"


class NotFound(ServiceError):
    """There is no such instance. Never raised from the cache alone where it would stop an agent."""

    code: ClassVar[Code] = "NOT_FOUND"
    reason = "NOT_FOUND"
    ours = False
    epoch = ""

    @property
    def metadata(self) -> dict[str, str]:
        """`epoch`: as in `Stop`."""
        return {"epoch": self.epoch} if self.epoch else {}


class OutOfReach(NotFound):
    """The instance is out of the caller's reach: a denial, but the caller is told that there is no such instance.

    `key`: what it was about, for the audit log.
    """

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class Retry(ServiceError):
    """Nothing was stored; send the same call again after `retry_delay_s` seconds, or to another replica."""

    code: ClassVar[Code] = "UNAVAILABLE"
    reason = "UNAVAILABLE"

    def __init__(self, message: str, retry_delay_s: float = 1.0, limit: str = "") -> None:
        super().__init__(message)
        self.retry_delay_s = retry_delay_s
        self.limit = limit


class StoreUnavailable(Retry):
    """The store did not take the write, or cannot be asked."""

    reason = "STORE_UNAVAILABLE"


class StoreFull(Retry):
    """The store is out of space: reads go on, writes wait for an operator to give it more, and to disarm its alarm."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "STORE_FULL"


class NotLoaded(Retry):
    """The replica has not read the store yet."""

    reason = "NOT_LOADED"


class Overloaded(Retry):
    """A limit on concurrent work was reached."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "OVERLOADED"


class ShuttingDown(Retry):
    """The replica is shutting down; ask another one."""

    reason = "SHUTTING_DOWN"
    ours = False


class AuditUnavailable(Retry):
    """Orders are taken only while it can be recorded who gave them; nothing was stored."""

    reason = "AUDIT_UNAVAILABLE"

    def __init__(self, fault: str) -> None:
        super().__init__(
            f"the audit log of this replica cannot be written ({fault}): fix it, or use another replica", 5.0
        )
