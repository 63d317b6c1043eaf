"""`python -m tests.wire.wire_server '{"max_streams": 10}'`: the fake table in a process of its own, under these limits.

It says `listening on PORT`, shows its books as JSON under /books, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
import uvloop
from prometheus_client import CollectorRegistry

from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.standard.pages import HttpPage, PageAnswer, PageRequest
from serving.transport.server import Server
from tests.judges.processes import started
from tests.wire.fake_table import FakeHealth, FakeRegistry
from tests.wire.raw_http import RawHttp

_LISTENING: Final = re.compile(r"^listening on (\d+)$", re.MULTILINE)
_START_S: Final = 30.0


class Books(NamedTuple):
    """What the server counts."""

    answers_bytes: int
    calls: int
    streams: int
    connections: int
    refused: dict[str, int]


class Served(NamedTuple):
    """Where it listens, and the process."""

    port: int
    process: psutil.Process

    async def books(self) -> Books:
        return Books(**(await RawHttp(self.port).get("/books")).json())


@asynccontextmanager
async def wire_server(directory: Path, **limits: float) -> AsyncIterator[Served]:
    """A server under these limits, until the end of the block."""
    log = directory / "server.log"
    async with started((sys.executable, "-m", "tests.wire.wire_server", json.dumps(limits)), log) as process:
        async with asyncio.timeout(_START_S):
            while (found := _LISTENING.search(log.read_text(errors="replace"))) is None:
                assert process.returncode is None, log.read_text(errors="replace")
                await asyncio.sleep(0.05)
        yield Served(int(found[1]), psutil.Process(process.pid))
        assert process.returncode is None, f"the server died: {log.read_text(errors='replace')[-2_000:]}"


async def _serve(limits: Limits) -> None:
    shared = ServerContext(limits, SystemClock(), RequestIds("test"))
    server: Server

    async def books(_request: PageRequest) -> PageAnswer:
        admission = shared.admission
        told: dict[str, Any] = {name: getattr(admission, name) for name in ("answers_bytes", "calls", "streams")}
        told |= {"connections": len(server._core.connections), "refused": dict(admission.refused)}
        return PageAnswer(200, "application/json", json.dumps(told).encode())

    server = Server(FakeRegistry().methods(), FakeHealth(), shared, CollectorRegistry(), {"/books": HttpPage(books)})
    print(f"listening on {await server.listen('127.0.0.1:0')}", flush=True)
    await asyncio.to_thread(sys.stdin.buffer.read)
    await server.stop(0)


if __name__ == "__main__":
    uvloop.run(_serve(replace(Limits(), **json.loads(sys.argv[1]))))
