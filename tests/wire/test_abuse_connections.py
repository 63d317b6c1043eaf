"""Connections and requests that are held up, pinged or kept too long are ended, and a neighbour is still served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import pytest
from grpc import aio

from serving.h2 import frames
from serving.limiting.admission import Admission
from serving.limiting.limits import Limits
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, WATCH, FakeRegistry
from tests.wire.grpc_client import Client
from tests.wire.limited import limited
from tests.wire.neighbour import Neighbour, beside
from tests.wire.raw_http import RawHttp, post

SLOW_S = 4.0  # longer than this process stands still: the neighbour's calls end in time


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
async def neighbour(grpc_port: int, http_port: int) -> AsyncIterator[Neighbour]:
    async with beside(grpc_port, http_port) as calling:
        yield calling


@pytest.mark.long
@limited(slow_request_s=SLOW_S)
async def test_grpc_requests_that_do_not_arrive_are_given_up(
    neighbour: Neighbour, grpc_port: int, admission: Admission
) -> None:
    async with aio.insecure_channel(f"127.0.0.1:{grpc_port}") as opened:
        channel: Any = opened
        unary = [channel.stream_unary(f"/{GET}")() for _ in range(20)]
        streams = [channel.stream_stream(f"/{WATCH}")() for _ in range(20)]
        for call in (*unary, *streams):
            await call.wait_for_connection()
        codes = [await call.code() for call in (*unary, *streams)]
    assert set(codes) == {grpc.StatusCode.DEADLINE_EXCEEDED}
    assert admission.refused == {"slow_request_s": 40}
    assert admission.streams == 0


async def test_a_grpc_call_that_ends_without_a_request_is_told_so(grpc_client: Client, admission: Admission) -> None:
    channel: Any = grpc_client.channel
    call = channel.stream_unary(f"/{GET}")()
    await call.done_writing()
    assert await call.code() is grpc.StatusCode.UNIMPLEMENTED
    await eventually(lambda: admission.calls == 0)
    assert admission.refused == {}


@pytest.mark.long
@limited(slow_request_s=SLOW_S)
async def test_http_requests_that_drip_are_given_up(neighbour: Neighbour, http: RawHttp, admission: Admission) -> None:
    async def drip() -> int:
        async with http.connect() as connection:
            answer = asyncio.create_task(connection.answer())
            for byte in post(b'{"id":"web-1"}'):
                if answer.done():
                    break
                with suppress(ConnectionError):  # it hung up: the answer is on its way
                    await connection.send(bytes([byte]))
                await asyncio.sleep(0.2)
            return (await answer).status

    assert await asyncio.gather(*(drip() for _ in range(20))) == [408] * 20
    assert admission.refused == {"slow_request_s": 20}


async def test_a_client_that_floods_with_pings_is_sent_away(
    neighbour: Neighbour, grpc_port: int, admission: Admission
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", grpc_port)
    writer.write(frames.PREFACE + frames.settings({}) + frames.frame(frames.PING, 0, 0, bytes(8)) * 20_000)
    received = await asyncio.wait_for(reader.read(), 30)
    assert b"too many empty frames" in received
    assert admission.refused == {"frame_floods": 1}
    writer.close()


@pytest.mark.long
@limited(max_connection_idle_s=0.5)
async def test_a_grpc_connection_without_calls_is_closed(neighbour: Neighbour, grpc_port: int) -> None:
    async with aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        await Client(channel).get("web-1")
        await _until_not_ready(channel)
        assert (await Client(channel).get("web-1")).instance.meta.id == "web-1", "it connects anew by itself"


@limited(max_connection_age_s=1.0, max_connection_age_grace_s=SLOW_S)
@pytest.mark.long
async def test_an_old_grpc_connection_is_ended_though_its_client_does_not_agree(
    neighbour: Neighbour, grpc_port: int, registry: FakeRegistry
) -> None:
    async with aio.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        stream = Client(channel).watch("quiet")
        await anext(stream)
        with pytest.raises(aio.AioRpcError) as ended:
            await asyncio.wait_for(anext(stream), 30)
    assert ended.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


async def _until_not_ready(channel: aio.Channel) -> None:
    async with asyncio.timeout(30):
        while (state := channel.get_state()) is grpc.ChannelConnectivity.READY:
            await channel.wait_for_state_change(state)
