"""The play of recorded_run.py over a real etcd, in real time; nothing is lost, cut or restored here."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from itertools import groupby
from types import TracebackType

from hq.config import ReplicaConfig
from hq.keys import HqKeys
from hq.registry.registry import Registry
from hq.replica import Replica
from store.etcd import EtcdConfig, EtcdStore
from store.port import Compacted, Disconnected
from tests.checker import marks
from tests.checker.history import Range
from tests.checker.violation import Violation
from tests.support.recorded_run import RecordedRun
from tests.support.simulation import Running
from tests.support.store_link import Link
from tests.support.virtual_time import VirtualClock


class EtcdTheatre(RecordedRun):
    """Replicas over one etcd, under a prefix that nobody else uses."""

    def __init__(self, endpoint: str, prefix: str) -> None:
        super().__init__(timeout_s=600.0, prefix=prefix)
        self.keys = HqKeys(prefix)
        self._endpoint = endpoint
        self._etcd: EtcdStore | None = None
        self._observing: asyncio.Task[None] | None = None
        self._seen = 0

    def connect(self) -> EtcdStore:
        return EtcdStore(EtcdConfig((self._endpoint,)))

    async def start(self) -> Running:
        if self._etcd is None:
            self._etcd = self.connect()
            _, self._seen = await self._etcd.get(self.keys.epoch)
            self._observing = asyncio.create_task(self._observe(self._etcd))
        self._started += 1
        config = ReplicaConfig(replica=f"replica-{self._started}", **self._settings)  # type: ignore[arg-type]
        link = Link(self.connect())
        replica = Replica(config, link, VirtualClock(), random.Random())  # the loop's clock, which is real here
        self.replicas.append(Running(link, Registry(replica, self.rng), asyncio.create_task(replica.run())))
        await replica.loading.loaded.wait()
        return self.replicas[-1]

    async def stop(self, running: Running) -> None:
        await super().stop(running)
        await running.link.close()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        if self._observing is not None and self._etcd is not None:
            self._observing.cancel()
            await asyncio.gather(self._observing, return_exceptions=True)
            await self._etcd.close()

    async def _observe(self, store: EtcdStore) -> None:
        while True:
            try:
                async with store.watch(self.keys.prefix, self.keys.end, after=self._seen) as stream:
                    async for batch in stream:
                        for revision, changes in groupby(batch.changes, key=lambda change: change.revision):
                            raw = marks.raw_of(revision, list(changes), self.keys, self.diary.now_ns())
                            self.diary.events.append(raw)
                        self._seen = batch.revision
            except (Disconnected, Compacted):
                await asyncio.sleep(0.1)

    def observe(self) -> None:
        """The observer does it by itself."""

    @property
    def head(self) -> int:
        return self._seen

    async def compact(self) -> None:
        """What every replica and the observer have seen is given up."""
        assert self._etcd is not None
        seen = [await running.registry.replica.fence.wait_for_fence() for running in self.replicas]
        await self._until(max(seen))
        with suppress(Compacted):  # once is enough
            await self._etcd.compact(min(seen))

    async def end(self) -> list[Violation]:
        assert self._etcd is not None
        head = max([await running.registry.replica.fence.wait_for_fence() for running in self.replicas])
        await self.replicas[0].registry.replica.cache.wait_for(head)
        for running in self.replicas:
            self._finish(running.registry.replica)
        await self._until(head)
        page = await self._etcd.page(self.keys.prefix, self.keys.end, revision=head, limit=10_000)
        self.diary.events.append(Range(head, tuple(marks.stored_of(each, self.keys) for each in page.records)))
        return self.checked()

    async def _until(self, revision: int) -> None:
        async with asyncio.timeout(30):
            while self._seen < revision:
                await asyncio.sleep(0.005)
