"""Every metric of a replica moves when what it tells of happens. One that does not is a promise nobody keeps."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import grpc
import pytest

from hq.keys import HqKeys
from hq.memory.query import Query
from hq.process.server import ReplicaServer
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import admin_pb2, admin_stubs, service_stubs
from hqpb.v1 import service_pb2 as pb
from serving.clock import SystemClock
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.memory import MemoryStore
from store.port import Write
from tests.support.faulty_store import Fate, FaultyStore
from tests.support.in_process_replica import CONFIG
from tests.support.metrics_scrape import Scraped
from tests.support.sample_instances import Agent, eventually, instance
from tests.support.watch_follower import Watching
from tests.wire.raw_http import RawHttp

KEYS = HqKeys()
STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)


@asynccontextmanager
async def running(store: FaultyStore) -> AsyncIterator[ReplicaServer]:
    config = replace(CONFIG, liveness_timeout_s=2.0, report_interval_s=0.6, compact_every_s=1.0)
    limits = Limits(max_streams=1)
    addresses = Addresses("127.0.0.1:0", "127.0.0.1:0")
    server = ReplicaServer(config, store, SystemClock(), random.Random(1), addresses, limits, grace_s=0.1)
    yield server
    server.stop()


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_every_metric_of_a_replica_moves() -> None:
    store = FaultyStore(MemoryStore(), random.Random(1))
    async with running(store) as server:
        scraped = Scraped(server.metrics)
        serving = asyncio.create_task(server.serve())
        addresses = await server.listening
        await server.replica.loading.loaded.wait()
        async with grpc.aio.insecure_channel(addresses.grpc) as channel:
            stub, admin = service_stubs.InstanceServiceStub(channel), admin_stubs.AdminServiceStub(channel)
            http = RawHttp(int(addresses.http.rpartition(":")[2]))
            agents = await _instances(stub)
            scraped.look()
            await _traffic(stub, http, scraped)
            await _heartbeats(store, agents, scraped)
            await _records_that_nobody_of_us_wrote(store, scraped)
            await _a_watch_that_is_cut(server, stub, scraped)
            await _silence(stub, agents, scraped)
            await _agents_of_a_lost_store(stub, scraped)
            await admin.SuspendNode(_suspension())
            await scraped.until("hq_suspended_nodes", 1)
            await _faults_of_the_store(store, stub, agents[0], scraped)
        server.stop()
        await serving
    # Memory that differs from the store: tests/unit/registry/test_mended.py.
    assert scraped.unmoved() == {"hq_store_repairs_total"}


async def _instances(stub: Any) -> list[Agent]:
    """Enough for the guard to have statistics; all of them report."""
    made = [instance(f"i-{number:02}", node=f"node-{number % 4}") for number in range(24)]
    await asyncio.gather(*(stub.CreateInstance(pb.CreateInstanceRequest(instance=one)) for one in made))
    agents = [Agent(stub, one.meta.id, node=one.spec.node_name) for one in made]
    await asyncio.gather(*(agent.begin() for agent in agents))
    await asyncio.gather(*(agent.report() for agent in agents))
    return agents


async def _traffic(stub: Any, http: RawHttp, scraped: Scraped) -> None:
    async with http.connect() as connection:
        head = b"POST /hq.v1.InstanceService/FindInstances HTTP/1.1\r\nhost: localhost\r\n"
        head += b"content-type: application/json\r\n"
        await connection.send(head + b'content-length: 2000\r\n\r\n{"filter":{},' + b" " * 1000)
        await scraped.until("hq_bodies_bytes", 1)
        await connection.send(b" " * 986 + b"}")
    assert (await http.get("/sd/prometheus?port=metrics&ready=any")).headers["x-hq-left-out"] == "24"
    made = instance("with-port")
    made.spec.allocation.port.add(name="metrics", number=9100)
    await stub.CreateInstance(pb.CreateInstanceRequest(instance=made))
    await http.get("/sd/prometheus?port=metrics&ready=any")
    watch, refused = Watching(stub.WatchInstances(pb.WatchInstancesRequest())), None
    await eventually(lambda: watch.synced, what="a synced watch")
    scraped.look()
    refused = Watching(stub.WatchInstances(pb.WatchInstancesRequest()))
    await scraped.until("hq_refused_total", 1)
    await refused.end()
    await watch.end()
    await eventually(lambda: not scraped.look()["hq_streams_in_flight"], what="the end of the watch")


async def _heartbeats(store: FaultyStore, agents: list[Agent], scraped: Scraped) -> None:
    while (
        scraped.look()["hq_heartbeats_sent_total"] < 1
    ):  # the first report of one that was expired already is no heartbeat
        await asyncio.gather(*(agent.report() for agent in agents))
    outdated = storage_pb2.BeatBatch(uid=[1], status_version=[1], position=[0])
    await _put(store, KEYS.of("beats", "another"), outdated.SerializeToString())
    await scraped.until("hq_heartbeats_outdated_total", 1)


async def _records_that_nobody_of_us_wrote(store: FaultyStore, scraped: Scraped) -> None:
    await _put(store, KEYS.spec("broken"), b"\xff")
    await scraped.until("hq_quarantined_records", 1)
    await _put(store, KEYS.of("fence", "another"), b"\x09" + b"\x01" * 8)
    await scraped.until("hq_replicas", 2)


async def _a_watch_that_is_cut(server: ReplicaServer, stub: Any, scraped: Scraped) -> None:
    watch = Watching(stub.WatchInstances(pb.WatchInstancesRequest()))
    await eventually(lambda: watch.synced, what="a synced watch")
    unread = server.replica.fanout.subscribe(everything := Query(pb.InstanceFilter()))
    await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("unread")))
    await scraped.until("hq_watch_backlog_bytes", 1)
    server.replica.fanout.unsubscribe(everything, unread)
    server.replica.fanout.lose_all("for the sake of a metric")
    await scraped.until("hq_resyncs_total", 1)
    await watch.end()


async def _silence(stub: Any, agents: list[Agent], scraped: Scraped) -> None:
    """All agents at once: the guard holds for a while, then lets the expiries go ahead."""
    await scraped.once("hq_guard_waiting_expiries", 1)
    await scraped.once("hq_guard_holding", 1)
    await scraped.until("hq_expiries_total", 1)
    expired = None
    while expired is None:
        found = await stub.FindInstances(pb.FindInstancesRequest(read=STRONG))
        expired = next((i for i in found.instances if i.status.revision and i.status.ready.status == 2), None)
    await next(agent for agent in agents if agent.instance_id == expired.meta.id).report()
    await scraped.until("hq_recoveries_total", 1)


async def _agents_of_a_lost_store(stub: Any, scraped: Scraped) -> None:
    """More than there are instances, on several nodes, and they go on."""
    lost = [Agent(stub, f"lost-{number}", node=f"node-{number % 5}") for number in range(30)]
    while not scraped.look()["hq_epoch_doubted"]:
        await asyncio.gather(*(_ignored(agent.begin()) for agent in lost))
        await asyncio.sleep(0.1)


async def _faults_of_the_store(store: FaultyStore, stub: Any, agent: Agent, scraped: Scraped) -> None:
    await scraped.until("hq_compactions_total", 1)
    store.plan(Fate.UNANSWERED, touching=KEYS.spec("unanswered"))
    await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("unanswered")), timeout=30)
    await scraped.until("hq_commit_unknown_total", 1)
    store.plan(*[Fate.AWAY] * 20, touching=KEYS.heartbeats)
    while not scraped.look()["hq_reports_refused_total"]:
        await _ignored(agent.report())
    await scraped.until("hq_agents_shut_out", 1)
    store.forget_plans()
    store.silence()
    late = asyncio.create_task(_ignored(stub.FindInstances(pb.FindInstancesRequest(read=STRONG), timeout=30)))
    await scraped.until("hq_calls_in_flight", 1)
    await scraped.until("hq_version_lag", 1)
    store.speak()
    await late
    store.files_fault = "a certificate that is none"
    await scraped.until("hq_store_file_fault", 1)
    store.full = True
    await scraped.until("hq_store_full", 1)
    await _ignored(agent.report(message="news"))
    await scraped.until("hq_reports_refused_total", 1)
    await scraped.until("hq_agents_shut_out", 1)
    store.full = False
    store.go_away()
    await scraped.until("hq_watch_restarts_total", 2)
    await scraped.until("hq_staleness_seconds", 3)
    store.away = False
    await scraped.until("hq_gaps_total", 1)


async def _ignored(call: Any) -> None:
    with suppress(grpc.aio.AioRpcError):
        await call


async def _put(store: FaultyStore, key: bytes, value: bytes) -> None:
    await store.store.commit((), (Write((), ((key, value),)),), 1.0)


def _suspension() -> admin_pb2.SuspendNodeRequest:
    request = admin_pb2.SuspendNodeRequest(node_name="node-1", by="a test", reason="a metric")
    request.duration.FromSeconds(600)
    return request
