"""A real replica over a real etcd, and a client that looks at it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas


@pytest.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[Replicas]:
    """Real ones, unlike those of the tests beside; all of them end with the test."""
    async with Replicas(tmp_path) as started:
        yield started


@pytest.fixture
async def replica(etcd: SharedEtcd, replicas: Replicas) -> ReplicaProcess:
    return await replicas.start([etcd.endpoint], etcd.prefix)


@pytest.fixture
async def client(replica: ReplicaProcess) -> AsyncIterator[Client]:
    async with Client([replica.grpc]) as one:
        yield one
