"""One real replica over a real etcd for tests that look at HQ from outside."""

from __future__ import annotations

import pytest

from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas


@pytest.fixture
async def replica(replicas: Replicas, etcd: SharedEtcd) -> ReplicaProcess:
    """A replica with a prefix of its own."""
    return await replicas.start([etcd.endpoint], etcd.prefix)
