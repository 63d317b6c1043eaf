"""Puts a population into etcd before HQ starts: large transactions, several under way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice

from hq.keys import HqKeys
from store.etcd import EtcdConfig, EtcdStore
from store.port import Write
from tests.bench.population import Population, puts

MAX_TXN_OPS = 3_000  # etcd is started with this limit; its default is 128
_UNDER_WAY = 4


async def fill(endpoint: str, population: Population, prefix: str, *, with_raw: bool = True) -> int:
    """Return the bytes of the instances' values."""
    store, keys = EtcdStore(EtcdConfig((endpoint,), read_timeout_s=30)), HqKeys(prefix)
    pairs = _pairs(population, keys, with_raw=with_raw)
    sizes = await asyncio.gather(*(_put_all(store, pairs) for _ in range(_UNDER_WAY)))
    await store.close()
    return sum(sizes)


async def _put_all(store: EtcdStore, pairs: Iterator[tuple[bytes, bytes]]) -> int:
    size = 0
    while group := tuple(islice(pairs, MAX_TXN_OPS)):
        await store.commit((), (Write((), group),), 60.0)
        size += sum(len(value) for key, value in group if not key.startswith(b"/raw/"))
    return size


def _pairs(population: Population, keys: HqKeys, *, with_raw: bool) -> Iterator[tuple[bytes, bytes]]:
    for stored in population:
        pairs = puts(keys, stored)
        yield from pairs if with_raw and stored.service.startswith("lookup-") else pairs[:2]
