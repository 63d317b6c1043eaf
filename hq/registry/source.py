"""How fresh an answer is: what every read says of itself, and what readers may demand."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from hq.errors import BehindVersion, EpochChanged
from hq.replica import Replica
from hqpb.v1 import service_pb2

_WAIT_S = 2.0


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

    def message(self) -> service_pb2.Source:
        source = service_pb2.Source(
            cluster=self.cluster,
            replica=self.replica,
            epoch=self.epoch,
            version=self.version,
            stale=self.stale,
            error=self.error,
            quarantined=self.quarantined,
        )
        if self.staleness_ms >= 0:
            source.staleness.FromMilliseconds(self.staleness_ms)
        return source


class Freshness:
    """Tells sources, and waits for what a reader demands."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def source(self) -> Source:
        """Of an answer made now."""
        r = self._replica
        staleness_s = r.fence.staleness_s()
        stale = staleness_s is None or staleness_s > r.config.stale_after_s
        shown = r.cache.quarantine.shown_older()
        return Source(
            r.config.cluster,
            r.config.replica,
            r.epoch.current,
            r.cache.version,
            -1 if staleness_s is None else round(staleness_s * 1000),
            stale,
            (r.fence.error or "this replica has lost touch with its store") if stale else "",
            tuple(shown),
        )

    async def demanded(self, read: service_pb2.ReadOptions, deadline: float | None) -> None:
        """Return when the cache is as fresh as the reader demands.

        Raises:
            NotLoaded: this replica has not read the store yet.
            EpochChanged: min_version belongs to another epoch.
            BehindVersion: the replica did not get min_version in time.
            StoreUnavailable: a STRONG read could not be fenced.
        """
        r = self._replica
        r.check_loaded()
        if read.epoch and read.epoch != r.epoch.current:
            raise EpochChanged(read.epoch, r.epoch.current)
        if read.min_version > r.cache.version:
            await self._wait_for(read.min_version, deadline)
        if read.consistency == service_pb2.READ_CONSISTENCY_STRONG:
            await r.fence.passed()

    async def _wait_for(self, version: int, deadline: float | None) -> None:
        r = self._replica
        left_s = _WAIT_S if deadline is None else min(_WAIT_S, deadline - r.clock.now())
        try:
            async with asyncio.timeout(max(0.0, left_s * 0.9)):
                await r.cache.wait_for(version)
        except TimeoutError:
            words = f"this replica is at version {r.cache.version}, not yet at {version}"
            raise BehindVersion(f"{words}: ask again, or another replica", 0.5) from None
