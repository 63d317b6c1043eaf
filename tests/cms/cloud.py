"""A small cloud over real sockets in one event loop: an HQ per location, agents that report, processes of the CMS."""

from __future__ import annotations

import asyncio
import json
import random
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from cms.desk import CmsSettings
from cms.ledger.book import Rules, TaskLedger
from cms.ledger.budgets import Budgets
from cms.ledger.limits import DomainLimit, DomainLimits, Site
from cms.server import CmsServer
from cms.sites import sites_file
from control import ControlConfig
from hq.config import ReplicaConfig
from hq.process.server import ReplicaServer as HqServer
from hqclient import Client
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.auth.security import Security
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits as ServingLimits
from serving.listeners import Addresses
from serving.rights.patterns import IdentityPattern
from store.memory import MemoryStore
from store.port import Store
from tests.support.sample_instances import eventually, instance

REPORT_S = 1.0
PATIENT_S = 5.0
"""How long the CMS waits for a location and for a first decision: a machine that stalls changes no verdict."""
ANYWHERE = Addresses("127.0.0.1:0", "127.0.0.1:0")


class Reply(NamedTuple):
    """An HTTP answer."""

    status: int
    body: Any
    headers: Mapping[str, str]


class Crew:
    """Agents of one HQ: all of its instances report about every half second, but the silent ones."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ready: dict[str, bool] = {}
        self.silent: set[str] = set()
        self._reports: dict[str, pb.ReportStatusRequest] = {}

    async def add(self, instance_id: str, service: str, host: str, *, ready: bool | None = True) -> None:
        """Create an instance; None: nobody reports it."""
        await self.client.create(instance(instance_id, service, host))
        if ready is None:
            return
        begun = await self.client.begin_reporting(instance_id, "r1", node=host)
        status = model.RevisionStatus(id="r1", incarnation=begun.incarnation)
        self._reports[instance_id] = pb.ReportStatusRequest(
            instance_id=instance_id, uid=begun.uid, node=host, revision=status
        )
        self.ready[instance_id] = ready

    async def report(self) -> None:
        """All of them, once."""
        due = [one for name, one in self._reports.items() if name not in self.silent]
        for one in due:
            status, is_ready = one.revision, self.ready[one.instance_id]
            status.sequence += 1
            status.installed.status = model.CONDITION_STATUS_TRUE
            status.ready.status = model.CONDITION_STATUS_TRUE if is_ready else model.CONDITION_STATUS_FALSE
        if due:
            await self.client.report_many(due)

    async def run(self) -> None:
        while True:
            await self.report()
            await asyncio.sleep(REPORT_S / 2)


@dataclass
class Cms:
    """One process of the CMS. Its calls over the wire are real HTTP."""

    server: CmsServer
    port: int = 0
    task: asyncio.Task[None] | None = None

    async def call(self, method: str, path: str, body: object = None, version: str = "v1.4") -> Reply:
        """`path` below /v1.N/tasks."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"http://127.0.0.1:{self.port}/{version}/tasks{path}"
        return await asyncio.to_thread(http, method, url, data)

    async def ask(self, task_id: str, *hosts: str, action: str = "reboot", path: str = "", **more: Any) -> Reply:
        """POST a task."""
        return await self.call("POST", path, task(task_id, *hosts, action=action, **more))

    async def call_connect(self, name: str, body: object, service: str = "CmsService") -> Reply:
        """A call of cms.v1 by Connect."""
        url = f"http://127.0.0.1:{self.port}/cms.v1.{service}/{name}"
        return await asyncio.to_thread(http, "POST", url, json.dumps(body).encode())

    async def status(self, task_id: str) -> str:
        status: str = (await self.call("GET", f"/{task_id}")).body["status"]
        return status

    async def becomes(self, task_id: str, status: str, timeout_s: float = 20.0) -> None:
        async def holds() -> bool:
            return await self.status(task_id) == status

        await eventually(holds, timeout_s, f"{task_id} to be {status}")

    async def becomes_granted(self, task_id: str) -> None:
        """The same for a task that did not come over the wire: it is granted."""

        async def holds() -> bool:
            answer = await self.call_connect("GetTask", {"id": task_id})
            return bool(answer.body["state"]["status"] == "TASK_STATUS_OK")

        await eventually(holds, 20.0, f"{task_id} to be granted")

    async def kill(self) -> None:
        """Crash: nothing is given back."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def task(task_id: str, *hosts: str, action: str = "reboot", **more: Any) -> dict[str, Any]:
    """A request as JSON has it."""
    said = {"id": task_id, "type": "automated", "issuer": "wall-e", "action": action, "hosts": list(hosts)}
    return {**said, **more}


def http(method: str, url: str, data: bytes | None = None, timeout_s: float = 10.0) -> Reply:
    """One request, by the standard library's client."""
    request = urllib.request.Request(url, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return _reply(answer.status, answer.read(), answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return _reply(error.code, error.read(), error.headers)


def _reply(status: int, body: bytes, headers: Any) -> Reply:
    return Reply(status, json.loads(body) if body else None, {k.lower(): v for k, v in headers.items()})


class LastingStore(MemoryStore):
    """Outlives the processes that use it."""

    async def close(self) -> None:
        """Not yet."""


@dataclass
class Cloud:
    """All of it."""

    stack: AsyncExitStack
    store: Store = field(default_factory=LastingStore)
    crews: dict[str, Crew] = field(default_factory=dict)
    hqs: dict[str, HqServer] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    async def location(self, name: str) -> Crew:
        """Start an HQ with a crew."""
        config = ReplicaConfig(cluster=name, replica=f"hq-{name}", report_interval_s=REPORT_S, liveness_timeout_s=600)
        server = HqServer(config, MemoryStore(), SystemClock(), random.Random(1), ANYWHERE, ServingLimits(), 0.1)
        await self._run(server.serve())
        self.hqs[name] = server
        self.addresses[name] = (await server.listening).grpc
        crew = self.crews[name] = Crew(await self.stack.enter_async_context(Client([self.addresses[name]])))
        await asyncio.wait_for(server.replica.loading.loaded.wait(), 10)
        await self._run(crew.run())
        return crew

    async def cms(
        self,
        process: str = "cms-1",
        *,
        rules: Rules | None = None,
        limits: Sequence[DomainLimit] = (),
        sites: Mapping[str, Site] | None = None,
        sites_path: Path | None = None,
        issuers: Mapping[str, Sequence[str]] | None = None,
        healers: Mapping[str, Sequence[str]] | None = None,
        rollout_issuers: Mapping[str, Sequence[str]] | None = None,
        term_s: float = 10.0,
        store: Store | None = None,
        security: Security | None = None,
    ) -> Cms:
        """Start a process of the CMS."""
        clients = {name: Client([address]) for name, address in self.addresses.items()}
        book = TaskLedger.empty(rules or Rules(settle_s=0.5), self.addresses, Budgets())
        file = sites_file(sites_path) if sites_path else None
        book.limit(file.current if file else DomainLimits(limits, sites))
        shared = ServerContext(ServingLimits(), SystemClock(), RequestIds(process), security)
        config = ControlConfig("/cms/v1/", process, term_s)
        server = CmsServer(
            config,
            store or self.store,
            random.Random(process),
            shared,
            ANYWHERE,
            clients,
            book,
            CmsSettings(
                {name: [*map(IdentityPattern, who)] for name, who in (issuers or {}).items()},
                PATIENT_S,
                {name: [*map(IdentityPattern, who)] for name, who in (healers or {}).items()},
                {name: [*map(IdentityPattern, who)] for name, who in (rollout_issuers or {}).items()},
                PATIENT_S,
            ),
            0.1,
            file,
        )
        one = Cms(server, task=await self._run(server.serve()))
        one.port = int((await server.listening).http.rpartition(":")[2])
        await asyncio.wait_for(server.controller.loaded.wait(), 10)
        return one

    async def _run(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.create_task(work)

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self.stack.push_async_callback(end)
        return task


@asynccontextmanager
async def cloud() -> AsyncIterator[Cloud]:
    """Nothing at first."""
    async with AsyncExitStack() as stack:
        yield Cloud(stack)


@asynccontextmanager
async def service_of(count: int, service: str = "web", **settings: Any) -> AsyncIterator[tuple[Cloud, Cms]]:
    """One location with so many ready instances of a service, each on a host of its own: h0, h1, …"""
    async with cloud() as made:
        crew = await made.location("ams")
        for number in range(count):
            await crew.add(f"{service}-{number}", service, f"h{number}")
        await crew.report()
        cms = await made.cms(**settings)
        await known(cms, count)
        yield made, cms


async def known(cms: Cms, available: int) -> None:
    """Return when so many instances can be counted on, and the process acts."""

    def holds() -> bool:
        cms.server.locations.look()
        tallies = cms.server.desk.book.picture.tallies.values()
        return cms.server.controller.is_acting and sum(tally.available for tally in tallies) == available

    await eventually(holds, 20.0, f"{available} available instances")
