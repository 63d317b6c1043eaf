"""What the caller holds, or takes for there, is not what is stored: read again."""

from __future__ import annotations

from typing import ClassVar

from serving.errors.base import Code, HqError

_UNREADABLE = "its record cannot be decoded (see `hqctl quarantine`)"


class StartOver(HqError):
    """Versions or tokens that the caller holds are void; read everything again."""

    code: ClassVar[Code] = "FAILED_PRECONDITION"
    reason = "START_OVER"
    ours = False


class EpochChanged(StartOver):
    """The store was restored or replaced since the caller read."""

    reason = "EPOCH_CHANGED"

    def __init__(self, held: str, current: str) -> None:
        super().__init__(f"epoch {held} is over, the current one is {current}: read it again and use the new version")
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_epoch": self.current}


class VersionConflict(HqError):
    """The record is not at the version that the caller named; nothing was stored."""

    code: ClassVar[Code] = "ABORTED"
    reason = "VERSION_CONFLICT"
    ours = False

    def __init__(self, instance_id: str, expected: int, current: int, *, readable: bool = True) -> None:
        """`readable` False: the record is in quarantine, and an older state is shown in its place."""
        unreadable = f"{_UNREADABLE}: omit the version, or delete it"
        next_step = "read it again and retry" if readable else unreadable
        super().__init__(f"instance {instance_id} is at version {current}, not {expected}: {next_step}")
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_version": str(self.current)}


class AlreadyExists(HqError):
    """The id is taken."""

    code: ClassVar[Code] = "ALREADY_EXISTS"
    reason = "ALREADY_EXISTS"
    ours = False

    def __init__(self, instance_id: str, current: int, *, readable: bool = True) -> None:
        """`current` 0: the caller may not know the version, nor that the record is in quarantine."""
        at = f", at version {current}" if current else ""
        next_step = f": {_UNREADABLE}: delete the instance first" if current and not readable else ""
        super().__init__(f"instance {instance_id} exists already{at}{next_step}")
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_version": str(self.current)} if self.current else {}


class NotFound(HqError):
    """There is no such instance. Never said from the cache alone where it would stop an agent."""

    code: ClassVar[Code] = "NOT_FOUND"
    reason = "NOT_FOUND"
    ours = False
    epoch = ""

    @property
    def metadata(self) -> dict[str, str]:
        """`epoch`: as of Stop."""
        return {"epoch": self.epoch} if self.epoch else {}
