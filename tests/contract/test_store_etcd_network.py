"""etcd behind networks that break, hang and lose answers: what is unknown is called so, and silence is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from store.etcd import EtcdConfig, EtcdStore
from store.port import Disconnected, Unavailable, UnknownOutcome, Write
from tests.support.etcd import SharedEtcd
from tests.support.faulty_proxy import Proxy
from tests.support.stores import Place, batches, end_of

# What is tried here lies between grpcio and the network: one version of etcd will do.
pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)

READ_TIMEOUT_S = 4.0  # longer than this process stands still


@pytest.fixture
async def proxy(etcd: SharedEtcd) -> AsyncIterator[Proxy]:
    async with Proxy(etcd.endpoint) as proxy:
        yield proxy


@pytest.fixture
async def direct(etcd: SharedEtcd) -> AsyncIterator[Place]:
    """The same corner of the store, by a way that does not fail."""
    store = EtcdStore(EtcdConfig((etcd.endpoint,)))
    yield Place(store, etcd.prefix.encode())
    await store.close()


@pytest.fixture
async def place(etcd: SharedEtcd, proxy: Proxy) -> AsyncIterator[Place]:
    """A corner of a store behind the proxy, connected."""
    store = EtcdStore(EtcdConfig((proxy.endpoint,), read_timeout_s=READ_TIMEOUT_S))
    place = Place(store, etcd.prefix.encode())
    await place.head()
    yield place
    await store.close()


def put(place: Place, name: str) -> Write:
    return Write((), ((place.key(name), b"x"),))


@pytest.mark.long
async def test_a_half_open_connection_ends_a_watch_within_ten_seconds(place: Place, proxy: Proxy) -> None:
    async with place.watch(await place.head()) as stream:
        proxy.stall()
        with pytest.raises(Disconnected):
            await end_of(stream, timeout_s=10)


@pytest.mark.long
async def test_a_watch_over_a_half_open_connection_does_not_open(place: Place, proxy: Proxy) -> None:
    async with place.watch(await place.head()):
        pass
    proxy.stall()
    with pytest.raises(Disconnected):
        async with asyncio.timeout(10), place.watch(1):
            pass


@pytest.mark.long
async def test_a_read_over_a_half_open_connection_fails_in_time(place: Place, proxy: Proxy) -> None:
    proxy.stall()
    with pytest.raises(Unavailable):
        async with asyncio.timeout(READ_TIMEOUT_S + 8):
            await place.head()


@pytest.mark.long
async def test_a_write_whose_answer_does_not_come_is_unknown_though_it_took_place(
    place: Place, proxy: Proxy, direct: Place
) -> None:
    proxy.answers.stall()
    with pytest.raises(UnknownOutcome):
        await place.store.commit((), (put(place, "a"),), 4.0)
    assert await direct.get("a") is not None


async def test_a_write_on_a_connection_that_breaks_is_unknown(place: Place, proxy: Proxy, direct: Place) -> None:
    proxy.answers.stall()
    commit = asyncio.create_task(place.commit(put(place, "a")))
    while not await direct.get("a"):
        await asyncio.sleep(0.01)
    proxy.reset()
    with pytest.raises(UnknownOutcome):
        await commit


async def test_a_write_that_finds_no_connection_certainly_did_not_take_place(
    place: Place, proxy: Proxy, direct: Place
) -> None:
    proxy.cut()
    for _ in range(20):
        try:
            await place.commit(put(place, "a"))
        except Unavailable:
            break
        except UnknownOutcome:
            continue  # sent into the connection that is just going
    else:
        raise AssertionError("never certain")
    assert await direct.get("a") is None


async def test_the_connection_comes_back_by_itself(place: Place, proxy: Proxy) -> None:
    proxy.cut()
    with pytest.raises(Unavailable):
        await place.head()
    proxy.heal()
    async with asyncio.timeout(30):
        while True:
            try:
                await place.put("a")
            except (Unavailable, UnknownOutcome):
                await asyncio.sleep(0.05)
            else:
                break


@pytest.mark.long
async def test_a_slow_network_can_be_connected_to(etcd: SharedEtcd, proxy: Proxy) -> None:
    proxy.delay(0.3)
    store = EtcdStore(EtcdConfig((proxy.endpoint,)))
    assert await Place(store, etcd.prefix.encode()).head() > 0
    await store.close()


async def test_changes_missed_while_disconnected_are_told_in_order(place: Place, proxy: Proxy, direct: Place) -> None:
    head = await place.head()
    async with place.watch(head) as stream:
        first = await direct.put("a")
        await batches(stream, first)
        proxy.reset()
        with pytest.raises(Disconnected):
            await end_of(stream)
    missed = [await direct.put(f"{n}") for n in range(10)]
    assert [change.revision for change in await place.changes(first, missed[-1])] == missed


@pytest.mark.long
async def test_of_two_endpoints_the_one_that_works_is_taken(etcd: SharedEtcd, proxy: Proxy) -> None:
    store = EtcdStore(EtcdConfig((proxy.endpoint, etcd.endpoint), read_timeout_s=READ_TIMEOUT_S))
    place = Place(store, etcd.prefix.encode())
    await place.put("a")
    proxy.stall()
    assert await place.get("a") is not None
    head = await place.put("b")
    async with place.watch(head) as stream:
        await batches(stream, await place.put("c"))
    await store.close()


async def test_a_write_that_was_certainly_not_sent_is_sent_to_another_endpoint_at_once(
    etcd: SharedEtcd, proxy: Proxy
) -> None:
    store = EtcdStore(EtcdConfig((proxy.endpoint, etcd.endpoint)))
    place = Place(store, etcd.prefix.encode())
    proxy.cut()
    written = await place.put("a")
    record = await place.get("a")
    assert record is not None
    assert record.modified == written
    await store.close()


async def test_closing_the_store_ends_the_calls_under_way(place: Place, proxy: Proxy) -> None:
    async with place.watch(await place.head()) as stream:
        proxy.stall()
        calls = [
            asyncio.create_task(place.store.commit((), (put(place, "a"),), 60)),
            asyncio.create_task(place.head()),
            asyncio.create_task(end_of(stream, 60)),
        ]
        await asyncio.sleep(0.2)
        await place.store.close()
        async with asyncio.timeout(30):
            ends = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(end) for end in ends] == [UnknownOutcome, Unavailable, Disconnected]
    assert not any(task.cancelled() for task in calls)
