"""Replicas for the client to talk to."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from hqclient.client import Client, ClientSettings
from hqclient.retry import RetrySettings
from hqclient.watch import WatchSettings
from tests.clients.fake_hq import FakeReplica, Stored, fake_replica
from tests.clients.telling import History, TellingReplica, telling_replica

HASTY = RetrySettings(first_backoff_s=0.01, max_backoff_s=0.05)
SETTINGS = ClientSettings(
    retry=HASTY,
    watch=WatchSettings(backoff=HASTY, silence_limit_s=60.0),
    connect_timeout_s=20.0,
    first_connect_s=20.0,
    first_probe_s=0.05,
    max_probe_s=0.1,
)


@pytest.fixture
async def replicas() -> AsyncIterator[list[FakeReplica]]:
    """Two replicas over one state, in the order in which `client` prefers them."""
    stored = Stored()
    both = [fake_replica(stored, "fake-1"), fake_replica(stored, "fake-2")]
    for replica in both:
        await replica.start()
    yield both
    for replica in both:
        await replica.stop()


def by_preference(client: Client, replicas: list[FakeReplica]) -> None:
    """Put them in the order in which this client prefers them: tests name them so."""
    replicas.sort(key=lambda r: [e.address for e in client._pool.replicas.all].index(r.address))


@pytest.fixture
async def client(replicas: list[FakeReplica]) -> AsyncIterator[Client]:
    async with Client([r.address for r in replicas], timeout_s=30.0, settings=SETTINGS) as one:
        by_preference(one, replicas)
        yield one


@pytest.fixture
def history() -> History:
    return History(random.Random(5))


@pytest.fixture
async def telling(history: History) -> AsyncIterator[list[TellingReplica]]:
    both = [telling_replica(history, name) for name in ("fake-1", "fake-2")]
    for replica in both:
        await replica.start()
    yield both
    for replica in both:
        await replica.stop()
