"""A reporter must not go on as it does."""

from __future__ import annotations

from typing import ClassVar

from serving.errors.base import Code, HqError


class Stop(HqError):
    """The reporter must stop what it does. Never given from the cache alone: HQ fenced first."""

    code: ClassVar[Code] = "FAILED_PRECONDITION"
    reason = "STOP"
    ours = False

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
