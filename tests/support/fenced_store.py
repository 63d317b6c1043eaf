"""A store that fails on command, the fences that were put into it, and writes of others."""

from __future__ import annotations

from store.port import Write
from tests.support.faulty_store import FaultyStore

KEY = b"/hq/v1/fence/one"


def fences_in(store: FaultyStore) -> int:
    return sum(change.key == KEY for batch in store.store._log for change in batch.changes)


async def foreign_write(store: FaultyStore, name: str = "ops/guard", prefix: str = "/hq/v1/") -> int:
    put = Write((), (((prefix + name).encode(), b"x"),))
    return (await store.store.commit((), (put,), 1)).revision
