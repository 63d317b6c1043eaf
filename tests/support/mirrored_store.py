"""A store that fails on command, writes of others to it, and the mirror that must show the same."""

from __future__ import annotations

import asyncio

from store.port import Record, StoreError, Write
from tests.support.faulty_store import FaultyStore
from tests.support.store_parts import Parts

OPS = b"/hq/v1/ops/"


async def put(store: FaultyStore, name: str, value: bytes = b"x") -> int:
    return (await store.store.commit((), (Write((), ((OPS + name.encode(), value),)),), 1)).revision


async def delete(store: FaultyStore, name: str) -> int:
    return (await store.store.commit((), (Write((), deletes=(OPS + name.encode(),)),), 1)).revision


def below_prefix(store: FaultyStore) -> dict[bytes, Record]:
    return {key: record for key, record in store.store._live.items() if key.startswith(b"/hq/v1/")}


async def caught_up(parts: Parts) -> None:
    """Return when the mirror shows what the store holds; fails if it never does."""
    async with asyncio.timeout(120):
        while True:
            try:
                await parts.fence.wait_for_fence()
            except StoreError:
                continue
            break
    assert isinstance(parts.store, FaultyStore)
    assert parts.records == below_prefix(parts.store)
    assert parts.follower.key_count == len(parts.records)
