"""Large answers over gRPC to callers that do not take them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError

from hqpb.v1 import service_pb2
from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, MIB, Limits
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, FakeRegistry
from tests.wire.grpc_client import Client
from tests.wire.raw_http2 import shut_window

BIG = service_pb2.GetInstanceRequest(id=f"big:{MIB}").SerializeToString()


@pytest.fixture
def limits() -> Limits:
    return replace(Limits(), max_answers_bytes_per_peer=3 * MIB + 100 * KIB)


async def test_unread_data_of_a_slow_peer_is_bounded_until_it_leaves(
    grpc_port: int, grpc_client: Client, registry: FakeRegistry, admission: Admission
) -> None:
    async with shut_window(grpc_port) as greedy:
        for _ in range(10):
            await greedy.call(GET, BIG)
        await eventually(lambda: admission.refused["max_answers_bytes_per_peer"] == 7)
        assert len(registry.calls) == 10
        assert 3 * MIB < admission.answers_bytes < 4 * MIB
        with pytest.raises(AioRpcError) as raised:
            await grpc_client.get(f"big:{MIB}")
        assert raised.value.code() is StatusCode.RESOURCE_EXHAUSTED
        assert (await grpc_client.get("web-1")).instance.meta.id == "web-1"
    await eventually(lambda: not admission.answers_bytes)
    await grpc_client.get(f"big:{MIB}")
    await eventually(lambda: not admission.answers_bytes)
