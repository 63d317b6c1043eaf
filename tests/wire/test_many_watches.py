"""Thousands of watches opened at once by the clients that people use: each is served, or told when to come again.

The server takes 4,000 of one peer; no watch that it refuses may end in a bare CANCELLED, UNAVAILABLE or INTERNAL.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from grpc import aio

from hqpb.v1 import service_pb2
from tests.judges.processes import must, run
from tests.judges.tools import node
from tests.judges.verdict import Missing
from tests.wire.fake_table import WATCH
from tests.wire.grpc_client import details_of
from tests.wire.wire_server import Served, wire_server

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

_HERE: Final = Path(__file__).parent
_MOST: Final = 4_000  # of one peer, by default
_QUIET: Final = service_pb2.WatchInstancesRequest(resume_token="quiet").SerializeToString()
_PATIENCE_S: Final = 120.0
_BUILD_S: Final = 400.0
_OPTIONS: Final = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
REFUSED: Final = "RESOURCE_EXHAUSTED with RetryInfo"

Opens = Callable[[int, int, int], Awaitable[dict[str, int]]]
"""Port, connections and watches; how many went how."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with wire_server(tmp_path) as one:
        yield one


async def check(server: Served, opens: Opens, connections: int, watches: int) -> None:
    """All at once, then once more when the first have left: nothing of them may be counted any longer."""
    for _ in range(2):
        counts = dict(await opens(server.port, connections, watches))
        print(f"{watches} watches on {connections} connections: {counts}")
        counts = {how.replace("ResourceExhausted", "RESOURCE_EXHAUSTED"): number for how, number in counts.items()}
        expected = {"served": min(watches, _MOST), REFUSED: max(0, watches - _MOST)}
        assert counts == {how: number for how, number in expected.items() if number}
        async with asyncio.timeout(30):
            while (await server.books()).streams:
                await asyncio.sleep(0.1)


async def by_grpcio(port: int, connections: int, watches: int) -> dict[str, int]:
    async with AsyncExitStack() as stack:
        address = f"127.0.0.1:{port}"
        channels = [
            await stack.enter_async_context(aio.insecure_channel(address, options=_OPTIONS)) for _ in range(connections)
        ]
        stubs: list[Any] = [channel.unary_stream(f"/{WATCH}") for channel in channels]
        calls = [stubs[i % connections](_QUIET, timeout=_PATIENCE_S) for i in range(watches)]
        how = Counter(await asyncio.gather(*map(_went, calls)))
        for call in calls:
            call.cancel()
        return dict(how)


async def _went(call: Any) -> str:
    try:
        message = await call.read()
    except aio.AioRpcError as error:
        has_retry = "RetryInfo" in details_of(error) if error.trailing_metadata() else False
        return f"{error.code().name} with RetryInfo" if has_retry else f"{error.code().name}: {error.details()}"
    return "ended without a message" if message is aio.EOF else "served"


@pytest.fixture
async def by_go(tmp_path: Path) -> Opens:
    if shutil.which("go") is None:
        pytest.skip("there is no go on PATH: get it with `apt-get install golang-go`")
    folder, program = tmp_path / "watches_go", tmp_path / "watches"
    shutil.copytree(_HERE / "watches_go", folder)
    built = await run(("go", "build", "-mod=readonly", "-o", program, "."), _BUILD_S, cwd=folder)
    if built.code and "dial tcp" in built.text:
        pytest.skip(f"grpc-go's modules cannot be had: {built.text[-200:]}")
    assert not built.code, built.text
    return _program(program)


@pytest.fixture
async def by_node(tmp_path: Path) -> Opens:
    try:
        packages, _ = await node("@grpc/grpc-js")
    except Missing as error:
        pytest.skip(str(error))
    (tmp_path / "node_modules").symlink_to(packages / "node_modules")
    return _program("node", shutil.copy(_HERE / "watches.mjs", tmp_path))


def _program(*command: Path | str) -> Opens:
    async def opens(port: int, connections: int, watches: int) -> dict[str, int]:
        told = await must((*command, str(port), str(connections), str(watches), _QUIET.hex()), _PATIENCE_S)
        counts: dict[str, int] = json.loads(told)
        return counts

    return opens


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("watches", [3_000, 5_000])
async def test_grpcio_is_served_or_told_when_to_come_again(server: Served, connections: int, watches: int) -> None:
    await check(server, by_grpcio, connections, watches)


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("watches", [3_000, 5_000])
async def test_grpc_go_is_served_or_told_when_to_come_again(
    server: Served, by_go: Opens, connections: int, watches: int
) -> None:
    await check(server, by_go, connections, watches)


@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("watches", [3_000, 5_000])
async def test_grpc_js_is_served_or_told_when_to_come_again(
    server: Served, by_node: Opens, connections: int, watches: int
) -> None:
    await check(server, by_node, connections, watches)
