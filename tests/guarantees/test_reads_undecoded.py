"""Lookups answer from prepared bytes: with the decoding of records broken, every format still answers."""

from __future__ import annotations

import asyncio
import json
import random
import urllib.request
from collections.abc import AsyncIterator

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
from tests.support.sample_instances import Agent, instance

FIND = pb.FindInstancesRequest(filter=pb.InstanceFilter(service_id=["svc"], readiness=pb.READINESS_FILTER_READY))
GET = pb.GetInstanceRequest(id="i-3")


class Broken:
    """Stands for generated code; whoever uses it fails."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was used on the way to an answer")


@pytest.fixture
async def server() -> AsyncIterator[ReplicaServer]:
    config = ReplicaConfig(compact_every_s=0)
    anywhere = Addresses("127.0.0.1:0", "127.0.0.1:0")
    server = ReplicaServer(config, MemoryStore(), SystemClock(), random.Random(1), anywhere, Limits(), grace_s=0.1)
    serving = asyncio.create_task(server.serve())
    await server.listening
    await server.replica.loading.loaded.wait()
    yield server
    server.stop()
    await serving


async def fill(stub: service_stubs.InstanceServiceStub) -> None:
    for number in range(5):
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(f"i-{number}")))
        agent = Agent(stub, f"i-{number}")
        await agent.begin()
        await agent.report(ready=number != 1)


async def post(server: ReplicaServer, method: str, content_type: str, body: bytes) -> bytes:
    where = f"http://{server.listening.result().http}/hq.v1.InstanceService/{method}"
    request = urllib.request.Request(where, body, {"content-type": content_type})

    def send() -> bytes:
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())

    return await asyncio.to_thread(send)


async def test_lookups_answer_in_every_format_with_record_decoding_broken(
    server: ReplicaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with grpc.aio.insecure_channel(server.listening.result().grpc) as channel:
        stub = service_stubs.InstanceServiceStub(channel)
        await fill(stub)
        for module in ("hq.memory.record", "hq.memory.entry", "hq.memory.cache"):
            monkeypatch.setattr(f"{module}.storage_pb2", Broken())
        for module in ("hq.memory.record", "hq.memory.entry", "hq.memory.record"):
            monkeypatch.setattr(f"{module}.instance_pb2", Broken())
        found = await stub.FindInstances(FIND)
        got = await stub.GetInstance(GET)
    assert [each.meta.id for each in found.instances] == ["i-0", "i-2", "i-3", "i-4"]
    assert got.instance == found.instances[2]
    proto = "application/proto"
    found_too = pb.FindInstancesResponse.FromString(
        await post(server, "FindInstances", proto, FIND.SerializeToString())
    )
    got_too = pb.GetInstanceResponse.FromString(await post(server, "GetInstance", proto, GET.SerializeToString()))
    assert (list(found_too.instances), got_too.instance) == (list(found.instances), got.instance)
    find = json.dumps({"filter": {"serviceId": ["svc"], "readiness": "READINESS_FILTER_READY"}}).encode()
    listed = json.loads(await post(server, "FindInstances", "application/json", find))
    shown = json.loads(await post(server, "GetInstance", "application/json", b'{"id":"i-3"}'))
    assert [each["meta"]["id"] for each in listed["instances"]] == ["i-0", "i-2", "i-3", "i-4"]
    assert shown["instance"] == listed["instances"][2]
