"""A replica that is frozen (SIGSTOP) keeps its connections and says nothing: discovery says so, and leaves it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hqclient.client import Client, ClientSettings
from hqclient.discovery import Discovery, DiscoverySettings, Origin
from hqpb.v1 import instance_pb2
from tests.clients.test_discovery_real import web
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import eventually

BOOKMARK_S = 5.0


def test_after_one_missing_bookmark_a_list_is_stale_and_after_two_the_watch_moves() -> None:
    assert BOOKMARK_S < DiscoverySettings().stale_after_s <= 1.2 * BOOKMARK_S
    assert 2 * BOOKMARK_S < ClientSettings().watch.silence_limit_s <= 2.4 * BOOKMARK_S


async def report(
    client: Client, *, ready: bool, sequence: int, begun: tuple[int, int] | None = None
) -> tuple[int, int]:
    """Make web-1 ready or not; returns the instance's uid and the reporter's incarnation."""
    if begun is None:
        began = await client.begin_reporting("web-1", "r1", node="node-1")
        begun = began.uid, began.incarnation
    status = instance_pb2.RevisionStatus(id="r1", incarnation=begun[1], sequence=sequence)
    status.installed.status = instance_pb2.CONDITION_STATUS_TRUE
    status.ready.status = instance_pb2.CONDITION_STATUS_TRUE if ready else instance_pb2.CONDITION_STATUS_FALSE
    await client.report("web-1", status, uid=begun[0], node="node-1", timeout_s=20)
    return begun


async def watchers(replica: ReplicaProcess) -> int:
    _, text = await replica.get("/metrics")
    found = re.search(r"^hq_watchers (\d+)", text, re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_discovery_says_that_it_may_be_behind_and_then_follows_the_healthy_replica(
    etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with Replicas(tmp_path) as replicas:
        both = [await replicas.start([etcd.endpoint], etcd.prefix) for _ in range(2)]
        async with Discovery([replica.grpc for replica in both]).service("web", port="http") as service:
            async with Client([both[0].grpc]) as client:
                await client.create(web("web-1", 8000))
                begun = await report(client, ready=True, sequence=1)
            await service.ready(at_least=1, live=True)
            frozen, healthy = both if await watchers(both[0]) else reversed(both)
            frozen.pause()
            try:
                async with Client([healthy.grpc]) as client:
                    await report(client, ready=False, sequence=2, begun=begun)
                await eventually(lambda: service.stale, what="the list is called stale")
                # Before it moves: the watch still stands as far as anybody can tell.
                assert (service.source, len(service.endpoints)) == (Origin.LIVE, 1)
                await eventually(lambda: not service.endpoints, what="the healthy replica's word is heard")
                await eventually(lambda: not service.stale, what="it follows the healthy replica")
            finally:
                frozen.resume()
