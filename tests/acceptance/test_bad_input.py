"""Whatever comes in over the wire: the designed error, never a 500, and nothing changes."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
from typing import Any

import grpc
import pytest

from hqpb.v1 import admin_pb2, service_pb2
from hqpb.v1 import service_pb2 as pb
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import Agent, instance

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)

INSTANCE = "/hq.v1.InstanceService/"
JSON, PROTO = "application/json", "application/proto"
SERVICES = [*service_pb2.DESCRIPTOR.services_by_name.values(), *admin_pb2.DESCRIPTOR.services_by_name.values()]
METHODS = [f"/{s.full_name}/{m.name}" for s in SERVICES for m in s.methods if not m.server_streaming]

Case = tuple[str, str, bytes, int, str]
CASES: dict[str, Case] = {
    "malformed JSON": (INSTANCE + "GetInstance", JSON, b'{"id": ', 400, "invalid_argument"),
    "not an object": (INSTANCE + "GetInstance", JSON, b"[1, 2]", 400, "invalid_argument"),
    "wrong type": (INSTANCE + "GetInstance", JSON, b'{"id": 7}', 400, "invalid_argument"),
    "unknown field": (INSTANCE + "GetInstance", JSON, b'{"name": "a-1"}', 400, "invalid_argument"),
    "empty id": (INSTANCE + "GetInstance", JSON, b"{}", 400, "invalid_argument"),
    "id with a slash": (INSTANCE + "GetInstance", JSON, b'{"id": "a/../b"}', 400, "invalid_argument"),
    "id with NUL": (INSTANCE + "DeleteInstance", JSON, b'{"id": "a\\u0000b"}', 400, "invalid_argument"),
    "truncated protobuf": (INSTANCE + "GetInstance", PROTO, b"\x0a\x05ab", 400, "invalid_argument"),
    "nested 10,000 deep": (INSTANCE + "GetInstance", JSON, b'{"id":' + b"[" * 10_000, 400, "invalid_argument"),
    "huge body": (INSTANCE + "GetInstance", JSON, b" " * (5 << 20), 413, "resource_exhausted"),
    "unknown method": (INSTANCE + "DropEverything", JSON, b"{}", 404, "unimplemented"),
    "wrong content type": (INSTANCE + "GetInstance", "text/xml", b"<a/>", 415, ""),
    "unknown enum": (INSTANCE + "FindInstances", JSON, b'{"filter": {"readiness": 9}}', 400, "invalid_argument"),
    "bad page token": (INSTANCE + "FindInstances", JSON, b'{"pageToken": "zzz"}', 400, "invalid_argument"),
    "negative page size": (INSTANCE + "FindInstances", JSON, b'{"pageSize": -1}', 400, "invalid_argument"),
    "unknown mask path": (INSTANCE + "GetInstance", JSON, b'{"id": "a-1", "fieldMask": "spec.nope"}', 400, ""),
    "not there": (INSTANCE + "GetInstance", JSON, b'{"id": "a-2"}', 404, "not_found"),
    "taken id": (
        INSTANCE + "CreateInstance",
        JSON,
        b'{"instance": {"meta": {"id": "a-1", "serviceId": "svc"}}}',
        409,
        "already_exists",
    ),
    "HQ's own field": (
        INSTANCE + "CreateInstance",
        JSON,
        b'{"instance": {"meta": {"id": "a-3", "serviceId": "svc", "uid": "5"}}}',
        400,
        "invalid_argument",
    ),
    "old version": (INSTANCE + "DeleteInstance", JSON, b'{"id": "a-1", "version": "1"}', 409, "aborted"),
    "foreign reporter": (
        INSTANCE + "ReportStatus",
        JSON,
        b'{"instanceId": "a-1", "uid": "1", "node": "node-1", "revision": {"id":"r1", "incarnation": 1, "sequence":1}}',
        400,
        "failed_precondition",
    ),
}


def post(address: str, path: str, kind: str, body: bytes) -> tuple[int, bytes]:
    host, _, port = address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=20)
    try:
        connection.request("POST", path, body, {"content-type": kind})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


async def everything(replica: ReplicaProcess) -> list[Any]:
    async with replica.stub() as stub:
        return list((await stub.FindInstances(pb.FindInstancesRequest())).instances)


async def test_each_bad_request_gets_its_designed_error_and_changes_nothing(replica: ReplicaProcess) -> None:
    async with replica.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-1")))
        agent = Agent(stub, "a-1")
        await agent.begin()
        await agent.report()
    before = await everything(replica)
    wrong = {}
    for name, (path, kind, body, status, code) in CASES.items():
        got, answer = await asyncio.to_thread(post, replica.http, path, kind, body)
        told = json.loads(answer or b"{}")
        if got != status or (code and told.get("code") != code):
            wrong[name] = (got, answer[:300])
    assert not wrong
    assert await everything(replica) == before


@pytest.mark.long
async def test_random_bytes_on_every_method_are_never_a_500(replica: ReplicaProcess) -> None:
    rng = random.Random(7)
    async with replica.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-1")))
    before = await everything(replica)
    bad = []
    for path in METHODS:
        for kind in (JSON, PROTO):
            for _ in range(6):
                body = rng.randbytes(rng.choice((1, 7, 60, 400)))
                status, answer = await asyncio.to_thread(post, replica.http, path, kind, body)
                if status >= 500:
                    bad.append((path, kind, body, status, answer[:200]))
    assert not bad
    assert await everything(replica) == before


@pytest.mark.long
async def test_over_grpc_random_bytes_and_unknown_methods_get_a_clean_status(replica: ReplicaProcess) -> None:
    rng = random.Random(8)
    clean = {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OK,
    }
    async with grpc.aio.insecure_channel(replica.grpc) as opened:
        channel: Any = opened
        for path in METHODS:
            for _ in range(6):
                try:
                    await channel.unary_unary(path)(rng.randbytes(rng.choice((1, 7, 60, 400))), timeout=10)
                    code = grpc.StatusCode.OK
                except grpc.aio.AioRpcError as error:
                    code = error.code()
                assert code in clean, (path, code)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/hq.v1.InstanceService/Nope")(b"")
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
