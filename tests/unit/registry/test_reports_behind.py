"""Reports to a replica whose memory is behind the store: few tries, and a true answer in the end."""

from __future__ import annotations

import pytest

from hq.keys import HqKeys
from hq.registry.registry import Registry
from serving.errors import DeadlineExceeded, NotFound
from store.port import Write
from tests.support.faulty_store import FaultyStore, faulty
from tests.support.in_process_replica import running
from tests.support.virtual_time import VirtualClock, in_virtual_time
from tests.unit.registry.test_reports import Reporter, created

KEYS = HqKeys()


async def reborn(store: FaultyStore, spec: bytes) -> int:
    """Delete the instance and create it again from elsewhere; return the version."""
    gone = (KEYS.spec("a-1"), KEYS.status("a-1"))
    await store.store.commit((), (Write((), deletes=gone),), 1)
    return (await store.store.commit((), (Write((), ((KEYS.spec("a-1"), spec),)),), 1)).revision


async def reporting(registry: Registry) -> Reporter:
    await created(registry)
    agent = await Reporter(registry).begin()
    await agent.report()
    return agent


@in_virtual_time
async def test_a_watch_over_a_gap_with_an_unreadable_successor_reports_the_instance_gone() -> None:
    store = faulty()
    async with running(store, VirtualClock()) as registry:
        agent = await reporting(registry)
        store.go_away()
        await store.store.compact(await reborn(store, b"\xff\xff"))
        store.away = False
        await registry.replica.fence.wait_for_fence()
        store.delay_s, before = 0.01, len(store.sent)
        with pytest.raises(NotFound):
            await agent.begin()
        with pytest.raises(NotFound):
            await agent.report(message="new")
        assert len(store.sent) < before + 10


@in_virtual_time
async def test_a_report_is_tried_few_times_while_its_replica_does_not_see_the_new_uid() -> None:
    store = faulty()
    async with running(store, VirtualClock()) as registry:
        agent = await reporting(registry)
        entry = registry.replica.cache.get("a-1")
        assert entry is not None
        record, _ = await store.store.get(KEYS.spec("a-1"))
        assert record is not None
        store.silence()
        await reborn(store, record.value)
        store.delay_s, before = 0.01, len(store.sent)
        with pytest.raises(DeadlineExceeded):
            await agent.report(message="new")
        assert len(store.sent) < before + 10
