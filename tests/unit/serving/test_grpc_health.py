"""Watches of grpc.health.v1: every change is sent, whenever it comes, and a shutdown ends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from grpc_health.v1 import health_pb2  # type: ignore[import-untyped]

from serving.calls.methods import Answer, Call, Streaming
from serving.standard.health import HealthCalls
from tests.wire.fake_table import FakeHealth

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def watch(over_grpc: HealthCalls) -> AsyncIterator[Answer]:
    [method] = [each for each in over_grpc.methods() if isinstance(each, Streaming)]
    return method.run(method.parse(b""), Call())


async def told(answers: AsyncIterator[Answer]) -> int:
    answer = await asyncio.wait_for(anext(answers), 10)
    return int(health_pb2.HealthCheckResponse.FromString(answer.proto()).status)


async def test_a_health_watch_opened_right_after_loading_sees_the_server_leave() -> None:
    health = FakeHealth()
    health.is_loaded = False
    over_grpc = HealthCalls(health, ())
    health.is_loaded = True  # and nobody has looked since
    answers = watch(over_grpc)
    assert await told(answers) == SERVING
    health.is_loaded = False
    await over_grpc.stop()
    assert await told(answers) == NOT_SERVING


async def test_a_watch_ends_with_the_server_even_if_it_was_not_serving() -> None:
    health = FakeHealth()
    health.is_loaded = False
    over_grpc = HealthCalls(health, ())
    answers = watch(over_grpc)
    assert await told(answers) == NOT_SERVING
    waiting = asyncio.create_task(anext(answers, None))
    await asyncio.sleep(0)
    await over_grpc.stop()
    assert await asyncio.wait_for(waiting, 10) is None
