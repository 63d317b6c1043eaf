"""A site beside a server's pages: paths of its own, small bodies, counted streams that end with their reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field

import httpx
import pytest
from prometheus_client import CollectorRegistry

from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.standard.site import MAX_FORM_BYTES, SiteAnswer, SiteRequest
from serving.transport.server import Server
from tests.support.sample_instances import eventually
from tests.wire.fake_table import FakeHealth


@dataclass
class Sited:
    """A server with a site that echoes, and what it saw."""

    base: str
    context: ServerContext
    seen: list[SiteRequest] = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: SiteRequest) -> SiteAnswer:
        self.seen.append(request)
        if request.path == "/stream":
            return SiteAnswer(200, [(b"content-type", b"text/event-stream")], stream=self._pieces())
        if request.path == "/broken":
            raise RuntimeError("a site answers its own errors; this one forgot")
        return SiteAnswer(201, [(b"x-own", b"yes")], request.method.encode() + b" " + request.body)

    async def _pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(1_000_000):
                yield b"data: %d\n\n" % number
                await asyncio.sleep(0.01)
        finally:
            self.ended.set()


@pytest.fixture
async def at() -> AsyncIterator[Sited]:
    context = ServerContext(Limits(), SystemClock(), RequestIds("site"))
    made = Sited("", context)
    server = Server((), FakeHealth(), context, CollectorRegistry(), {}, site=made.answer)
    made.base = f"http://127.0.0.1:{await server.listen('127.0.0.1:0')}"
    yield made
    await server.stop(0.1)


async def test_all_paths_but_the_servers_own_are_the_sites(at: Sited) -> None:
    async with httpx.AsyncClient(base_url=at.base, trust_env=False, verify=False) as http:
        assert (await http.get("/")).text == "GET "
        assert (await http.post("/a/b%2Fc?x=1", content=b"form")).text == "POST form"
        assert (await http.get("/livez")).text == "ok\n"
    assert [(one.path, one.query_string) for one in at.seen] == [("/", b""), ("/a/b%2Fc", b"x=1")]
    assert at.seen[0].authority == at.base.removeprefix("http://")


async def test_a_body_over_the_limit_is_refused_before_the_site_sees_it(at: Sited) -> None:
    async with httpx.AsyncClient(base_url=at.base, trust_env=False, verify=False) as http:
        assert (await http.post("/", content=b"x" * MAX_FORM_BYTES)).status_code == 201
        assert (await http.post("/", content=b"x" * (MAX_FORM_BYTES + 1))).status_code == 413
    assert len(at.seen) == 1


async def test_a_stream_is_counted_and_ends_with_its_reader(at: Sited) -> None:
    async with (
        httpx.AsyncClient(base_url=at.base, trust_env=False, verify=False) as http,
        http.stream("GET", "/stream") as answer,
    ):
        async for line in answer.aiter_lines():
            if line == "data: 3":
                break
        assert at.context.admission.streams == 1
    async with asyncio.timeout(10):
        await at.ended.wait()
    await eventually(lambda: at.context.admission.streams == 0)


async def test_a_reader_that_takes_nothing_of_its_stream_is_cut_off() -> None:
    ended = asyncio.Event()

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"x" * 100_000
        finally:
            ended.set()

    async def site(request: SiteRequest) -> SiteAnswer:
        return SiteAnswer(200, [], stream=pieces())

    context = ServerContext(Limits(stalled_write_s=0.1), SystemClock(), RequestIds("site"))
    server = Server((), FakeHealth(), context, CollectorRegistry(), {}, site=site)
    port = await server.listen("127.0.0.1:0")
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_024)
    writer.write(b"GET / HTTP/1.1\r\nhost: site\r\n\r\n")
    await reader.read(100)
    async with asyncio.timeout(20):
        await ended.wait()
    await eventually(lambda: context.admission.streams == 0)
    assert context.admission.refused["stalled_write_s"] == 1
    writer.transport.abort()
    await server.stop(0.1)


async def test_a_site_that_fails_is_an_error_of_the_server_and_tells_nothing(at: Sited) -> None:
    async with httpx.AsyncClient(base_url=at.base, trust_env=False, verify=False) as http:
        answer = await http.get("/broken")
    assert answer.status_code == 500
    assert "forgot" not in answer.text
