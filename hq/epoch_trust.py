"""Whether the store's contents are trusted: a store that was lost comes back empty and looks healthy.

Two things speak against an epoch. It holds far less than the one before: the replica that finds the history gone writes
what it remembers into the new epoch's record, for replicas that start later. Or agents keep reporting instances that
the store does not know; the agent of one node alone is not believed. An operator's order, `hq restore`, or the return
of most instances ends the doubt.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple, TypeVar

from hq.errors import EpochDoubted
from hq.keys import HqKeys
from hq.liveness.orders import Orders
from hq.loading import CatchUp, Loading
from hq.memory.cache import Cache
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import service_pb2
from serving.clock import Clock
from serving.errors import ServiceError
from store.commit import Committer
from store.port import Write

log = logging.getLogger(__name__)

_K = TypeVar("_K")

UNSPECIFIED, DOUBTED, CONFIRMED = (
    service_pb2.EPOCH_TRUST_UNSPECIFIED,
    service_pb2.EPOCH_TRUST_DOUBTED,
    service_pb2.EPOCH_TRUST_CONFIRMED,
)
_STRANGERS_KEPT = 100_000
_OF_ONE_NODE = 10_000  # more than a node runs: an agent that makes them up must not push out others' strangers
_FEW_STRANGERS = 2
_RECOVERY_LOOK_S = 1.0
_CONFIRM_S = 5.0


class InstanceCounts(NamedTuple):
    """How many instances there are, and how many of them are ready."""

    instances: int
    ready: int

    def to_bytes(self) -> bytes:
        """Encode for the next epoch's record, which says how many instances there were before it."""
        return storage_pb2.EpochRecord(instances_before=self.instances, ready_before=self.ready).SerializeToString()


def far_less(now: InstanceCounts, before: InstanceCounts) -> bool:
    """Whether less than half is left, of all or of those that are ready."""
    return now.instances * 2 < before.instances or now.ready * 2 < before.ready


def credible_total(reporters: Mapping[int, int], nodes: int) -> int:
    """How many unknown instances count, while the store knows so many nodes.

    One agent can make up any number. So the node that reports the most counts for no more than the next one, and alone
    for nothing; if the store knows one node at most, all count. `reporters`: how many nodes report each number.
    """
    total = reported_total(reporters)
    if nodes <= 1 or not total:
        return total
    most = max(reporters)
    next_most = most if reporters[most] > 1 else max((count for count in reporters if count != most), default=0)
    return total - most + next_most


def reported_total(reporters: Mapping[int, int]) -> int:
    """How many unknown instances all of them report."""
    return sum(count * nodes for count, nodes in reporters.items())


class UnknownInstances:
    """Instances that agents report and the store does not know.

    An agent whose instance was deleted learns that once and stops. An agent that goes on knows another history.
    """

    def __init__(self, persistent_s: float, forgotten_s: float) -> None:
        """An instance goes on once reports of it are `persistent_s` apart, until `forgotten_s` pass without one."""
        self._persistent_s, self._forgotten_s = persistent_s, forgotten_s
        # By node and instance: time of the first and last report; the newest last.
        self._heard: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        self._kept = Counter[str]()  # how many are in `_heard`, by node
        self._going_on = Counter[str]()  # how many of these go on, by node
        self._reporters = Counter[int]()  # how many nodes have each number in `_going_on`: few numbers, for many nodes

    def record_report(self, node: str, instance_id: str, now: float) -> None:
        """Record that the agent of a node reports an unknown instance."""
        key = (node, instance_id)
        if key not in self._heard and self._kept[node] >= _OF_ONE_NODE:
            return
        first, _ = self._pop_times(key) or (now, now)
        self._heard[key] = first, now
        self._count(node, first, now, 1)
        if len(self._heard) > _STRANGERS_KEPT:
            self._pop_times(next(iter(self._heard)))

    def going_on(self, now: float) -> Mapping[int, int]:
        """By a number of unknown instances, how many nodes still report that many."""
        while self._heard:
            oldest = next(iter(self._heard))
            if now - self._heard[oldest][1] <= self._forgotten_s:
                break
            self._pop_times(oldest)
        return self._reporters

    def clear(self) -> None:
        """Forget all reports: the store was replaced."""
        self._heard.clear()
        self._kept.clear()
        self._going_on.clear()
        self._reporters.clear()

    def _pop_times(self, key: tuple[str, str]) -> tuple[float, float] | None:
        times = self._heard.pop(key, None)
        if times is not None:
            self._count(key[0], *times, -1)
        return times

    def _count(self, node: str, first: float, last: float, change: int) -> None:
        _add(self._kept, node, change)
        if last - first >= self._persistent_s:
            before = self._going_on[node]
            _add(self._going_on, node, change)
            for count, nodes in ((before, -1), (before + change, 1)):
                if count:
                    _add(self._reporters, count, nodes)


def _add(counts: Counter[_K], key: _K, change: int) -> None:
    counts[key] += change
    if not counts[key]:
        del counts[key]


