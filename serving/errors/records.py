"""What the caller holds, or takes for there, is not what is stored: read again."""

from __future__ import annotations

from typing import ClassVar

from serving.errors.base import Code, HqError


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


class NotFound(HqError):
    """There is no such instance. Never said from the cache alone where it would stop an agent."""

    code: ClassVar[Code] = "NOT_FOUND"
    reason = "NOT_FOUND"
    epoch = ""

    @property
    def metadata(self) -> dict[str, str]:
        """`epoch`: as of Stop."""
        return {"epoch": self.epoch} if self.epoch else {}
