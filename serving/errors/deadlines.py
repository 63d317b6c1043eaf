"""The caller's deadline passed first."""

from __future__ import annotations

from typing import ClassVar

from serving.errors.base import Code, HqError


class OutcomeUnknown(HqError):
    """The write may or may not have been stored; read to find out, or repeat it if it is a creation with request_id."""

    code: ClassVar[Code] = "DEADLINE_EXCEEDED"
    reason = "OUTCOME_UNKNOWN"


class DeadlineExceeded(HqError):
    """The caller's deadline passed first; nothing was stored."""

    code: ClassVar[Code] = "DEADLINE_EXCEEDED"
    reason = "DEADLINE_EXCEEDED"
