"""A part that takes connections and never answers: pages wait for it once, and show what the others say."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from console.backends.patience import PART_S
from tests.console.scene import Cloud, cloud

PAGES = ("/", "/services", "/services/cart", "/nodes/node-0", "/instances/test/web-0")


@asynccontextmanager
async def silent_server() -> AsyncIterator[str]:
    """It listens, and that is all."""

    async def keep(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)

    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for one in writers:
            one.close()
        server.close()


@asynccontextmanager
async def hanging() -> AsyncIterator[Cloud]:
    async with (
        silent_server() as address,
        cloud(
            nanny=address,
            cms=address,
            walle=address,
            recorder=address,
        ) as made,
    ):
        yield made


@pytest.fixture
async def at() -> AsyncIterator[Cloud]:
    async with hanging() as made:
        yield made


async def _first_s() -> float:
    async with hanging() as at:
        return (await _seconds(at, "/"))[0]


async def _seconds(at: Cloud, path: str) -> tuple[float, str]:
    began = time.monotonic()
    page = await at.browser.get(path)
    assert page.status_code == 200, path
    return time.monotonic() - began, page.text


@pytest.mark.long
async def test_the_first_page_waits_once_and_shows_hqs_numbers_beside_what_hangs(at: Cloud) -> None:
    # For all three at once. One of the first pages may meet a stall of the machine.
    assert min([await _first_s() for _ in range(3)]) < 3 * PART_S
    await _seconds(at, "/")
    _, page = await _seconds(at, "/")
    assert "cart: 1 of 4 instances ready" in page
    for name in ("Nanny", "CMS", "Wall-E"):
        assert f"{name} has not answered since" in page
    assert "is missing here" in page


@pytest.mark.long
async def test_no_page_of_hq_waits_for_a_part_that_is_known_to_hang(at: Cloud) -> None:
    await _seconds(at, "/")
    for path in PAGES:
        # Some of five may meet a stall of the machine; each would wait for PART_S.
        assert min([(await _seconds(at, path))[0] for _ in range(5)]) < PART_S, path


@pytest.mark.long
async def test_a_service_keeps_its_way_back_while_nanny_hangs_and_says_why_it_may_fail(at: Cloud) -> None:
    _, page = await _seconds(at, "/services/cart")
    assert "Snapshots, roll back" in page
    assert "Nanny has not answered since" in page
    assert "CMS has not answered since" in page
    assert "The recorder has not answered since" in page
