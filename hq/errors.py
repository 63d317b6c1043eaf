"""Errors of HQ beside those of every server (`serving/errors.py`): the stored records rule the call out."""

from __future__ import annotations

from typing import ClassVar

from serving.errors import Code, FailedPrecondition, Retry, ServiceError, StartOver

_UNREADABLE = "its record cannot be decoded (see `hqctl quarantine`)"


class EpochChanged(StartOver):
    """The store was restored or replaced since the caller read."""

    reason = "EPOCH_CHANGED"

    def __init__(self, held: str, current: str, then: str = "read it again and use the new version") -> None:
        super().__init__(f"the current epoch is {current}, not {held}: {then}")
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_epoch": self.current}


class VersionConflict(ServiceError):
    """The record is not at the version that the caller named; nothing was stored."""

    code: ClassVar[Code] = "ABORTED"
    reason = "VERSION_CONFLICT"
    ours = False

    def __init__(self, instance_id: str, expected: int, current: int, *, readable: bool = True) -> None:
        """`readable` False: the record is in quarantine, and an older state is shown in its place."""
        unreadable = f"{_UNREADABLE}: write without a version to replace it, or delete the instance"
        next_step = "read it again and retry" if readable else unreadable
        super().__init__(f"instance {instance_id} is at version {current}, not {expected}: {next_step}")
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_version": str(self.current)}


class AlreadyExists(ServiceError):
    """The id is taken."""

    code: ClassVar[Code] = "ALREADY_EXISTS"
    reason = "ALREADY_EXISTS"
    ours = False

    def __init__(self, instance_id: str, current: int, *, readable: bool = True) -> None:
        """`current` 0: the caller may not know the version, nor that the record is in quarantine."""
        at = f", at version {current}" if current else ""
        next_step = "choose another id, or update it" if current else "choose another id"
        if current and not readable:
            next_step = f"{_UNREADABLE}: delete the instance first"
        super().__init__(f"instance {instance_id} already exists{at}: {next_step}")
        self.current = current

    @property
    def metadata(self) -> dict[str, str]:
        return {"current_version": str(self.current)} if self.current else {}


class Stop(FailedPrecondition):
    """The reporter must stop what it does. Never given from the cache alone: HQ fenced first."""

    reason = "STOP"
    epoch = ""

    def __init__(self, subject: str, description: str) -> None:
        super().__init__(description, subject)

    @property
    def metadata(self) -> dict[str, str]:
        """`epoch`: in which the refusal holds. A store that was emptied or restored since may be wrong."""
        return {"epoch": self.epoch} if self.epoch else {}


class WrongNode(Stop):
    """The instance lives on another node."""

    reason = "WRONG_NODE"


class WrongUid(Stop):
    """The instance was recreated: the id has another uid now."""

    reason = "WRONG_UID"


class UnknownRevision(Stop):
    """The spec does not list the revision (any more)."""

    reason = "UNKNOWN_REVISION"


class WrongService(FailedPrecondition):
    """The instance belongs to another service than the one that the write is for; nothing was stored."""

    reason = "WRONG_SERVICE"

    def __init__(self, instance_id: str, expected: str, *, readable: bool = True) -> None:
        # The message does not name the other service: controllers show it to the owners of the expected one.
        whose = "belongs to another service" if readable else f"may belong to another service: {_UNREADABLE}"
        super().__init__(f"instance {instance_id} {whose}, not {expected}: choose another id", instance_id)


class Fenced(Stop):
    """Another reporter took over this revision; stop reporting it."""

    reason = "FENCED"


class NotBegun(Stop):
    """The revision has no reporter (any more): it moved, or was removed and put back. Call BeginReporting (again)."""

    reason = "NOT_BEGUN"


class OutdatedReport(Stop):
    """A newer report of the same incarnation is stored already; this one changed nothing."""

    reason = "OUTDATED_REPORT"


class StoreLimit(ServiceError):
    """Live data use as much of the store as they may: writes that add to them are refused, others go on."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "STORE_LIMIT"
    ours = False
    limit = "max_store_bytes"

    def __init__(self, used_bytes: int, most_bytes: int) -> None:
        super().__init__(
            f"instances take {used_bytes} bytes of the store, of {most_bytes} allowed (--max-store-bytes): "
            "delete some, or have an operator raise etcd's quota and then this limit"
        )
        self._used_bytes, self._most_bytes = used_bytes, most_bytes

    @property
    def metadata(self) -> dict[str, str]:
        return {"used_bytes": str(self._used_bytes), "max_bytes": str(self._most_bytes)}


class LivenessUnavailable(FailedPrecondition):
    """The instance cannot have these liveness settings now: not all replicas know them, or there are too many."""

    reason = "LIVENESS_UNAVAILABLE"


class EpochDoubted(Retry):
    """The store was replaced by one that holds far less, and nobody has confirmed yet that it is complete."""

    reason = "EPOCH_DOUBTED"
    ours = False


class BehindVersion(Retry):
    """The replica does not have the asked-for version yet."""

    reason = "BEHIND_VERSION"
