"""How fresh an answer is: what every read says about itself, and what readers may demand."""

from __future__ import annotations

import asyncio
import math
from typing import Final, NamedTuple

from hq.config import ReplicaConfig
from hq.epoch_trust import UNSPECIFIED, EpochTrust
from hq.errors import BehindVersion, EpochChanged
from hq.loading import Loading
from hq.memory.cache import Cache
from hqpb.v1 import service_pb2
from serving.clock import Clock
from serving.errors import NotLoaded
from store.epoch import Epoch
from store.fence import Fence

_WAIT_S = 2.0
_KEPT_S = 0.005
NO_DEMANDS: Final = service_pb2.ReadOptions()
"""One object for all who demand nothing: every remembered request keeps its options."""


class Source(NamedTuple):
    """Who answers, and how fresh the answer is. `staleness_ms` is -1 if freshness was never proven."""

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
    """Makes the `Source` of an answer, and waits for what a reader demands."""

    def __init__(
        self,
        config: ReplicaConfig,
        clock: Clock,
        cache: Cache,
        fence: Fence,
        epoch: Epoch,
        loading: Loading,
        trust: EpochTrust,
    ) -> None:
        self._config, self._clock, self._cache, self._fence = config, clock, cache, fence
        self._epoch, self._loading, self._trust = epoch, loading, trust
        self._told: tuple[object, ...] = ()
        self._kept_until = 0.0
        self._kept = Source("", "", "", 0, -1, stale=True, error="", quarantined=())

    def source(self) -> Source:
        """The source of an answer made now.

        Answers within the same few milliseconds share one object, so that it is encoded once; its staleness is as of
        their end: an upper bound.
        """
        now = self._clock.now()
        told = (
            self._cache.version,
            self._cache.epoch,
            self._fence.proven_at,
            self._fence.error,
            self._cache.quarantine.changes,
        )
        if now >= self._kept_until or told != self._told:
            self._told, self._kept_until = told, now + _KEPT_S
            self._kept = self._source()
        return self._kept

    def _source(self) -> Source:
        staleness_s = self._fence.staleness_s()
        stale = staleness_s is None or staleness_s > self._config.stale_after_s
        standing = self._trust.standing()
        why_stale = (self._fence.error or "this replica has lost touch with its store") if stale else ""
        return Source(
            self._config.cluster,
            self._config.replica,
            self._cache.epoch,
            self._cache.version,
            -1 if staleness_s is None else math.ceil((staleness_s + _KEPT_S) * 1000),
            stale,
            "; ".join(filter(None, (why_stale, standing.doubt()))),
            self._cache.quarantine.shown_older(),
            standing.trust,
        )

    def is_fresh_for(self, read: service_pb2.ReadOptions) -> bool:
        """Whether `wait_until_fresh` would return at once."""
        if read is NO_DEMANDS:  # almost always
            return self._loading.loaded.is_set()
        if read.consistency or read.require_trusted or not self._loading.loaded.is_set():
            return False
        cache = self._cache
        return read.min_version <= cache.version and (not read.epoch or read.epoch == cache.epoch)

    async def wait_until_fresh(self, read: service_pb2.ReadOptions, deadline: float | None) -> None:
        """Return when the cache is as fresh as the reader demands.

        Raises:
            NotLoaded: this replica has not read the store yet.
            EpochChanged: min_version belongs to another epoch.
            BehindVersion: the replica did not reach min_version in time.
            EpochDoubted: the store may have lost data, and the reader requires a trusted answer.
            StoreUnavailable: a STRONG read could not be fenced.
        """
        await self.wait_for_version(read, deadline)
        if read.consistency == service_pb2.READ_CONSISTENCY_STRONG:
            await self._fence.wait_for_fence()
            self._loading.check()
            self._check_epoch(read.epoch)
        if read.require_trusted:
            self._trust.check()

    async def wait_for_version(self, read: service_pb2.ReadOptions, deadline: float | None) -> None:
        """Return when the cache has reached the demanded version. After any wait the store may be a different one.

        Raises NotLoaded, EpochChanged, BehindVersion.
        """
        self._loading.check()
        self._check_epoch(read.epoch)
        if read.min_version > self._cache.version:
            await self._wait_for(read.min_version, deadline)
            self._check_epoch(read.epoch)

    def _check_epoch(self, epoch: str) -> None:
        if not epoch or epoch == self._cache.epoch:
            return
        if epoch == self._epoch.current:
            raise NotLoaded("this replica is loading the store's new history: retry, or use another replica", 0.5)
        raise EpochChanged(epoch, self._cache.epoch)

    async def _wait_for(self, version: int, deadline: float | None) -> None:
        left_s = _WAIT_S if deadline is None else min(_WAIT_S, deadline - self._clock.now())
        try:
            async with asyncio.timeout(max(0.0, left_s * 0.9)):
                await self._cache.wait_for(version)
        except TimeoutError:
            words = f"this replica is at version {self._cache.version}, not yet at {version}"
            raise BehindVersion(f"{words}: retry, or use another replica", 0.5) from None
