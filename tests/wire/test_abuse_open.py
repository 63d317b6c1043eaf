"""What everybody may ask without saying who they are is within the limits as well: health, reflection, pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc  # type: ignore[import-untyped]

from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from serving.limiting.peers import peer_of
from tests.support.secured import Secured
from tests.wire.grpc_client import Client
from tests.wire.limited import limited
from tests.wire.raw_http import RawHttp

BUSY = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture
def shared(limits: Limits, files: Secured) -> Iterator[ServerContext]:
    """Security is on; nobody here says who they are."""
    security = files.security()
    yield ServerContext(limits, SystemClock(), RequestIds("test"), security)
    security.close()


@pytest.fixture
async def channel(grpc_port: int) -> AsyncIterator[aio.Channel]:
    async with aio.insecure_channel(f"127.0.0.1:{grpc_port}") as opened:
        yield opened


async def _end(call: Any) -> grpc.StatusCode:
    """How a stream ends that should."""
    try:
        async with asyncio.timeout(30):
            while await call.read() is not aio.EOF:
                pass
    except aio.AioRpcError:
        pass
    code: grpc.StatusCode = await call.code()
    return code


@limited(max_streams_per_peer=2)
async def test_watches_of_health_count_as_streams_of_their_peer(channel: aio.Channel, admission: Admission) -> None:
    stub = health_pb2_grpc.HealthStub(channel)
    held = [stub.Watch(health_pb2.HealthCheckRequest(service=f"{one}" + "x" * 3_000_000)) for one in range(2)]
    for watch in held:
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    assert await _end(stub.Watch(health_pb2.HealthCheckRequest())) is BUSY
    assert (admission.streams, admission.refused) == (2, {"max_streams_per_peer": 1})
    for watch in held:
        watch.cancel()
    while admission.streams:
        await asyncio.sleep(0.01)


@limited(max_streams=4)
async def test_strangers_have_half_of_all_streams(channel: aio.Channel, admission: Admission) -> None:
    """A few idle connections without any token would keep all watches out."""
    stub = health_pb2_grpc.HealthStub(channel)
    held = [stub.Watch(health_pb2.HealthCheckRequest()) for _ in range(2)]
    for watch in held:
        await watch.read()
    assert await _end(stub.Watch(health_pb2.HealthCheckRequest())) is BUSY
    assert (admission.streams, admission.refused) == (2, {"max_streams": 1})
    admission.open_stream("somebody with a token")
    admission.close_stream("somebody with a token")
    for watch in held:
        watch.cancel()
    while admission.streams:
        await asyncio.sleep(0.01)
    assert admission.unnamed_streams == 0


@pytest.mark.long
@limited(slow_request_s=4.0)
async def test_a_health_check_that_does_not_arrive_is_given_up(channel: Any) -> None:
    call = channel.stream_unary("/grpc.health.v1.Health/Check")()
    await call.wait_for_connection()
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


@pytest.mark.long
@limited(max_streams_per_peer=1, slow_request_s=4.0)
async def test_reflection_counts_as_a_stream_takes_short_words_and_ends(
    channel: aio.Channel, admission: Admission
) -> None:
    stub, ask = reflection_pb2_grpc.ServerReflectionStub(channel), reflection_pb2.ServerReflectionRequest
    held = stub.ServerReflectionInfo()
    await held.write(ask(list_services=""))
    assert (await held.read()).list_services_response.service
    assert await _end(stub.ServerReflectionInfo()) is BUSY
    assert await _end(held) is grpc.StatusCode.DEADLINE_EXCEEDED
    assert admission.streams == 0
    long = stub.ServerReflectionInfo()
    await long.write(ask(file_containing_symbol="x" * 100_000))
    assert await _end(long) is grpc.StatusCode.INVALID_ARGUMENT


async def test_strangers_may_read_the_schema_and_nothing_else(channel: aio.Channel) -> None:
    stub, ask = reflection_pb2_grpc.ServerReflectionStub(channel), reflection_pb2.ServerReflectionRequest
    asking = stub.ServerReflectionInfo()
    await asking.write(ask(file_containing_symbol="hq.v1.InstanceService"))
    assert (await asking.read()).file_descriptor_response.file_descriptor_proto
    asking.cancel()
    assert await _refusal(channel) is grpc.StatusCode.UNAUTHENTICATED


@limited(max_calls_per_peer_s=0.02)
async def test_strangers_have_the_rate_of_their_address_though_they_are_not_let_in(
    channel: aio.Channel, http: RawHttp, files: Secured
) -> None:
    codes = [await _refusal(channel) for _ in range(60)]
    assert set(codes) == {grpc.StatusCode.UNAUTHENTICATED, BUSY}
    assert codes.count(BUSY) == 59
    statuses = [(await http.post(b"{}")).status for _ in range(20)]
    statuses += [(await http.get("/metrics")).status for _ in range(20)]
    assert 429 in statuses[:20]
    assert 429 in statuses[20:]
    assert (await http.get("/livez")).status == 200, "who looks after HQ is always answered"
    _start, *lines = files.audit.read_text().splitlines()
    told = codes.count(grpc.StatusCode.UNAUTHENTICATED) + statuses.count(401)
    assert len(lines) == told, "what the rate refused is in no audit log"


async def test_a_flood_of_strangers_leaves_sums_in_the_audit_log(
    channel: aio.Channel, shared: ServerContext, files: Secured
) -> None:
    codes = [await _refusal(channel) for _ in range(600)]
    assert set(codes) == {grpc.StatusCode.UNAUTHENTICATED}
    assert shared.security is not None
    shared.security.close()
    _start, *lines = [json.loads(line) for line in files.audit.read_text().splitlines()]
    assert [line["calls"] for line in lines] == [1, 599]


async def _refusal(channel: aio.Channel) -> grpc.StatusCode:
    try:
        await Client(channel).get("web-1")
    except aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


# --- one peer, however its address is written, and whatever its watches ask for ---


@pytest.mark.parametrize(("seen", "host"), [("::1", "::1"), ("10.0.0.1", "10.0.0.1"), ("::ffff:10.0.0.1", "10.0.0.1")])
def test_an_address_is_the_same_peer_whichever_socket_it_comes_from(seen: str, host: str) -> None:
    assert peer_of(None, (seen, 40_000)).host == host
