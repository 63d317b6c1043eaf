"""Not now: nothing was stored, and the same call may succeed later or elsewhere."""

from __future__ import annotations

from typing import ClassVar

from serving.errors.base import Code, HqError


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
    """The store is out of space: reads go on, writes wait for an operator to give it more, and to disarm its alarm."""

    code: ClassVar[Code] = "RESOURCE_EXHAUSTED"
    reason = "STORE_FULL"


class NotLoaded(Retry):
    """The replica has not read the store yet."""

    reason = "NOT_LOADED"


class EpochDoubted(Retry):
    """The store became another one that holds far less, and nobody has confirmed yet that this is all."""

    reason = "EPOCH_DOUBTED"
    ours = False


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
    ours = False
