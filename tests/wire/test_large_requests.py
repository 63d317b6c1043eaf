"""Large requests: counted until they are answered, and read without keeping others waiting."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError
from prometheus_client import CollectorRegistry

from hqpb.v1 import service_pb2
from serving.calls.methods import Answer, Call, UnaryMethod
from serving.context import ServerContext
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, Limits
from serving.transport.server import Server
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, FakeHealth, FakeRegistry
from tests.wire.grpc_client import Client
from tests.wire.raw_http import RawHttp, post

LARGE = "x" * 100 * KIB
REQUEST = service_pb2.GetInstanceRequest


@pytest.fixture
def limits() -> Limits:
    return replace(Limits(), max_bodies_bytes_per_peer=350 * KIB)


async def test_the_decompressed_size_of_a_small_body_counts_until_it_is_answered(
    http: RawHttp, registry: FakeRegistry, admission: Admission
) -> None:
    body = gzip.compress(b'{"id":"wait:%s"}' % LARGE.encode())
    calls = [asyncio.create_task(http.post(body, content_encoding="gzip")) for _ in range(3)]
    await eventually(lambda: len(registry.calls) == 3)
    async with asyncio.timeout(20):
        assert (await http.post(body, content_encoding="gzip")).status == 429
    assert (await http.post(b'{"id":"web-1"}')).status == 200
    registry.release.set()
    assert [(await call).status for call in calls] == [200, 200, 200]
    await eventually(lambda: admission.bodies_bytes == 0)


async def test_over_grpc_a_large_request_counts_until_it_is_answered_too(
    grpc_client: Client, registry: FakeRegistry, admission: Admission
) -> None:
    calls = [asyncio.ensure_future(grpc_client.get(f"wait:{LARGE}")) for _ in range(3)]
    await eventually(lambda: len(registry.calls) == 3)
    with pytest.raises(AioRpcError) as raised:
        await grpc_client.get(f"wait:{LARGE}", timeout=20)
    assert raised.value.code() is StatusCode.RESOURCE_EXHAUSTED
    await grpc_client.get("web-1")
    registry.release.set()
    await asyncio.gather(*calls)
    await eventually(lambda: admission.bodies_bytes == 0)


# --- long JSON --------------------------------------------------------------------------------------------------------


class Slow:
    """A call whose long requests take as long to parse as the test wants."""

    def __init__(self) -> None:
        self.go_on = threading.Semaphore(0)
        self.parsed: list[bytes] = []
        self.parsing = self.most_parsing = 0

    def method(self) -> UnaryMethod:
        return UnaryMethod(GET, parse_proto(REQUEST), self.parse, self.answer)

    def parse(self, body: bytes) -> service_pb2.GetInstanceRequest:
        if len(body) > 64 * KIB:
            self.parsing += 1
            self.most_parsing = max(self.parsing, self.most_parsing)
            assert self.go_on.acquire(timeout=5)
            self.parsing -= 1
        self.parsed.append(body)
        return parse_json(REQUEST)(body)

    async def answer(self, request: service_pb2.GetInstanceRequest, call: Call) -> Answer:
        return MessageAnswer(service_pb2.GetInstanceResponse())


@pytest.fixture
async def slow(shared: ServerContext) -> AsyncIterator[tuple[Slow, RawHttp]]:
    one = Slow()
    server = Server([one.method()], FakeHealth(), shared, CollectorRegistry(), {})
    yield one, RawHttp(await server.listen("127.0.0.1:0"))
    one.go_on.release(10)
    await server.stop(0.0)


async def test_long_json_keeps_nobody_waiting(slow: tuple[Slow, RawHttp]) -> None:
    method, http = slow
    long = asyncio.create_task(http.post(b'{"id":"%s"}' % LARGE.encode()))
    await eventually(lambda: method.parsing)
    assert (await http.post(b'{"id":"web-1"}')).status == 200
    method.go_on.release()
    assert (await long).status == 200
    assert [len(body) for body in method.parsed] == [14, len(LARGE) + 9]


async def test_long_json_is_read_one_after_the_other_though_callers_leave(
    slow: tuple[Slow, RawHttp], admission: Admission
) -> None:
    method, http = slow
    body = b'{"id":"%s"}' % LARGE.encode()
    async with http.connect() as leaving:
        await leaving.send(post(body))
        await eventually(lambda: method.parsing)
    await eventually(lambda: not admission.calls)
    second = asyncio.create_task(http.post(body))
    await eventually(lambda: admission.calls)
    await asyncio.sleep(0.1)
    method.go_on.release(2)
    assert (await second).status == 200
    assert method.most_parsing == 1
