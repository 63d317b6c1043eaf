"""Everything that HQ refuses or fails at, grouped by what the caller does next.

`hq/api/wire.py` is the one place that turns these into gRPC statuses, HTTP statuses and error details.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

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
]


class HqError(Exception):
    """Base of all errors that reach a caller. `reason` is a stable word for programs, str() is for people."""

    code: ClassVar[Code] = "INTERNAL"
    reason: ClassVar[str] = "INTERNAL"
    limit: str = ""  # the limit that refused, as /metrics names it; empty: none did
    request_id: str = ""  # of the call that ends with it; set when it is told

    @property
    def metadata(self) -> dict[str, str]:
        """Facts for programs, sent beside the reason in google.rpc.ErrorInfo."""
        return {}


# --- retry: the same call may succeed later, nothing was stored -----------------------------------------------------


class Retry(HqError):
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
    """The store is out of space: reads go on, writes wait for an operator to compact, defragment and disarm it."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "STORE_FULL"


class NotLoaded(Retry):
    """The replica has not read the store yet."""

    reason = "NOT_LOADED"


class BehindVersion(Retry):
    """The replica does not have the asked-for version yet."""

    reason = "BEHIND_VERSION"


class Overloaded(Retry):
    """A limit on concurrent work was reached."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "OVERLOADED"


class ShuttingDown(Retry):
    """The replica is going away; ask another one."""

    reason = "SHUTTING_DOWN"


# --- start over: what the caller holds belongs to a past that is gone -----------------------------------------------


class StartOver(HqError):
    """Versions or tokens that the caller holds are void; read everything again."""

    code: ClassVar[Code] = "FAILED_PRECONDITION"
    reason = "START_OVER"


class EpochChanged(StartOver):
    """The store was restored or replaced since the caller read."""

    reason = "EPOCH_CHANGED"

    def __init__(self, held: str, current: str) -> None:
        super().__init__(f"epoch {held} is over, the current one is {current}: read again and use its versions")
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_epoch": self.current}


# --- read again: somebody else was faster -----------------------------------------------------------------------------


class VersionConflict(HqError):
    """The record is not at the version that the caller named; nothing was stored."""

    code: ClassVar[Code] = "ABORTED"
    reason = "VERSION_CONFLICT"

    def __init__(self, instance_id: str, expected: int, current: int) -> None:
        super().__init__(
            f"instance {instance_id} is at version {current}, not {expected}: read it again and repeat the change"
        )
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_version": str(self.current)}


class AlreadyExists(HqError):
    """The id is taken."""

    code: ClassVar[Code] = "ALREADY_EXISTS"
    reason = "ALREADY_EXISTS"

    def __init__(self, instance_id: str, current: int) -> None:
        """`current` 0: the caller may not know the version."""
        super().__init__(f"instance {instance_id} exists already" + (f", at version {current}" if current else ""))
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_version": str(self.current)} if self.current else {}


# --- fix the request ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Violation:
    """One fault of a request: path of the field, as in a field mask with indexes, and what is wrong with it."""

    field: str
    description: str


class InvalidRequest(HqError):
    """The request can never succeed as it is; `violations` name the fields."""

    code: ClassVar[Code] = "INVALID_ARGUMENT"
    reason = "INVALID_REQUEST"

    def __init__(self, *violations: Violation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" if v.field else v.description for v in violations))
        self.violations = violations


def invalid(field: str, description: str) -> InvalidRequest:
    """An InvalidRequest with one violation."""
    return InvalidRequest(Violation(field, description))


class TooLarge(HqError):
    """The message or answer is over a limit of size."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "TOO_LARGE"

    def __init__(self, message: str, limit: str = "max_request_bytes") -> None:
        super().__init__(message)
        self.limit = limit


class UnknownMethod(HqError):
    """There is no such call."""

    code: ClassVar[Code] = "UNIMPLEMENTED"
    reason = "UNKNOWN_METHOD"


# --- stop: an agent must not go on as it does -------------------------------------------------------------------------


class Stop(HqError):
    """The reporter must stop what it does. Never given from the cache alone: HQ fenced first."""

    code: ClassVar[Code] = "FAILED_PRECONDITION"
    reason = "STOP"

    epoch = ""

    def __init__(self, subject: str, description: str) -> None:
        super().__init__(description)
        self.subject = subject

    @property
    def metadata(self) -> dict[str, str]:
        """`epoch`: of the store that says so. One that was emptied or restored since may not know better."""
        return {"epoch": self.epoch} if self.epoch else {}


class WrongNode(Stop):
    """The instance lives on another node."""

    reason = "WRONG_NODE"


class WrongUid(Stop):
    """The id belongs to another life of the instance by now."""

    reason = "WRONG_UID"


class UnknownRevision(Stop):
    """The spec does not list the revision (any more)."""

    reason = "UNKNOWN_REVISION"


class Fenced(Stop):
    """Another reporter took over this revision; stop reporting it."""

    reason = "FENCED"


class NotBegun(Stop):
    """Nobody reports this revision (any more): it moved, or was removed and put back. Call BeginReporting (again)."""

    reason = "NOT_BEGUN"


class OutdatedReport(Stop):
    """A newer report of the same incarnation is stored already; this one changed nothing."""

    reason = "OUTDATED_REPORT"


# --- not allowed ----------------------------------------------------------------------------------------------------


class PermissionDenied(HqError):
    """The caller may not do this; the words say what is missing. `key`: what it was about, for the audit log."""

    code: ClassVar[Code] = "PERMISSION_DENIED"
    reason = "PERMISSION_DENIED"

    def __init__(self, message: str, *, key: str = "", needs: str = "") -> None:
        """`needs`: the roles of which one is missing, separated by commas."""
        super().__init__(message)
        self.key, self._needs = key, needs

    @property
    def metadata(self) -> dict[str, str]:
        return {"needs": self._needs} if self._needs else {}


# --- gone -----------------------------------------------------------------------------------------------------------


class NotFound(HqError):
    """There is no such instance. Never said from the cache alone where it would stop an agent."""

    code: ClassVar[Code] = "NOT_FOUND"
    reason = "NOT_FOUND"
    epoch = ""

    @property
    def metadata(self) -> dict[str, str]:
        """`epoch`: as of Stop."""
        return {"epoch": self.epoch} if self.epoch else {}


# --- outcome unknown --------------------------------------------------------------------------------------------------


class OutcomeUnknown(HqError):
    """The write may or may not have been stored; read to find out, or repeat it if it is a creation with request_id."""

    code: ClassVar[Code] = "DEADLINE_EXCEEDED"
    reason = "OUTCOME_UNKNOWN"


class DeadlineExceeded(HqError):
    """The caller's deadline passed first; nothing was stored."""

    code: ClassVar[Code] = "DEADLINE_EXCEEDED"
    reason = "DEADLINE_EXCEEDED"
