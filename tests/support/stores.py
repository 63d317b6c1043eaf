"""Stores for the contract tests: one suite, run in memory and on every version of etcd."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from hq.keys import prefix_end
from store.embedded import EmbeddedEtcd, EtcdBinary
from store.etcd import EtcdConfig, EtcdStore
from store.memory import MemoryStore
from store.port import Applied, Batch, Commit, Compare, ConditionFailed, KeyChange, Record, Store, WatchStream, Write
from tests.support.etcd import VERSIONS, _run_apart, binary_of

TIMEOUT_S = 5.0


class Place:
    """A store, and a corner of it that no other test uses. Keys are given without their prefix."""

    def __init__(self, store: Store, prefix: bytes) -> None:
        self.store = store
        self.start, self.end = prefix, prefix_end(prefix)

    def key(self, name: str) -> bytes:
        return self.start + name.encode()

    async def put(self, name: str, value: bytes = b"x") -> int:
        """Return the revision."""
        return (await self.commit(Write((), ((self.key(name), value),)))).revision

    async def delete(self, name: str) -> int:
        return (await self.commit(Write((), deletes=(self.key(name),)))).revision

    async def commit(self, *writes: Write, guards: tuple[Compare, ...] = ()) -> Commit:
        return await self.store.commit(guards, writes, TIMEOUT_S)

    async def attempt(self, *when: Compare, put: str = "target", value: bytes = b"x") -> Applied | ConditionFailed:
        """A put under conditions."""
        commit = await self.commit(Write(when, ((self.key(put), value),)))
        assert commit.guarded
        return commit.outcomes[0]

    async def get(self, name: str, revision: int = 0) -> Record | None:
        return (await self.store.get(self.key(name), revision=revision))[0]

    async def head(self) -> int:
        return (await self.store.get(self.key("nothing")))[1]

    @asynccontextmanager
    async def watch(self, after: int) -> AsyncIterator[WatchStream]:
        async with self.store.watch(self.start, self.end, after=after) as stream:
            yield stream

    async def changes(self, after: int, up_to: int) -> list[KeyChange]:
        """What a watch tells of the revisions behind `after`, up to one that it must reach."""
        async with self.watch(after) as stream:
            return [change for batch in await batches(stream, up_to) for change in batch.changes]


async def batches(stream: WatchStream, up_to: int) -> list[Batch]:
    """Read a watch until it has reached a revision."""
    read: list[Batch] = []
    async with asyncio.timeout(TIMEOUT_S):
        async for batch in stream:
            read.append(batch)
            if batch.revision >= up_to:
                break
    return read


async def end_of(stream: WatchStream, timeout_s: float = TIMEOUT_S) -> None:
    """Read a watch to its end: raises what ends it, TimeoutError if nothing does."""
    async with asyncio.timeout(timeout_s):
        async for _ in stream:
            pass


@pytest.fixture(scope="session")
def contract_etcds() -> Iterator[dict[str, EmbeddedEtcd]]:
    """By version, for the contract tests of the store only: they compact."""
    etcds: dict[str, EmbeddedEtcd] = {}
    yield etcds
    for etcd in etcds.values():
        _run_apart(etcd.stop)


@pytest.fixture(params=["memory", *VERSIONS])
async def place(
    request: pytest.FixtureRequest,
    contract_etcds: dict[str, EmbeddedEtcd],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Place]:
    """A corner of a store. Tests may compact the store, and must not fill it."""
    prefix = f"/test-{secrets.token_hex(6)}/".encode()
    store: Store
    if request.param == "memory":
        store = MemoryStore()
    else:
        version = str(request.param)
        if version not in contract_etcds:
            binary: EtcdBinary = binary_of(version)
            started = EmbeddedEtcd(tmp_path_factory.mktemp("contract-etcd"), binary=binary)
            _run_apart(started.start)
            contract_etcds[version] = started
        store = EtcdStore(EtcdConfig((contract_etcds[version].endpoint,)))
    yield Place(store, prefix)
    await store.close()
