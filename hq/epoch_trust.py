"""Whether what the store holds is believed. A store that was lost comes back empty and looks healthy. No I/O.

Three things speak against an epoch: what the replica that found the epoch before gone remembered of it (it lies in the
record of the epoch, so that replicas know it that start later), and agents that go on reporting instances which the
store does not know. An operator's order, `hq restore`, or most of it coming back end the doubt.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2

UNSPECIFIED, DOUBTED, CONFIRMED = (
    service_pb2.EPOCH_TRUST_UNSPECIFIED,
    service_pb2.EPOCH_TRUST_DOUBTED,
    service_pb2.EPOCH_TRUST_CONFIRMED,
)
_STRANGERS_KEPT = 100_000
_FEW_STRANGERS = 2


class Census(NamedTuple):
    """How many instances there are, and how many of them are ready."""

    instances: int
    ready: int

    def encoded(self) -> bytes:
        """As a part of the next epoch's record: so many there were before it."""
        return storage_pb2.EpochRecord(instances_before=self.instances, ready_before=self.ready).SerializeToString()


def far_less(now: Census, before: Census) -> bool:
    """Less than half, of all or of those that are ready."""
    return now.instances * 2 < before.instances or now.ready * 2 < before.ready


class Strangers:
    """Instances that agents report and the store does not know.

    An agent whose instance was deleted hears so once and stops. One that goes on has known another history.
    """

    def __init__(self, persistent_s: float, forgotten_s: float) -> None:
        """`persistent_s` between its first report and its last: it goes on. `forgotten_s` without one: it does not."""
        self._persistent_s, self._forgotten_s = persistent_s, forgotten_s
        self._heard: OrderedDict[str, tuple[float, float]] = OrderedDict()  # first and last time; last ones last
        self._going_on = 0

    def heard(self, instance_id: str, now: float) -> None:
        """An agent reports it."""
        first, _ = self._dropped(instance_id) or (now, now)
        self._heard[instance_id] = first, now
        self._going_on += self._goes_on(first, now)
        if len(self._heard) > _STRANGERS_KEPT:
            self._dropped(next(iter(self._heard)))

    def count(self, now: float) -> int:
        """Those that go on."""
        while self._heard:
            oldest = next(iter(self._heard))
            if now - self._heard[oldest][1] <= self._forgotten_s:
                break
            self._dropped(oldest)
        return self._going_on

    def clear(self) -> None:
        """The store is another one."""
        self._heard.clear()
        self._going_on = 0

    def _dropped(self, instance_id: str) -> tuple[float, float] | None:
        times = self._heard.pop(instance_id, None)
        if times is not None:
            self._going_on -= self._goes_on(*times)
        return times

    def _goes_on(self, first: float, last: float) -> bool:
        return last - first >= self._persistent_s


class Standing(NamedTuple):
    """What speaks for and against an epoch.

    Attributes:
        now: what it holds.
        before: what the epoch before held; zeroes: nobody remembers.
        strangers: instances that agents go on reporting to this replica, and that it does not hold.
        restored: `hq restore` made it.
        confirmed: an operator, or a replica that found most of it back, said that it is to be believed.
    """

    now: Census
    before: Census
    strangers: int
    restored: bool
    confirmed: bool

    @property
    def trust(self) -> service_pb2.EpochTrust:
        if self.confirmed or self.restored:
            return CONFIRMED
        return DOUBTED if self._lost() or self._unknown() else UNSPECIFIED

    @property
    def may_recover(self) -> bool:
        """It is compared with the epoch before: most of that may come back."""
        return any(self.before) and self.trust is not CONFIRMED

    @property
    def is_recovered(self) -> bool:
        """Most of what was remembered is there: that is to be written down, for it may shrink again, and rightly."""
        return self.may_recover and not self._lost()

    def remembered(self) -> Census:
        """What to compare the next epoch with, should this one end now."""
        if self.trust is not DOUBTED:
            return self.now
        return Census(*map(max, self.now, self.before))

    def doubt(self) -> str:
        """Why it is doubted; empty: it is not."""
        if self.trust is not DOUBTED:
            return ""
        if self._lost():
            return (
                f"the store was replaced and holds {self.now.instances} instances ({self.now.ready} ready), "
                f"previously {self.before.instances} ({self.before.ready} ready)"
            )
        return f"agents report {self.strangers} instances that the store does not have; it has {self.now.instances}"

    def _lost(self) -> bool:
        return far_less(self.now, self.before)

    def _unknown(self) -> bool:
        return self.strangers > max(self.now.instances, _FEW_STRANGERS)


def standing(
    now: Census, record: storage_pb2.EpochRecord, confirmed: storage_pb2.EpochConfirmation, strangers: int
) -> Standing:
    """Of the epoch of a record."""
    before = Census(record.instances_before, record.ready_before)
    return Standing(now, before, strangers, record.restored, bool(record.epoch) and confirmed.epoch == record.epoch)
