"""Everything that HQ refuses or fails at, in files by what the caller does next.

`serving/wire.py` is the one place that turns these into gRPC statuses, HTTP statuses and error details.
"""

from serving.errors.base import Code, HqError
from serving.errors.deadlines import DeadlineExceeded, OutcomeUnknown
from serving.errors.records import AlreadyExists, EpochChanged, NotFound, StartOver, VersionConflict
from serving.errors.reporters import Fenced, NotBegun, OutdatedReport, Stop, UnknownRevision, WrongNode, WrongUid
from serving.errors.requests import (
    InvalidRequest,
    PermissionDenied,
    StoreLimit,
    TooLarge,
    UnknownMethod,
    Violation,
    invalid,
)
from serving.errors.retries import (
    BehindVersion,
    EpochDoubted,
    NotLoaded,
    Overloaded,
    Retry,
    ShuttingDown,
    StoreFull,
    StoreUnavailable,
)

__all__ = [
    "AlreadyExists",
    "BehindVersion",
    "Code",
    "DeadlineExceeded",
    "EpochChanged",
    "EpochDoubted",
    "Fenced",
    "HqError",
    "InvalidRequest",
    "NotBegun",
    "NotFound",
    "NotLoaded",
    "OutcomeUnknown",
    "OutdatedReport",
    "Overloaded",
    "PermissionDenied",
    "Retry",
    "ShuttingDown",
    "StartOver",
    "Stop",
    "StoreFull",
    "StoreLimit",
    "StoreUnavailable",
    "TooLarge",
    "UnknownMethod",
    "UnknownRevision",
    "VersionConflict",
    "Violation",
    "WrongNode",
    "WrongUid",
    "invalid",
]
