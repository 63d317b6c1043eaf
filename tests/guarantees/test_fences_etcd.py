"""What lookups and guarded calls cost a real etcd, and what they say while it is frozen."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hq.registry.registry import Registry
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotFound, StoreUnavailable
from store.etcd import EtcdConfig, EtcdStore
from store.fence import FenceTimes
from tests.support.etcd import OwnEtcd
from tests.support.in_process_replica import running
from tests.support.process_ids import wait_until_stopped
from tests.support.sample_instances import instance

STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
PLAIN = pb.ReadOptions()
pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5", pytest.param("3.6", marks=pytest.mark.long)], indirect=True)


@asynccontextmanager
async def over(endpoint: str) -> AsyncIterator[Registry]:
    """A registry with an instance `web-1` that has a secret."""
    store = EtcdStore(EtcdConfig((endpoint,)))
    try:
        async with running(store) as registry:
            made = instance("web-1")
            made.spec.revision[0].secret.add(id="token", version="1")
            await registry.writes.create(made, "", registry.replica.clock.now() + 10, validate_only=False)
            yield registry
    finally:
        await store.close()


async def a_miss(registry: Registry) -> None:
    with pytest.raises(NotFound):
        await registry.reads.get("nobody", PLAIN, None)


async def a_strong_read(registry: Registry) -> None:
    await registry.reads.get("web-1", STRONG, None)


async def a_guarded_fetch(registry: Registry) -> None:
    found = await registry.revisions.get("web-1", "", "node-1", is_guarded=True)
    assert found.revisions[0].secret


@pytest.mark.long
@pytest.mark.parametrize("call", [a_strong_read, a_miss, a_guarded_fetch])
async def test_forty_callers_without_a_pause_cost_etcd_fifty_writes_a_second(own_etcd: OwnEtcd, call: object) -> None:
    assert callable(call)
    async with over((await own_etcd()).endpoint) as registry:
        answers, ends = 0, time.monotonic() + 2

        async def ask_again_and_again() -> None:
            nonlocal answers
            while time.monotonic() < ends:
                await call(registry)
                answers += 1

        began, (_, before) = time.monotonic(), await registry.replica.store.get(b"/x")
        await asyncio.gather(*(ask_again_and_again() for _ in range(40)))
        _, after = await registry.replica.store.get(b"/x")
        took_s = time.monotonic() - began
        # Three more: one may have begun just before, and the idle one.
        assert after - before <= took_s / FenceTimes().spacing_s + 3
        assert answers >= 2 * (after - before)


@pytest.mark.long
async def test_while_etcd_is_frozen_lookups_go_on_and_nobody_is_told_that_something_is_not_there(
    own_etcd: OwnEtcd,
) -> None:
    etcd = await own_etcd()
    async with over(etcd.endpoint) as registry:
        etcd.process.signal(signal.SIGSTOP)
        wait_until_stopped(etcd.process.pid)
        try:
            entry, _ = await registry.reads.get("web-1", PLAIN, None)
            assert entry.traits.id == "web-1"
            with pytest.raises(StoreUnavailable, match=r"this replica has no instance nobody in memory as of .* s ago"):
                await registry.reads.get("nobody", PLAIN, None)
            while not registry.replica.fence.error:
                await asyncio.sleep(0.05)
            # From now on it is known that the store is away: a hundred askers are not kept waiting.
            async with asyncio.timeout(5):
                for _ in range(100):
                    with pytest.raises(StoreUnavailable):
                        await registry.reads.get("nobody", PLAIN, None)
            with pytest.raises(StoreUnavailable):
                await registry.reports.begin("nobody", "r1", "node-1", registry.replica.clock.now() + 10)
        finally:
            etcd.process.signal(signal.SIGCONT)
        while registry.replica.fence.error:
            await asyncio.sleep(0.05)
        await a_miss(registry)


@pytest.mark.long
async def test_a_miss_takes_about_as_long_as_a_strong_read(own_etcd: OwnEtcd) -> None:
    """It once waited a fifth of a second longer, so as to be shared. The quickest of twenty counts."""
    async with over((await own_etcd()).endpoint) as registry:

        async def quickest_s() -> float:
            times = []
            for _ in range(20):
                await asyncio.sleep(2 * FenceTimes().spacing_s)
                began = time.monotonic()
                await a_miss(registry)
                times.append(time.monotonic() - began)
            return min(times)

        assert await quickest_s() < 0.2