class EpochEvidence(NamedTuple):
    """The evidence for and against an epoch.

    Attributes:
        now: what it holds.
        before: what the epoch before held; zeroes: nobody remembers.
        strangers: instances that agents go on reporting to this replica, and that it does not hold, as far as they are
            believed.
        restored: `hq restore` made it.
        confirmed: an operator, or a replica that found most instances back, said that it is to be trusted.
    """

    now: InstanceCounts
    before: InstanceCounts
    strangers: int
    restored: bool
    confirmed: bool

    @property
    def trust(self) -> service_pb2.EpochTrust:
        if self.confirmed or self.restored:
            return CONFIRMED
        return DOUBTED if self._has_lost_instances() or self._unknown() else UNSPECIFIED

    @property
    def may_recover(self) -> bool:
        """Whether most of the epoch before may still come back."""
        return any(self.before) and self.trust is not CONFIRMED

    @property
    def is_recovered(self) -> bool:
        """Whether most of what the epoch before held is back. Recorded then, as the number may rightly shrink later."""
        return self.may_recover and not self._has_lost_instances()

    def remembered_holdings(self) -> InstanceCounts:
        """Return the counts to compare the next epoch with, if this one ends now."""
        if self.trust is not DOUBTED:
            return self.now
        return InstanceCounts(*map(max, self.now, self.before))

    def doubt(self) -> str:
        """Why it is doubted; empty: it is not."""
        if self.trust is not DOUBTED:
            return ""
        if self._has_lost_instances():
            return (
                f"the store was replaced and holds {self.now.instances} instances ({self.now.ready} ready), "
                f"previously {self.before.instances} ({self.before.ready} ready)"
            )
        return f"agents report {self.strangers} instances that the store does not have; it holds {self.now.instances}"

    def _has_lost_instances(self) -> bool:
        return far_less(self.now, self.before)

    def _unknown(self) -> bool:
        return self.strangers > max(self.now.instances, _FEW_STRANGERS)


def standing(
    now: InstanceCounts, record: storage_pb2.EpochRecord, confirmed: storage_pb2.EpochConfirmation, strangers: int
) -> EpochEvidence:
    """The standing of a record's epoch."""
    before = InstanceCounts(record.instances_before, record.ready_before)
    return EpochEvidence(
        now, before, strangers, record.restored, bool(record.epoch) and confirmed.epoch == record.epoch
    )


class EpochTrust:
    """Judges the epoch that memory holds; stores that it is confirmed, by an operator or since most instances are back.

    Attributes:
        strangers: instances that agents report to this replica and the store does not know.
    """

    def __init__(
        self,
        cache: Cache,
        orders: Orders,
        strangers: UnknownInstances,
        committer: Committer,
        catch_up: CatchUp,
        names: HqKeys,
        clock: Clock,
    ) -> None:
        self._cache, self._orders, self.strangers = cache, orders, strangers
        self._committer, self._catch_up, self._names, self._clock = committer, catch_up, names, clock
        # The epoch in which strangers were reported while the store knew one node at most. They all still count when it
        # knows more nodes: a store that was lost fills again with the first deployment.
        self._was_empty = ""

    def standing(self) -> EpochEvidence:
        """Whether the store's contents are trusted, and what speaks for and against them."""
        now = InstanceCounts(len(self._cache), self._cache.ready())
        going_on, nodes = self.strangers.going_on(self._clock.now()), self._cache.nodes()
        if nodes <= 1 and going_on:
            self._was_empty = self._cache.epoch
        is_whole = self._was_empty == self._cache.epoch
        strangers = reported_total(going_on) if is_whole else credible_total(going_on, nodes)
        return standing(now, self._cache.epoch_record, self._orders.confirmed, strangers)

    def unknown_reported(self) -> int:
        """How many instances agents go on reporting, believed or not."""
        return reported_total(self.strangers.going_on(self._clock.now()))

    def check(self) -> None:
        """Raises EpochDoubted: the store may have lost what it held."""
        if doubt := self.standing().doubt():
            raise EpochDoubted(f"{doubt}: keep what you have until the store is restored or confirmed", 5.0)

    async def confirm(self, by: str, reason: str, deadline: float) -> None:
        """Confirm that this epoch's contents are complete: that ends all doubt. Raises as `Committer.commit`."""
        record = storage_pb2.EpochConfirmation(
            epoch=self._cache.epoch, by=by, reason=reason, since_unix_ms=self._clock.wall_ms()
        )
        write = Write((), ((self._names.confirmed, record.SerializeToString()),))
        version = await self._committer.commit("ops/epoch", write, 0, deadline)
        await self._catch_up.wait_for_version(version)
        log.warning("epoch %s confirmed by %r: %s", record.epoch, by, reason)

    async def believe_what_came_back(self, loading: Loading, by: str) -> None:
        """Confirm this epoch once most of what the previous one held is back; end when everything is read again.

        Later the number of instances may rightly shrink.
        """
        while loading.loaded.is_set() and self.standing().may_recover:
            if self.standing().is_recovered:
                with suppress(ServiceError):  # tried again
                    reason = "at least half of the previous epoch's instances are present"
                    await self.confirm(by, reason, self._clock.now() + _CONFIRM_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(_RECOVERY_LOOK_S):
                    await loading.unloaded.wait()
