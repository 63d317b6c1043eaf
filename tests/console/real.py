"""All servers as processes, as an operator would start them to try them out, and one agent for all instances."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from hqclient import Client
from hqpb.v1 import instance_pb2 as ipb
from tests.console.scene import Browser, browser_at
from tests.support.sample_instances import eventually

_ROOT: Final = Path(__file__).resolve().parents[2]
_LISTENING: Final = re.compile(rb"listening: gRPC ([^,\s]+), HTTP ([^,\s]+)")
ANY_ADDRESS: Final = ("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")


@dataclass
class Everything:
    """Addresses of the servers (gRPC), the console's pages, and a client of HQ."""

    cms: str
    nanny: str
    walle: str
    browser: Browser
    client: Client


@asynccontextmanager
async def process(*words: str) -> AsyncIterator[tuple[str, str]]:
    """One of them: where it listens for gRPC and HTTP. It ends with the block."""
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("HQ_", "CMS_", "NANNY_", "WALLE_"))
    }
    path = os.pathsep.join(str(_ROOT / part) for part in (".", "proto", "clients"))
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**env, "PYTHONPATH": path},
    )
    assert started.stderr is not None
    said = b""
    try:
        async with asyncio.timeout(60):
            while not (found := _LISTENING.search(said)):
                line = await started.stderr.readline()
                assert line, said.decode()
                said += line
        draining = asyncio.create_task(_drain(started.stderr))
        yield found[1].decode(), found[2].decode()
        draining.cancel()
    finally:
        if started.returncode is None:
            started.terminate()
        await started.wait()


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65_536):
        pass


@asynccontextmanager
async def everything() -> AsyncIterator[Everything]:
    """HQ, CMS, Nanny, Wall-E and the console over them; instances become what is wanted of them."""
    async with process("hq.main", "dev", "--store", "memory", *ANY_ADDRESS, "--agents", "") as (hq, _):
        at = ("--location", f"default={hq}")
        async with (
            process("cms.main", "dev", "--store", "memory", *ANY_ADDRESS, *at) as (cms, _),
            process("nanny.main", "dev", "--store", "memory", *ANY_ADDRESS, *at, "--cms", cms) as (nanny, _),
            _walle(cms, *at) as walle,
            process(
                *("console.main", "serve", "--http", "127.0.0.1:0", "--hq", hq),
                *("--cms", cms, "--nanny", nanny, "--walle", walle),
            ) as (_, http),
            Client([hq]) as client,
            browser_at(f"http://{http}") as browser,
        ):
            agent = asyncio.create_task(_agent(client))
            try:
                yield Everything(cms, nanny, walle, browser, client)
            finally:
                agent.cancel()
                await asyncio.gather(agent, return_exceptions=True)


@asynccontextmanager
async def _walle(cms: str, *more: str) -> AsyncIterator[str]:
    """Wall-E, which may call this CMS."""
    with tempfile.NamedTemporaryFile("w") as config:
        config.write(f"cms: [{{url: 'http://{cms}'}}]")
        config.flush()
        words = ("walle.main", "dev", "--store", "memory", *ANY_ADDRESS, "--settle", "1s", "--config", config.name)
        async with process(*words, *more) as (walle, _):
            yield walle


async def call_until_taken(call: Any, request: Any) -> Any:
    """Orders take effect one after the other, and none does before a process acts."""

    async def try_it() -> list[Any]:
        try:
            return [await call(request)]
        except grpc.aio.AioRpcError as error:
            if error.code() not in (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNAVAILABLE):
                raise
            return []

    return (await eventually(try_it, 30))[0]


async def _agent(client: Client) -> None:
    """Report of each revision what is wanted of it, whenever that changes."""
    begun: dict[tuple[str, str], ipb.RevisionStatus] = {}
    while True:
        async for page in client.find():
            for one in page.instances:
                for revision in one.spec.revision:
                    await _report(client, begun, one, revision)
        await asyncio.sleep(0.1)


async def _report(
    client: Client,
    begun: dict[tuple[str, str], ipb.RevisionStatus],
    one: ipb.Instance,
    revision: ipb.InstanceRevision,
) -> None:
    key = one.meta.id, revision.id
    if key not in begun:
        answer = await client.begin_reporting(*key, node=one.spec.node_name)
        begun[key] = ipb.RevisionStatus(id=revision.id, incarnation=answer.incarnation)
    status = begun[key]
    if status.spec_version == one.meta.version:
        return
    status.spec_version, status.sequence = one.meta.version, status.sequence + 1
    status.installed.status = ipb.CONDITION_STATUS_TRUE
    is_wanted = revision.target == ipb.REVISION_TARGET_READY
    status.ready.status = ipb.CONDITION_STATUS_TRUE if is_wanted else ipb.CONDITION_STATUS_FALSE
    await client.report(one.meta.id, status, uid=one.meta.uid, node=one.spec.node_name)
