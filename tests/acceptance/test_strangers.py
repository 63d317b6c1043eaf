"""Clients that are not ours, against a real replica: a Connect client from elsewhere, and reflection over gRPC."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from connectrpc.client import ConnectClient
from connectrpc.code import Code
from connectrpc.errors import ConnectError
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped,unused-ignore]
from grpc_reflection.v1alpha import (  # type: ignore[import-untyped,unused-ignore]
    reflection_pb2,
    reflection_pb2_grpc,
)

from hqpb.v1 import service_pb2 as pb
from tests.support.connect_calls import method
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import instance

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)


@pytest.mark.long
@pytest.mark.parametrize("proto_json", [False, True], ids=["protobuf", "JSON"])
async def test_a_connect_client_creates_finds_watches_and_reads_errors(
    replica: ReplicaProcess, proto_json: bool
) -> None:
    create = method("CreateInstance", pb.CreateInstanceRequest, pb.CreateInstanceResponse)
    find = method("FindInstances", pb.FindInstancesRequest, pb.FindInstancesResponse)
    get = method("GetInstance", pb.GetInstanceRequest, pb.GetInstanceResponse)
    watch = method("WatchInstances", pb.WatchInstancesRequest, pb.WatchInstancesResponse)
    async with ConnectClient(f"http://{replica.http}", proto_json=proto_json) as client:
        made = pb.CreateInstanceRequest(instance=instance("a-1"))
        created = await client.execute_unary(request=made, method=create)
        found = await client.execute_unary(request=pb.FindInstancesRequest(), method=find)
        assert list(found.instances) == [created.instance]
        kinds = []
        async with asyncio.timeout(20):
            async for message in client.execute_server_stream(request=pb.WatchInstancesRequest(), method=watch):
                kinds.append(message.kind)
                if message.kind == pb.WATCH_KIND_SYNCED:
                    break
        assert kinds == [pb.WATCH_KIND_SNAPSHOT, pb.WATCH_KIND_SYNCED]
        with pytest.raises(ConnectError) as refused:
            await client.execute_unary(request=pb.GetInstanceRequest(id="a-2"), method=get)
        assert refused.value.code == Code.NOT_FOUND


async def test_health_and_reflection_answer_over_grpc(replica: ReplicaProcess) -> None:
    async with grpc.aio.insecure_channel(replica.grpc) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(service="hq.v1.InstanceService"))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
        call = reflection.ServerReflectionInfo(
            iter([reflection_pb2.ServerReflectionRequest(list_services="")])  # one question, then the end
        )
        services = [s.name async for reply in call for s in reply.list_services_response.service]
        assert {"hq.v1.InstanceService", "hq.v1.AdminService", "grpc.health.v1.Health"} <= set(services)
