"""etcd with much to tell, and etcd without space."""

from __future__ import annotations

import asyncio
from itertools import groupby

import pytest

from store.embedded import EmbeddedEtcd
from store.etcd import EtcdConfig, EtcdStore
from store.port import NoSpace, Write
from tests.support import etcd_http
from tests.support.etcd import OwnEtcd
from tests.support.stores import Place, end_of

TRANSACTIONS, PUTS, VALUE_BYTES = 400, 64, 2_000


@pytest.mark.long
async def test_a_catch_up_of_fifty_megabytes_arrives_in_whole_revisions(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    place = Place(EtcdStore(EtcdConfig((etcd.endpoint,))), b"/test/")
    head = await place.put("a")
    last = 0
    for n in range(TRANSACTIONS):
        value = bytes([n % 256]) * VALUE_BYTES
        last = (await place.commit(*(Write((), ((place.key(f"{k}"), value),)) for k in range(PUTS)))).revision
    expected = head
    async with place.watch(head) as stream, asyncio.timeout(20):
        async for batch in stream:
            for revision, changes in groupby(batch.changes, key=lambda change: change.revision):
                expected += 1
                assert (revision, len(list(changes))) == (expected, PUTS)
            if batch.revision == last:
                break
    assert expected == last
    await place.store.close()


async def fill(place: Place) -> int:
    """Put until etcd refuses; return how many puts it took."""
    for n in range(100):
        try:
            await place.put(f"ballast-{n % 4}", b"x" * 700_000)
        except NoSpace:
            return n
    raise AssertionError("etcd was never full")


async def relieve(etcd: EmbeddedEtcd, place: Place) -> None:
    """HQ compacts; an operator defragments and disarms."""
    await place.store.compact(await place.head())
    await asyncio.to_thread(etcd_http.call, etcd.endpoint, "maintenance/defragment", {})
    alarms = await asyncio.to_thread(etcd_http.call, etcd.endpoint, "maintenance/alarm", {"action": "GET"})
    for alarm in alarms.get("alarms", []):
        request = {"action": "DEACTIVATE", **alarm}
        await asyncio.to_thread(etcd_http.call, etcd.endpoint, "maintenance/alarm", request)


async def test_a_full_etcd_says_so_still_reads_and_compacts_and_recovers(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd(quota_bytes=16 << 20)
    place = Place(EtcdStore(EtcdConfig((etcd.endpoint,))), b"/test/")
    await place.put("a")
    await fill(place)
    with pytest.raises(NoSpace):
        await place.put("b")
    assert await place.get("a") is not None
    assert [(member.full, member.error) for member in await place.store.members()] == [(True, "")]
    async with place.watch(await place.head()) as stream:
        await relieve(etcd, place)
        last = await place.put("b")
        with pytest.raises(TimeoutError):  # the watch stands all the time
            await end_of(stream, timeout_s=0.1)
        assert await place.head() == last
    await place.store.close()
