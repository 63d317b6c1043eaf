"""Starting and stopping the HTTP transport."""

from __future__ import annotations

import asyncio
import signal

import pytest

from serving.h2.frames import PREFACE
from serving.transport.arrival import Arrival
from serving.transport.server import Server
from tests.wire.fake_table import WATCH, FakeRegistry
from tests.wire.raw_http import RawHttp, post
from tests.wire.test_http_stream import JSON, envelope, messages


async def test_a_taken_port_is_an_error(http_server: Server) -> None:
    port = await http_server.listen("127.0.0.1:0")
    with pytest.raises(OSError, match=f"127.0.0.1:{port}"):
        await http_server.listen(f"127.0.0.1:{port}")


async def test_signals_stay_with_the_process(http_port: int) -> None:
    assert http_port
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_the_http_server_listens_on_ipv6_as_well(http_server: Server) -> None:
    port = await http_server.listen("[::1]:0")
    reader, writer = await asyncio.open_connection("::1", port)
    writer.write(b"GET /livez HTTP/1.1\r\nhost: hq\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()


async def test_stopping_lets_calls_finish_within_the_grace(
    http_server: Server, http: RawHttp, registry: FakeRegistry
) -> None:
    async with http.connect() as connection, http.connect() as idle:
        await connection.send(post(b'{"id":"wait"}'))
        await registry.started.wait()
        stopping = asyncio.create_task(http_server.stop(10))
        assert await asyncio.wait_for(idle.hung_up(), 30)
        registry.release.set()
        answer = await connection.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        await asyncio.wait_for(stopping, 30)


async def test_stopping_breaks_off_what_outlives_the_grace_with_an_answer(
    http_server: Server, http: RawHttp, registry: FakeRegistry
) -> None:
    async with http.connect() as call, http.connect() as stream:
        await stream.send(post(envelope(b'{"resumeToken":"quiet"}'), f"/{WATCH}", **JSON))
        await stream.head()
        first = await stream.chunk()
        registry.started.clear()
        await call.send(post(b'{"id":"wait"}'))
        await registry.started.wait()
        await asyncio.wait_for(http_server.stop(0.1), 30)
        answer = await call.answer()
        assert (answer.status, answer.json()["details"][0]["debug"]["reason"]) == (504, "OUTCOME_UNKNOWN")
        found, end = messages(first + await stream.chunk())
        assert len(found) == 1
        assert end["error"]["code"] == "unavailable"


async def test_a_stopped_server_takes_no_connections(http_server: Server, http: RawHttp) -> None:
    await http_server.stop(0)
    with pytest.raises(ConnectionRefusedError):
        async with http.connect():
            pass


@pytest.mark.parametrize(
    "begins",
    [b"GET /livez HTTP/1.1\r\nhost: hq\r\n\r\n", PREFACE + b"\0\0\0\4\0\0\0\0\0"],
    ids=["HTTP/1.1", "HTTP/2"],
)
async def test_a_connection_that_is_made_as_the_server_stops_is_answered(
    begins: bytes, http_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop closes an accepted socket whose task is cancelled, and tells nobody: the next write was an error."""
    made = Arrival.connection_made

    def made_as_it_stops(self: Arrival, transport: asyncio.BaseTransport) -> None:
        made(self, transport)
        http_server._ends[0]()

    monkeypatch.setattr(Arrival, "connection_made", made_as_it_stops)
    reader, writer = await asyncio.open_connection("127.0.0.1", await http_server.listen("127.0.0.1:0"))
    writer.write(begins)
    assert await asyncio.wait_for(reader.read(1), 30)
    writer.close()
