"""A start over a real etcd that brings no replay in time. Takes the etcd on PATH if it is new enough (3.6 too)."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hq.keys import HqKeys
from hq.replica import Replica
from serving.clock import SystemClock
from store.embedded import EmbeddedEtcd, find_etcd
from store.etcd import EtcdConfig, EtcdStore
from store.port import Write
from storepb.v1 import store_pb2
from tests.support.cache_entries import spec_value
from tests.support.in_process_replica import CONFIG, running

# With such messages etcd takes half a minute to split what a watch missed; a replay never came to an end.
FLAGS = ("--max-request-bytes=16777216", "--max-txn-ops=1024")
KEYS, KEYS_PER_WRITE, TEXT = 80_000, 200, "x" * 400
NAMES = HqKeys()


async def fill(store: EtcdStore) -> None:
    """A compaction mark at what is there, and many keys behind it."""
    async with running(store) as registry:
        mark = store_pb2.CompactionRecord(revision=registry.replica.cache.version).SerializeToString()
    await store.commit((), (Write((), ((NAMES.compaction, mark),)),), 30)
    for first in range(0, KEYS, KEYS_PER_WRITE):
        ids = [(f"i-{n}", n + 1) for n in range(first, first + KEYS_PER_WRITE)]
        puts = [(NAMES.spec(name), spec_value(name, uid=uid, text=TEXT)) for name, uid in ids]
        await store.commit((), (Write((), puts),), 30)


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_a_start_is_ready_whatever_lies_behind_the_mark_and_however_large_messages_may_be(tmp_path: Path) -> None:
    etcd = EmbeddedEtcd(tmp_path, binary=find_etcd((3, 5)), extra_flags=FLAGS)
    await etcd.start()
    store = EtcdStore(EtcdConfig((etcd.endpoint,)))
    try:
        await fill(store)
        replica = Replica(replace(CONFIG, replica="late"), store, SystemClock(), random.Random(2))
        going = asyncio.create_task(replica.run())
        await replica.loading.loaded.wait()
        assert len(replica.cache) == KEYS
        going.cancel()
        with suppress(asyncio.CancelledError):
            await going
    finally:
        await store.close()
        await etcd.kill()
