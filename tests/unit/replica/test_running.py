"""A replica with an etcd of its own ends when that etcd dies."""

from __future__ import annotations

import random

import pytest

from hq.config import ReplicaConfig
from hq.process.server import ReplicaServer
from serving.clock import SystemClock
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from serving.process import until_stopped
from store.embedded import EtcdFailed
from store.memory import MemoryStore


async def test_a_replica_whose_own_etcd_died_ends_with_an_error_and_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for about_the_collector in ("serving.process.relax_gc", "gc.freeze"):  # other tests go on in this process
        monkeypatch.setattr(about_the_collector, lambda: None)
    at = Addresses("127.0.0.1:0", "127.0.0.1:0")
    server = ReplicaServer(ReplicaConfig(), MemoryStore(), SystemClock(), random.Random(1), at, Limits())

    async def died() -> Exception:
        await server.listening
        return EtcdFailed("the disk is full")

    with pytest.raises(EtcdFailed, match="the disk is full"):
        await until_stopped(server, server.replica.loading.loaded, fatal=died())
