"""What a controller had to mend in its memory is in its metrics and in its status, as at a replica of HQ."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx
import pytest

from control import ControlConfig, Controller
from nanny.server import NannyProcess
from nanny.world.leave import NoCms
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from store.memory import MemoryStore
from tests.clients.process import command
from tests.cms.cloud import service_of
from tests.support.walle.running import ANYWHERE, running

Started = tuple[Controller, str]  # and its address


@asynccontextmanager
async def cms() -> AsyncIterator[Started]:
    async with service_of(1) as (_, one):
        yield one.server.controller, f"127.0.0.1:{one.port}"


@asynccontextmanager
async def nanny() -> AsyncIterator[Started]:
    shared, store = ServerContext(Limits(), SystemClock(), RequestIds("one")), MemoryStore()
    config, rng = ControlConfig("/nanny/v1/", "one", 1.0), random.Random(1)
    server = NannyProcess(config, store, rng, shared, ANYWHERE, {}, NoCms(), grace_s=0.1)
    task = asyncio.create_task(server.serve())
    yield server.controller, (await server.listening).http
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def walle() -> AsyncIterator[Started]:
    async with running() as one:
        yield one.server.controller, one.address


@pytest.mark.long
@pytest.mark.parametrize(
    ("start", "program", "words"),
    [
        (cms, "hqctl.main", "disruptions status --cms {}"),
        (nanny, "nanny.main", "control --nanny {}"),
        (walle, "walle.main", "--server {} settings get"),
    ],
    ids=["cms", "nanny", "walle"],
)
async def test_repairs_are_counted_and_the_status_says_so(
    start: Callable[[], AbstractAsyncContextManager[Started]], program: str, words: str
) -> None:
    async with start() as (controller, address), httpx.AsyncClient(trust_env=False) as http:
        await controller.loaded.wait()
        asked = words.format(address).split()
        assert "differed" not in (await command(program, *asked)).out
        proof = controller._following.proof
        proof.mended, proof.compared_at = 2, controller.clock.now()
        assert "differed from its store in 2 records, and was mended" in (await command(program, *asked)).out
        name = program.split(".")[0].replace("hqctl", "cms")
        lines = (await http.get(f"http://{address}/metrics")).text.splitlines()
        assert f"{name}_store_repairs_total 2.0" in lines
        [ago] = [line.split()[1] for line in lines if line.startswith(f"{name}_memory_compared_seconds ")]
        assert 0 <= float(ago) < 60
