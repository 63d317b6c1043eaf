"""What replicas tell each other of the reports that they refuse: one record each, while there is anything to tell.

An agent that reaches one replica only would be called silent by all others. Their sweeps compare these records as they
compare heartbeats, so none is overtaken.
"""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Final

from hq.keys import HEARING, Keys
from hq.liveness.refusals import News, Refusals
from hqpb.storage.v1 import storage_pb2
from serving.clock import Clock
from store.epoch import Epoch
from store.port import Store, StoreError, Write

log = logging.getLogger(__name__)

_EVERY_S: Final = 5.0
_MANY_HOLDS_S: Final = 30.0
_MOST_NODES: Final = 1_000
_TIMEOUT_S: Final = 3.0


class Hearing:
    """Writes this replica's record, and takes in the others'."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        replica: str,
        epoch: Epoch,
        refusals: Refusals,
        clock: Clock,
        rng: random.Random,
        timeout_s: float,
    ) -> None:
        """`timeout_s`: of liveness."""
        self._store, self._epoch, self._refusals = store, epoch, refusals
        self._replica, self._key = replica, keys.of(HEARING, replica)
        self._clock, self._rng = clock, rng
        self._every_s = min(_EVERY_S, timeout_s / 10)

    def observe(self, replica: str, value: bytes) -> None:
        """A record came through the watch. Raises DecodeError."""
        if replica == self._replica:
            return
        record = storage_pb2.HearingRecord.FromString(value)
        for revision in record.revision:
            self._refusals.revision(revision.uid, revision.id)
        for node in record.node[:_MOST_NODES]:
            self._refusals.node(node)
        if record.many:
            self._refusals.many(_MANY_HOLDS_S)

    async def run(self) -> None:
        """Tell the others for ever, at most every few seconds, and nothing while nothing is refused."""
        while True:
            await asyncio.sleep(self._rng.uniform(0.8, 1.0) * self._every_s)
            news = self._refusals.take_news()
            if any(news):
                await self._tell(news)

    async def _tell(self, news: News) -> None:
        is_many = len(news.nodes) > _MOST_NODES
        record = storage_pb2.HearingRecord(
            revision=[storage_pb2.RefusedRevision(uid=uid, id=revision_id) for uid, revision_id in news.revisions],
            node=[] if is_many else news.nodes,
            many=is_many,
            unix_ms=self._clock.wall_ms(),
        )
        put = Write((), ((self._key, record.SerializeToString()),))
        try:
            await self._store.commit((self._epoch.guard(),), (put,), _TIMEOUT_S)
        except (StoreError, TimeoutError) as error:
            # The next reports that are refused are told anew. A late one moves deadlines by less than it may anyway.
            log.warning("could not publish which reports were refused: %s", error)
