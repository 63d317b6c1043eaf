"""The proxy that other tests trust does what it says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.support.faulty_proxy import Proxy
from tests.support.sample_instances import eventually

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opened = Callable[[], Awaitable[Line]]


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """In gateway of a server that answers each line with the same line."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(line)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with Proxy(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as proxy:
        yield proxy
    server.close()


@pytest.fixture
async def opened(proxy: Proxy) -> AsyncIterator[Opened]:
    """`await opened()` is a connection through the proxy."""
    lines: list[Line] = []

    async def connect() -> Line:
        host, _, port = proxy.endpoint.rpartition(":")
        lines.append(await asyncio.open_connection(host, int(port)))
        return lines[-1]

    yield connect
    for _, writer in lines:
        writer.transport.abort()


async def said(line: Line, word: bytes, timeout_s: float = 5.0) -> bytes:
    line[1].write(word + b"\n")
    return await heard(line, timeout_s)


async def heard(line: Line, timeout_s: float = 5.0) -> bytes:
    async with asyncio.timeout(timeout_s):
        return (await line[0].readline()).rstrip()


async def test_data_go_both_ways(proxy: Proxy, opened: Opened) -> None:
    line = await opened()
    assert await said(line, b"x" * 1_000) == b"x" * 1_000
    assert proxy.requests.passed_bytes == proxy.answers.passed_bytes == 1_001


async def test_the_end_of_one_side_reaches_the_other(proxy: Proxy, opened: Opened) -> None:
    line = await opened()
    line[1].write_eof()
    assert await heard(line) == b""


async def test_a_cut_resets_what_stands_and_what_comes_until_healed(proxy: Proxy, opened: Opened) -> None:
    line = await opened()
    await said(line, b"1")
    proxy.cut()
    with pytest.raises(ConnectionResetError):
        await heard(line)
    with pytest.raises(OSError, match="reset"):
        await said(await opened(), b"2")
    proxy.heal()
    assert await said(await opened(), b"3") == b"3"


async def test_what_is_stalled_is_silent_and_arrives_late(proxy: Proxy, opened: Opened) -> None:
    line = await opened()
    proxy.stall()
    with pytest.raises(TimeoutError):
        await said(line, b"1", timeout_s=0.1)
    proxy.heal()
    assert await heard(line) == b"1"


async def test_answers_can_be_lost_while_requests_arrive(proxy: Proxy, opened: Opened) -> None:
    line = await opened()
    proxy.answers.stall()
    with pytest.raises(TimeoutError):
        await said(line, b"1", timeout_s=0.1)
    await eventually(lambda: proxy.requests.passed_bytes == 2)
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        await heard(line)


async def test_a_delay_holds_everything_and_keeps_the_order(proxy: Proxy, opened: Opened) -> None:
    line = await opened()
    proxy.delay(0.05)
    before = asyncio.get_running_loop().time()
    assert [await said(line, b"%d" % n) for n in range(3)] == [b"0", b"1", b"2"]
    assert asyncio.get_running_loop().time() - before >= 3 * 2 * 0.05
