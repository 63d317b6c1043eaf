"""What many clients send at one moment is not handled in one go."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hqpb.v1 import service_pb2
from serving.calls.methods import Call, UnaryMethod
from serving.context import ServerContext
from serving.encoding.jsonio import MessageAnswer, parse_json, parse_proto
from serving.limiting.admission import Admission
from serving.transport.client import Channel
from serving.transport.connection import SURPLUS_S
from serving.transport.server import Server
from tests.wire.fake_table import GET, FakeHealth
from tests.wire.limited import limited
from tests.wire.raw_http import RawHttp, post

CONNECTIONS, EACH = 30, 10
MOST = 56  # a turn's worth, and what of the last connection cannot be divided


class Counted:
    """A method that answers at once, and how many answers there were."""

    def __init__(self) -> None:
        self.answers = 0
        self.most = 0  # in one turn of the loop

    def method(self) -> UnaryMethod:
        get = service_pb2.GetInstanceRequest
        return UnaryMethod(GET, parse_proto(get), parse_json(get), self._get)

    def _get(self, _request: service_pb2.GetInstanceRequest, _call: Call) -> MessageAnswer:
        self.answers += 1
        return MessageAnswer(service_pb2.GetInstanceResponse())

    async def watch(self) -> None:
        """Until all were answered."""
        while self.answers < CONNECTIONS * EACH:
            before = self.answers
            await asyncio.sleep(0)
            self.most = max(self.most, self.answers - before)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
async def port(counted: Counted, health: FakeHealth, shared: ServerContext) -> AsyncIterator[int]:
    server = Server([counted.method()], health, shared, CollectorRegistry(), {})
    yield await server.listen("127.0.0.1:0")
    await server.stop(0.0)


async def gather(counted: Counted, calls: Sequence[asyncio.Future[Any]]) -> None:
    async with asyncio.timeout(30):
        await counted.watch()
        await asyncio.gather(*calls)


async def test_calls_over_many_http2_connections_are_answered_a_few_in_each_turn_of_the_loop(
    port: int, counted: Counted
) -> None:
    channels = [Channel(f"127.0.0.1:{port}") for _ in range(CONNECTIONS)]
    await asyncio.gather(*(one.unary(f"/{GET}", b"", 30.0) for one in channels))
    counted.answers = 0
    calls = [asyncio.ensure_future(one.unary(f"/{GET}", b"", 30.0)) for one in channels for _ in range(EACH)]
    await gather(counted, calls)
    assert counted.most <= MOST
    await asyncio.gather(*(one.close() for one in channels))


async def test_pipelined_requests_over_many_http11_connections_are_answered_a_few_in_each_turn_of_the_loop(
    port: int, counted: Counted
) -> None:
    async with AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(RawHttp(port).connect()) for _ in range(CONNECTIONS)]
        sent = [asyncio.ensure_future(one.send(post(b"{}") * EACH)) for one in connections]
        await gather(counted, sent)
        assert counted.most <= MOST
        for one in connections:
            for _ in range(EACH):
                assert (await one.answer()).status == 200


@limited(max_connections_per_peer=1)
async def test_connections_that_say_nothing_are_not_turned_away_all_at_once(port: int, admission: Admission) -> None:
    most, silent = 0, 200
    with ExitStack() as stack:
        for _ in range(1 + silent):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        await asyncio.sleep(SURPLUS_S / 2)
        time.sleep(SURPLUS_S)  # now the time of all of them is over
        async with asyncio.timeout(30):
            while (before := admission.refused["max_connections_per_peer"]) < silent:
                await asyncio.sleep(0)
                most = max(most, admission.refused["max_connections_per_peer"] - before)
    assert most <= silent // 2  # refusing one takes a tenth of a millisecond, and a turn ends after one


async def test_connections_with_more_requests_than_one_turn_takes_get_all_their_answers(
    port: int, counted: Counted
) -> None:
    async with RawHttp(port).connect() as one, RawHttp(port).connect() as other:
        await asyncio.gather(one.send(post(b"{}") * 60), other.send(post(b"{}") * 60))
        for _ in range(60):
            assert (await one.answer()).status == 200
            assert (await other.answer()).status == 200
    assert counted.answers == 120
