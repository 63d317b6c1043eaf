"""A process of Wall-E in this event loop, over a store and real sockets, with short times."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from google.protobuf import json_format
from google.protobuf.message import Message

from control import ControlConfig
from hqclient import Client
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.memory import MemoryStore
from store.port import Store
from tests.support.walle.anywhere import ANYWHERE as EVERYWHERE
from walle.executors.command import CommandConfig
from walle.process.config import FileConfig
from walle.process.hq import Hq
from walle.server import WalleServer
from walle.tables import KINDS
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import Host
from wallepb.v1.project_pb2 import Project, Scenario

ANYWHERE = Addresses("127.0.0.1:0", "127.0.0.1:0")


def pretending(**more: Any) -> FileConfig:
    """Every operation is a program that does nothing, and succeeds."""
    given = {"destinations": EVERYWHERE, **more}
    executors = {"true": CommandConfig(("true",))}
    return FileConfig(executors=executors, operations=dict.fromkeys(KINDS.values(), "true"), **given)


def _new_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=20, verify=False)


async def call_json(
    address: str, request: Message, status: int = 200, client: httpx.AsyncClient | None = None
) -> dict[str, Any]:
    """By HTTP with JSON, as a stranger would; the method is named as the request is.

    `client`: whose connection is kept; None: a new one.
    """
    name = type(request).__name__.removesuffix("Request")
    body = json_format.MessageToJson(request, indent=None)
    async with AsyncExitStack() as stack:
        http = client if client is not None else await stack.enter_async_context(_new_client())
        url = f"http://{address}/walle.v1.WalleService/{name}"
        response = await http.post(url, content=body, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    answer: dict[str, Any] = response.json()
    return answer


class Running:
    """A process that listens."""

    def __init__(self, server: WalleServer, address: str, task: asyncio.Task[None]) -> None:
        self.server, self.address, self.task = server, address, task

    async def call(self, request: Message, status: int = 200) -> dict[str, Any]:
        return await call_json(self.address, request, status)

    async def project(self, project: Project) -> None:
        await self.call(pb.CreateProjectRequest(project=project))

    async def host(self, name: str, project: str = "web", **more: Any) -> None:
        """Add a host that is in use at once."""
        await self.call(pb.AddHostRequest(host=name, project=project, ignore_cms=True, **more))
        await self.until(
            lambda: self.of(name).state == 2 and not self.of(name).HasField("operation"), f"{name} is ready"
        )

    async def report(self, name: str, check: str, *, failing: bool = True) -> None:
        one = pb.CheckReport(name=check, failing=failing, source="test")
        await self.call(pb.ReportChecksRequest(hosts=[pb.HostChecks(host=name, check=[one])]))

    def of(self, name: str) -> Host:
        return self.server.automaton.hosts.get(name) or Host()

    def scenario(self, name: str) -> Scenario:
        return self.server.automaton.scenarios.get(name) or Scenario()

    async def until(self, holds: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not holds():
            assert asyncio.get_running_loop().time() < deadline, f"not within {timeout_s} s: {what}"
            await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """Crash: nothing is given back."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class LastingStore(MemoryStore):
    """Outlives the processes that use it."""

    async def close(self) -> None:
        """Not yet."""


@asynccontextmanager
async def running(
    store: Store | None = None,
    file: FileConfig | None = None,
    hq: Client | None = None,
    name: str = "walle-1",
    settle_ms: int = 0,
    security: Security | None = None,
    addresses: Addresses = ANYWHERE,
    term_s: float | None = None,
) -> AsyncIterator[Running]:
    """It acts once this is entered, unless another process does.

    `term_s` None: short with a store that others use, too.
    """
    shared = ServerContext(Limits(), SystemClock(), RequestIds(name), security=security)
    server = WalleServer(
        ControlConfig("/walle/v1/", name, term_s=term_s or (1.0 if store else 10.0)),
        "test",
        file or pretending(),
        store or MemoryStore(),
        shared,
        random.Random(name),
        addresses,
        Hq({"ams": hq}) if hq is not None else None,
        settle_ms,
        0.1,
    )
    task = asyncio.create_task(server.serve())
    one = Running(server, (await server.listening).http, task)
    try:
        await one.until(lambda: bool(server.controller.acting_process), "somebody acts")
        yield one
    finally:
        await one.kill()
