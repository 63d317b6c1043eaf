"""Readers that are slow but take more than the least: they are served to the end, however much waits behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from hqpb.v1 import service_pb2
from serving.encoding.envelopes import envelope
from serving.h2 import frames, hpack
from serving.limiting.admission import Admission
from serving.limiting.limits import KIB, MIB
from tests.support.sample_instances import eventually
from tests.wire.fake_table import GET, WATCH
from tests.wire.limited import limited

ENDLESS = service_pb2.WatchInstancesRequest(resume_token="endless").SerializeToString()
BIG = service_pb2.GetInstanceRequest(id=f"big:{MIB}").SerializeToString()
STALLED_S = 1.0
slow = limited(stalled_write_s=STALLED_S, send_buffer_bytes=16 * KIB)


def call(stream_id: int, path: str, message: bytes) -> bytes:
    """A whole gRPC call."""
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/" + path.encode()), (b":authority", b"x")]
    block = hpack.encode([*fields, (b"te", b"trailers"), (b"content-type", b"application/grpc")])
    head = frames.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)
    return head + frames.frame(frames.DATA, frames.END_STREAM, stream_id, envelope(0, message))


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[socket.socket]:
    """A client with windows without end, and a system that takes little by itself."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * KIB)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", port))
        wide = frames.settings({frames.INITIAL_WINDOW_SIZE: frames.MAX_WINDOW}) + frames.window_update(0, 1 << 30)
        await loop.sock_sendall(sock, frames.PREFACE + wide)
        yield sock


async def read_for(
    sock: socket.socket, seconds: float, between: Callable[[int], bytes] = lambda _: b"", at_once: int = 20 * KIB
) -> int:
    """Read so much every 50 ms; how many bytes came until then, or until nothing came any more."""
    loop, taken, number = asyncio.get_running_loop(), 0, 0
    until = loop.time() + seconds
    while loop.time() < until:
        try:
            async with asyncio.timeout(0.5):
                part = await loop.sock_recv(sock, at_once)
        except (TimeoutError, ConnectionError):
            return taken
        taken += len(part)
        number += 1
        if more := between(number):
            await loop.sock_sendall(sock, more)
        await asyncio.sleep(0.05)
    return taken


@pytest.mark.long
@slow
async def test_an_endless_stream_goes_on_for_a_reader_that_is_slower_than_the_stream(
    grpc_port: int, admission: Admission
) -> None:
    async with connected(grpc_port) as sock:
        await asyncio.get_running_loop().sock_sendall(sock, call(1, WATCH, ENDLESS))
        taken = await read_for(sock, 4 * STALLED_S)
    assert admission.refused["stalled_write_s"] == 0, f"cut off, though it took {taken} bytes"


@pytest.mark.long
@slow
async def test_a_reader_is_not_cut_off_because_more_and_more_waits_for_it(grpc_port: int, admission: Admission) -> None:
    def more(number: int) -> bytes:
        return call(2 * number + 1, GET, BIG) if number % 5 == 0 else b""

    async with connected(grpc_port) as sock:
        await asyncio.get_running_loop().sock_sendall(sock, call(1, GET, BIG))
        taken = await read_for(sock, 4 * STALLED_S, more)
    assert admission.refused["stalled_write_s"] == 0, f"cut off, though it took {taken} bytes"


@pytest.mark.long
@slow
async def test_a_reader_that_takes_long_for_one_answer_is_not_cut_off(grpc_port: int, admission: Admission) -> None:
    async with connected(grpc_port) as sock:
        await asyncio.get_running_loop().sock_sendall(sock, call(1, GET, BIG))
        taken = await read_for(sock, 3 * STALLED_S, at_once=2 * KIB)
    assert admission.refused["stalled_write_s"] == 0, f"cut off, though it took {taken} bytes"


@pytest.mark.long
@slow
@pytest.mark.parametrize("rate", [0, 100])
async def test_a_reader_that_takes_less_than_the_least_is_cut_off(
    grpc_port: int, admission: Admission, rate: int
) -> None:
    async with connected(grpc_port) as sock:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(sock, call(1, GET, BIG))
        async with asyncio.timeout(10 * STALLED_S):
            while not admission.refused["stalled_write_s"]:
                await asyncio.sleep(0.1)
                if rate:
                    await loop.sock_recv(sock, rate // 10)
    await eventually(lambda: not admission.answers_bytes)
