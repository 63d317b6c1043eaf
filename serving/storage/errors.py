"""The errors that callers of a server get when its store fails."""

from __future__ import annotations

from typing import Final

from serving.errors import (
    DeadlineExceeded,
    OutcomeUnknown,
    Overloaded,
    ServiceError,
    ShuttingDown,
    StoreFull,
    StoreUnavailable,
    TooLarge,
)
from store.flight import Closed, Guarded, QueueFull, TimedOut
from store.port import NoSpace, Rejected, StoreError, Unavailable, UnknownOutcome


class WriteGuarded(StoreUnavailable):
    """The epoch, the session or a guard of the write was not as expected; nothing was stored."""

    reason = "GUARDED"


_SEEN_AS: Final[dict[type[StoreError], type[ServiceError]]] = {
    NoSpace: StoreFull,
    UnknownOutcome: OutcomeUnknown,
    TimedOut: DeadlineExceeded,
    QueueFull: Overloaded,
    Closed: ShuttingDown,
    Rejected: TooLarge,
}


def to_service_error(error: StoreError) -> ServiceError:
    """The error of the store, as one for callers."""
    if isinstance(error, Unavailable):
        kind = WriteGuarded if isinstance(error, Guarded) else StoreUnavailable
        return kind(str(error), error.retry_delay_s)
    return _SEEN_AS[type(error)](str(error))
