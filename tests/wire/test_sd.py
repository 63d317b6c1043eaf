"""/sd/prometheus of a whole server over the in-memory store, as Prometheus asks it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, TypeAlias

import grpc
import pytest

from hq.process.server import ReplicaServer
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from serving.clock import SystemClock
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.memory import MemoryStore
from tests.support.in_process_replica import CONFIG
from tests.support.sample_instances import Agent, instance
from tests.wire.raw_http import RawAnswer, RawHttp

Stub: TypeAlias = "service_stubs.InstanceServiceStub"


@pytest.fixture
async def server() -> AsyncIterator[ReplicaServer]:
    config, rng = replace(CONFIG, cluster="east"), random.Random(1)
    made = ReplicaServer(
        config, MemoryStore(), SystemClock(), rng, Addresses("127.0.0.1:0", "127.0.0.1:0"), Limits(), grace_s=0.1
    )
    serving = asyncio.create_task(made.serve())
    await made.listening
    await made.replica.loading.loaded.wait()
    yield made
    made.stop()
    await serving


@pytest.fixture
async def stub(server: ReplicaServer) -> AsyncIterator[Stub]:
    async with grpc.aio.insecure_channel((await server.listening).grpc) as channel:
        yield service_stubs.InstanceServiceStub(channel)


@pytest.fixture
async def sd(server: ReplicaServer) -> RawHttp:
    return RawHttp(int((await server.listening).http.rpartition(":")[2]))


def served(instance_id: str, service: str = "web", host: str = "10.0.0.1", **ports: int) -> model.Instance:
    made = instance(instance_id, service)
    made.spec.allocation.host = host
    for name, number in ports.items():
        made.spec.allocation.port.add(name=name, number=number)
    return made


async def create(stub: Stub, made: model.Instance, *, ready: bool = True) -> None:
    await stub.CreateInstance(pb.CreateInstanceRequest(instance=made))
    if ready:
        agent = Agent(stub, made.meta.id)
        await agent.begin()
        await agent.report()


def targets(answer: RawAnswer) -> list[str]:
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return [target for group in answer.json() for target in group["targets"]]


def refusal(answer: RawAnswer) -> Any:
    assert answer.status == 400
    return answer.json()["message"]


async def test_a_ready_instance_is_a_target_with_all_that_is_known_of_it(sd: RawHttp, stub: Stub) -> None:
    made = served("web-1", host="", metrics=9100, http=80)
    made.meta.labels["hq.dev/engine"] = "py"
    await create(stub, made)
    assert (await sd.get("/sd/prometheus?service=web&port=metrics")).json() == [
        {
            "targets": ["node-1:9100"],
            "labels": {
                "__meta_hq_instance": "web-1",
                "__meta_hq_service": "web",
                "__meta_hq_cluster": "east",
                "__meta_hq_node": "node-1",
                "__meta_hq_host": "node-1",
                "__meta_hq_port": "metrics",
                "__meta_hq_port_number": "9100",
                "__meta_hq_ready": "true",
                "__meta_hq_ready_revision": "r1",
                "__meta_hq_label_hq_dev_engine": "py",
                "__meta_hq_labelpresent_hq_dev_engine": "true",
            },
        }
    ]


async def test_only_ready_instances_are_targets_unless_the_query_asks_for_any(sd: RawHttp, stub: Stub) -> None:
    await create(stub, served("web-1", metrics=9100), ready=False)
    assert targets(await sd.get("/sd/prometheus?service=web&port=metrics")) == []
    answer = await sd.get("/sd/prometheus?service=web&port=metrics&ready=any")
    assert targets(answer) == ["10.0.0.1:9100"]
    assert answer.json()[0]["labels"]["__meta_hq_ready"] == "false"


async def test_an_instance_without_that_port_is_left_out_and_counted(sd: RawHttp, stub: Stub) -> None:
    await create(stub, served("web-1", metrics=9100))
    await create(stub, served("web-2", http=80))
    await create(stub, instance("web-3", "web"))
    answer = await sd.get("/sd/prometheus?service=web&port=metrics")
    assert targets(answer) == ["10.0.0.1:9100"]
    assert answer.headers["x-hq-left-out"] == "2"
    assert b"hq_sd_left_out_total 2.0" in (await sd.get("/metrics")).body


async def test_several_services_are_named_one_by_one_and_a_query_without_one_means_all(sd: RawHttp, stub: Stub) -> None:
    for number, service in enumerate(("api", "db", "web")):
        await create(stub, served(f"{service}-1", service, metrics=9000 + number))
    assert targets(await sd.get("/sd/prometheus?service=web&service=api&port=metrics")) == [
        "10.0.0.1:9000",
        "10.0.0.1:9002",
    ]
    assert len(targets(await sd.get("/sd/prometheus?port=metrics"))) == 3


async def test_an_address_of_ipv6_is_put_in_brackets(sd: RawHttp, stub: Stub) -> None:
    await create(stub, served("web-1", host="2001:db8::1", metrics=9100))
    assert targets(await sd.get("/sd/prometheus?service=web&port=metrics")) == ["[2001:db8::1]:9100"]


async def test_no_target_at_all_is_an_empty_list(sd: RawHttp) -> None:
    answer = await sd.get("/sd/prometheus?service=nobody&port=metrics")
    assert (answer.status, answer.json()) == (200, [])


async def test_unchanged_targets_are_not_sent_again(sd: RawHttp, stub: Stub) -> None:
    await create(stub, served("web-1", metrics=9100))
    first = await sd.get("/sd/prometheus?service=web&port=metrics")
    etag = first.headers["etag"]
    again = await sd.get("/sd/prometheus?service=web&port=metrics", if_none_match=f'"other", {etag}')
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    assert "content-length" not in again.headers
    await create(stub, served("web-2", host="10.0.0.2", metrics=9100))
    changed = await sd.get("/sd/prometheus?service=web&port=metrics", if_none_match=etag)
    assert targets(changed) == ["10.0.0.1:9100", "10.0.0.2:9100"]
    assert changed.headers["etag"] != etag


async def test_a_heartbeat_changes_no_etag(sd: RawHttp, stub: Stub) -> None:
    await create(stub, served("web-1", metrics=9100))
    first = await sd.get("/sd/prometheus?service=web&port=metrics")
    agent = Agent(stub, "web-1")
    await agent.begin()
    await agent.report()
    await agent.report()
    assert (await sd.get("/sd/prometheus?service=web&port=metrics")).headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("service=web", "port: name one port"),
        ("service=web&port=", "port: name one port"),
        ("service=web&port=a&port=b", "port: name one port"),
        ("service=web&port=a&ready=false", "ready: write true"),
        ("service=&port=a", "service: is empty"),
        ("service=a%20b&port=a", 'service: "a b" is malformed'),
        ("services=web&port=a", "services: unknown parameter"),
    ],
)
async def test_a_wrong_query_is_refused_by_its_parameter(sd: RawHttp, query: str, words: str) -> None:
    assert words in refusal(await sd.get(f"/sd/prometheus?{query}"))


async def test_a_replica_that_has_not_read_the_store_says_so_instead_of_an_empty_list(
    sd: RawHttp, server: ReplicaServer
) -> None:
    server.replica.loading.loaded.clear()
    answer = await sd.get("/sd/prometheus?service=web&port=metrics")
    assert (answer.status, answer.json()["code"]) == (503, "unavailable")
