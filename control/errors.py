"""Errors of the kit. All but `Refused` and `UnreadableEvent` reach callers as they are."""

from __future__ import annotations

from typing import ClassVar

from serving.errors import Code, Retry, ServiceError


class NotActing(Retry):
    """This process does not act, or cannot be sure that it does: nothing was stored."""

    reason = "NOT_ACTING"


class RecordChanged(ServiceError):
    """A record that the change read has changed since; nothing was stored. Read again, decide again."""

    code: ClassVar[Code] = "ABORTED"
    reason = "RECORD_CHANGED"


class Unreadable(ServiceError):
    """The record in the store cannot be decoded. It is not absent: nothing may be decided without it."""

    code: ClassVar[Code] = "DATA_LOSS"
    reason = "UNREADABLE_RECORD"


class MayNotBegin(Retry):
    """An effect must not begin now: frozen, stopped, not opened, not acting, or its intent is too old."""

    reason = "MAY_NOT_BEGIN"


class RequestConflict(ServiceError):
    """The request id was used with different content; nothing was stored."""

    code: ClassVar[Code] = "ALREADY_EXISTS"
    reason = "REQUEST_CONFLICT"
    ours = False


class EventRefused(ServiceError):
    """The event was handled, and changed nothing. `code` and the message are those of the handler's `Refused`."""

    reason = "REFUSED"
    ours = False

    def __init__(self, message: str, code: Code) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # of this error only, as its handler chose


class NotHandledYet(ServiceError):
    """The event is stored and will be handled; its outcome did not come within the deadline."""

    code: ClassVar[Code] = "DEADLINE_EXCEEDED"
    reason = "NOT_HANDLED_YET"


class Refused(Exception):
    """Raised by a handler: the event changes nothing, and whoever sent it is told why.

    Args:
        code: status for the caller, such as NOT_FOUND.
    """

    def __init__(self, message: str, code: Code = "FAILED_PRECONDITION") -> None:
        super().__init__(message)
        self.code: Code = code


class UnreadableEvent(Exception):
    """Raised by a handler: this version does not know this kind of event. The subject's later events wait."""
