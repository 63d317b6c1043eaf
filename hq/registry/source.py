"""How fresh an answer is: what every read says of itself, and what readers may demand."""

from __future__ import annotations

import asyncio
import math
from typing import NamedTuple

from hq.epoch_trust import UNSPECIFIED
from hq.errors import BehindVersion, EpochChanged
from hq.replica import Replica
from hqpb.v1 import service_pb2
from serving.errors import NotLoaded

_WAIT_S = 2.0
_KEPT_S = 0.005


class Source(NamedTuple):
    """Whose answer it is and how fresh. `staleness_ms` is -1 where nothing was ever proven."""

    cluster: str
    replica: str
    epoch: str
    version: int
    staleness_ms: int
    stale: bool
    error: str
    quarantined: tuple[str, ...]
    trust: service_pb2.EpochTrust = UNSPECIFIED

    def message(self) -> service_pb2.Source:
        source = service_pb2.Source(
            cluster=self.cluster,
            replica=self.replica,
            epoch=self.epoch,
            version=self.version,
            stale=self.stale,
            error=self.error,
            quarantined=self.quarantined,
            trust=self.trust,
        )
        if self.staleness_ms >= 0:
            source.staleness.FromMilliseconds(self.staleness_ms)
        return source


class Freshness:
    """Tells sources, and waits for what a reader demands."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._told: tuple[object, ...] = ()
        self._kept_until = 0.0
        self._kept = Source("", "", "", 0, -1, stale=True, error="", quarantined=())

    def source(self) -> Source:
        """Of an answer made now.

        Answers of the same few milliseconds share one object, so that it is encoded once; its staleness is that at
        their end: an upper bound, as it says.
        """
        r = self._replica
        now = r.clock.now()
        told = (r.cache.version, r.cache.epoch, r.fence.proven_at, r.fence.error, r.cache.quarantine.shown_older())
        if now >= self._kept_until or told != self._told:
            self._told, self._kept_until = told, now + _KEPT_S
            self._kept = self._source()
        return self._kept

    def _source(self) -> Source:
        r = self._replica
        staleness_s = r.fence.staleness_s()
        stale = staleness_s is None or staleness_s > r.config.stale_after_s
        standing = r.standing()
        why_stale = (r.fence.error or "this replica has lost touch with its store") if stale else ""
        return Source(
            r.config.cluster,
            r.config.replica,
            r.cache.epoch,
            r.cache.version,
            -1 if staleness_s is None else math.ceil((staleness_s + _KEPT_S) * 1000),
            stale,
            "; ".join(filter(None, (why_stale, standing.doubt()))),
            r.cache.quarantine.shown_older(),
            standing.trust,
        )

    def meets(self, read: service_pb2.ReadOptions) -> bool:
        """Whether `demanded` would return at once."""
        if read.consistency or read.require_trusted or not self._replica.loaded.is_set():
            return False
        cache = self._replica.cache
        return read.min_version <= cache.version and (not read.epoch or read.epoch == cache.epoch)

    async def demanded(self, read: service_pb2.ReadOptions, deadline: float | None) -> None:
        """Return when the cache is as fresh as the reader demands.

        Raises:
            NotLoaded: this replica has not read the store yet.
            EpochChanged: min_version belongs to another epoch.
            BehindVersion: the replica did not get min_version in time.
            EpochDoubted: the store may have lost what it held, and the reader wants none of that.
            StoreUnavailable: a STRONG read could not be fenced.
        """
        r = self._replica
        await self.still(read, deadline)
        if read.consistency == service_pb2.READ_CONSISTENCY_STRONG:
            await r.fence.passed()
            r.check_loaded()
            self._check_epoch(read.epoch)
        if read.require_trusted:
            r.check_trusted()

    async def still(self, read: service_pb2.ReadOptions, deadline: float | None) -> None:
        """Return when the cache has what was demanded by version. The store may be another one after any wait.

        Raises NotLoaded, EpochChanged, BehindVersion.
        """
        r = self._replica
        r.check_loaded()
        self._check_epoch(read.epoch)
        if read.min_version > r.cache.version:
            await self._wait_for(read.min_version, deadline)
            self._check_epoch(read.epoch)

    def _check_epoch(self, epoch: str) -> None:
        r = self._replica
        if not epoch or epoch == r.cache.epoch:
            return
        if epoch == r.epoch.current:
            raise NotLoaded("this replica is loading the store's new history; use another one or retry", 0.5)
        raise EpochChanged(epoch, r.cache.epoch)

    async def _wait_for(self, version: int, deadline: float | None) -> None:
        r = self._replica
        left_s = _WAIT_S if deadline is None else min(_WAIT_S, deadline - r.clock.now())
        try:
            async with asyncio.timeout(max(0.0, left_s * 0.9)):
                await r.cache.wait_for(version)
        except TimeoutError:
            words = f"this replica is at version {r.cache.version}, not yet at {version}"
            raise BehindVersion(f"{words}: retry, or use another replica", 0.5) from None
