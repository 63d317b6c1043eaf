"""Live updates are bounded: who opens too many streams, or reads none, takes no page from anybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from console.site.live import MAX_STREAMS, MAX_STREAMS_OF_SESSION
from tests.console.scene import Cloud, cloud


@pytest.fixture
async def at() -> AsyncIterator[Cloud]:
    async with cloud() as made:
        yield made


@asynccontextmanager
async def event_source(at: Cloud, browser: int, page: str = "/services") -> AsyncIterator[tuple[int, str]]:
    """One of a browser, which reads its head (status, and what else came) and then nothing more."""
    host = at.base.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*host.split(":"), limit=1_024)
    try:
        cookie = f"__Host-browser={browser:032x}"
        writer.write(f"GET /live?page={page} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n\r\n".encode())
        head = await reader.read(16_384)
        yield int(head.split(b" ")[1]), head.decode("utf-8", "replace")
    finally:
        writer.transport.abort()


@asynccontextmanager
async def event_sources(at: Cloud, browsers: list[int]) -> AsyncIterator[Counter[int]]:
    """Many at once, with their statuses."""
    sources = [event_source(at, browser, f"/services%3Fshow={browser + 1}") for browser in browsers]
    try:
        opened = await asyncio.gather(*(one.__aenter__() for one in sources))
        yield Counter(status for status, _ in opened)
    finally:
        await asyncio.gather(*(one.__aexit__(None, None, None) for one in sources))


async def test_one_stream_too_many_of_a_session_is_refused_with_the_reason_and_pages_stay(at: Cloud) -> None:
    async with event_sources(at, [1] * MAX_STREAMS_OF_SESSION) as opened:
        assert opened == {200: MAX_STREAMS_OF_SESSION}
        async with event_source(at, 1) as (status, text):
            assert status == 429
            assert "close some of them" in text
            assert "retry-after: 30" in text
        async with event_source(at, 2) as (status, _):
            assert status == 200
        assert (await at.browser.get("/services")).status_code == 200


@pytest.mark.long
async def test_a_thousand_unread_streams_leave_pages_answered(at: Cloud) -> None:
    async with event_sources(at, list(range(1_000))) as opened:
        assert opened == {200: MAX_STREAMS, 503: 1_000 - MAX_STREAMS}
        for path in ("/", "/services", "/services/cart") * 3:
            assert (await at.browser.get(path)).status_code == 200
