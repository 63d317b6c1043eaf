"""A whole replica inside the test's own loop: over the in-memory store, or over any store handed in."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from hq.config import ReplicaConfig
from hq.registry.registry import Registry
from hq.replica import Replica
from serving.clock import Clock, SystemClock
from store.memory import MemoryStore
from store.port import Store

CONFIG = ReplicaConfig(cluster="test", replica="replica-1", compact_every_s=0)


@asynccontextmanager
async def running(
    store: Store | None = None, clock: Clock | None = None, seed: int = 1, **settings: object
) -> AsyncIterator[Registry]:
    """A registry over a replica that has loaded; settings are fields of ReplicaConfig."""
    config = replace(CONFIG, **settings)  # type: ignore[arg-type]
    rng = random.Random(seed)
    replica = Replica(config, store or MemoryStore(), clock or SystemClock(), rng)
    going = asyncio.create_task(replica.run())
    loaded = asyncio.create_task(replica.loading.loaded.wait())
    try:
        async with asyncio.timeout(10):
            await asyncio.wait((going, loaded), return_when=asyncio.FIRST_COMPLETED)
        if going.done():
            going.result()
        yield Registry(replica, rng)
    finally:
        going.cancel()
        loaded.cancel()
        await asyncio.gather(going, loaded, return_exceptions=True)
