"""The agents' listener: other callers cannot fill it, and a replica notices when nobody gets in there."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import AsyncIterator
from contextlib import suppress

import grpc
import pytest

from hq.config import ReplicaConfig
from hq.process.server import ReplicaServer
from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from serving.clock import SystemClock
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.memory import MemoryStore
from tests.support.sample_instances import eventually
from tests.support.secured import Caller, Secured, secure_channel, served
from tests.wire.raw_http import RawHttp

TIMEOUT_S = 3.0


@pytest.fixture
async def server() -> AsyncIterator[ReplicaServer]:
    """With room for three agents, and for a hundred others."""
    limits = Limits(max_agents=3, max_connections=100, max_connections_per_peer=100)
    config = ReplicaConfig(liveness_timeout_s=TIMEOUT_S, report_interval_s=0.9)
    addresses = Addresses("127.0.0.1:0", "127.0.0.1:0", agents="127.0.0.1:0")
    made = ReplicaServer(config, MemoryStore(), SystemClock(), random.Random(1), addresses, limits, grace_s=0.1)
    serving = asyncio.create_task(made.serve())
    await made.listening
    await made.replica.loading.loaded.wait()
    yield made
    made.stop()
    await serving


async def connected(address: str, count: int) -> list[asyncio.StreamWriter]:
    """Connections that say nothing."""
    host, _, port = address.rpartition(":")
    return [(await asyncio.open_connection(host, int(port)))[1] for _ in range(count)]


@pytest.mark.long
async def test_a_listener_that_nobody_gets_into_excuses_silence_and_no_longer_once_it_is_open_again(
    server: ReplicaServer, caplog: pytest.LogCaptureFixture
) -> None:
    door = server.replica.liveness.reachability.door
    await eventually(lambda: door.probed_at is not None, what="a probe")
    address = server.listening.result().agents
    full: list[asyncio.StreamWriter] = []
    enough = asyncio.Event()

    async def keep_full() -> None:
        while not enough.is_set():
            with suppress(OSError):
                full.extend(await connected(address, 3))
            await asyncio.sleep(0.02)

    filling = asyncio.create_task(keep_full())
    try:
        await eventually(lambda: door.is_shut or door.is_spent, timeout_s=30, what="the door is shut")
        assert "agents' listener" in door.why
    finally:
        enough.set()
        await filling
        for writer in full:
            writer.transport.abort()
    await eventually(lambda: not door.is_shut and not door.is_spent, timeout_s=30, what="it is open again")
    assert [one.message for one in caplog.records if one.name == "asyncio"] == []


async def test_a_compressed_report_that_finds_no_room_is_counted_as_refused() -> None:
    """It is let in, and refused once its size is known."""
    limits, config = Limits(max_bodies_bytes=100_000), ReplicaConfig()
    addresses = Addresses("127.0.0.1:0", "127.0.0.1:0")
    made = ReplicaServer(config, MemoryStore(), SystemClock(), random.Random(1), addresses, limits, grace_s=0.1)
    serving = asyncio.create_task(made.serve())
    port = int((await made.listening).http.rpartition(":")[2])
    body = gzip.compress(b'{"instance_id": "a"' + b" " * 300_000 + b"}")
    answer = await RawHttp(port).post(body, "/hq.v1.InstanceService/ReportStatus", content_encoding="gzip")
    assert answer.status == 429
    assert made.replica.liveness.refusals.counted == {"OVERLOADED": 1}
    made.stop()
    await serving


async def test_connections_elsewhere_take_no_room_from_agents(server: ReplicaServer) -> None:
    listening = server.listening.result()
    strangers = await connected(listening.grpc, 100)
    try:
        async with grpc.aio.insecure_channel(listening.agents) as channel:
            stub = service_stubs.InstanceServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub.BeginReporting(
                    pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1"), timeout=10
                )
            assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    finally:
        for writer in strangers:
            writer.transport.abort()


async def test_one_address_leaves_room_for_the_agents_of_others(server: ReplicaServer) -> None:
    """One machine took all connections: no other agent got in, and its instances became not ready."""
    address = server.listening.result().agents
    one = await connected(address, 10)
    try:
        port = int(address.rpartition(":")[2])
        reader, other = await asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.2", 0))
        other.write(b"POST /hq.v1.InstanceService/BeginReporting HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: ")
        other.write(b"application/json\r\ncontent-length: 56\r\n\r\n")
        other.write(b'{"instanceId": "web-1", "revisionId": "r1", "node":"n1"}')
        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 404"), "there is no such instance"
        one.append(other)
    finally:
        for writer in one:
            writer.transport.abort()


async def test_with_security_on_only_agents_are_let_in_and_only_for_their_node(files: Secured) -> None:
    get, watch = pb.GetInstanceRequest(id="web-1"), pb.WatchInstancesRequest()
    watch.filter.node_name.append("n1")
    async with (
        served(files.security(), agents="127.0.0.1:0") as replica,
        secure_channel(replica.addresses.agents, files.authority) as channel,
    ):
        for stranger in ("reader/ada", "admin", "operator"):
            caller = Caller(channel, files.issuer.token(stranger))
            assert (await caller.refusal("GetInstance", get))[0] == "PERMISSION_DENIED"
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await caller.watch(watch).read()
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
        fetch = pb.GetRevisionRequest(instance_id="web-1", node="n1")
        uploader = Caller(channel, files.issuer.token("web-uploader"))
        assert (await uploader.refusal("GetRevision", fetch))[0] == "PERMISSION_DENIED"
        agent = Caller(channel, files.issuer.token("agent/n1"))
        assert (await agent.refusal("GetRevision", fetch))[0] == "NOT_FOUND"
        assert (await agent.refusal("GetInstance", get))[0] == "NOT_FOUND"
        assert (await agent.watch(watch).read()).kind == pb.WATCH_KIND_SYNCED
        watch.filter.node_name[:] = ["n2"]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await agent.watch(watch).read()
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
