"""Every server in this event loop, over real sockets with TLS and one policy."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from cmspb.v1 import record_pb2
from control import ControlConfig
from hqapi.rules import DENIED_BY_STATE
from hqclient import Client
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqpb.v1 import instance_pb2
from nanny.server import NannyProcess as NannyServer
from nanny.world.leave import NoCms
from recorder.archive import Archive
from recorder.decided import DecisionRow, ReadersOf
from recorder.decision_tables import LedgerChunk
from recorder.observed import CREATED, Row
from recorder.server import RecorderProcess
from serving.auth.call_guard import CallGuard
from serving.auth.security import Security, security_of
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from serving.rights.patterns import Patterns
from serving.rights.reach import Reach
from serving.rights.rules import Rule
from store.memory import MemoryStore
from tests.cms.cloud import Cloud, cloud
from tests.support.authority.callers import POLICY
from tests.support.sample_instances import eventually
from tests.support.secured import Secured, served
from tests.support.secured_gateway import federated
from tests.support.walle.running import pretending, running
from walle.work.book import Notice
from wallepb.v1.project_pb2 import SEVERITY_ERROR, FuseEntry, FusesStart

ANYWHERE = Addresses("127.0.0.1:0", "127.0.0.1:0")


Rules = dict[str, tuple[Rule, Reach | None]]


@dataclass
class Guarded:
    """One server: where it answers over HTTPS, and everything in it that has a rule, by path."""

    name: str
    http: str
    rules: Rules


@contextmanager
def noted() -> Iterator[Rules]:
    """What the servers that are made meanwhile let in by a rule, by path."""
    rules: Rules = {}
    original = ServerContext.guard

    def guard(self: ServerContext, path: str, rule: Rule, reach: Reach | None) -> CallGuard:
        rules.setdefault(path, (rule, reach))  # the agents' listener has some of them once more
        return original(self, path, rule, reach)

    with patch.object(ServerContext, "guard", guard):
        yield rules


class Servers:
    """Starts them one after the other; they end with the stack."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.files, self._stack, self._folder = Secured(folder), stack, folder
        self.files.policy.write_text(POLICY)
        self.all: dict[str, Guarded] = {}

    def tls(self) -> ssl.SSLContext:
        """For clients."""
        made = Credentials(CredentialFiles(str(self.files.authority.cert), "", "")).tls()
        assert made is not None
        return made()

    def security(self, cluster: str | None = None) -> Security:
        made = security_of(self.files.given(audit_log=""), SystemClock(), cluster, DENIED_BY_STATE)
        assert made is not None
        return made

    async def hq(self) -> None:
        with noted() as rules:
            made = self.files.security(**self.files.with_certificates(audit_log=""))
            one = await self._stack.enter_async_context(served(made, grpc_mtls="127.0.0.1:0"))
        self.add("hq", one.addresses.http, rules)
        with noted() as rules:
            addresses = await self._stack.enter_async_context(federated(self.files, one.addresses.grpc_mtls))
        self.add("federated", addresses.http, rules)

    async def cms(self, made: Cloud) -> None:
        crew = await made.location("ams")
        for name, service, node in (("web-1", "web", "n1"), ("mail-1", "mail", "n2")):
            await crew.add(name, service, node)
        with noted() as rules:
            issuers = {"wall-e": ["healer"], "nanny": ["uploader-here"]}
            cms = await made.cms(security=self.security(), issuers=issuers)
        self.add("cms", f"127.0.0.1:{cms.port}", rules)
        await eventually(lambda: cms.server.controller.is_acting, 20.0, "the CMS acts")

    async def nanny(self, made: Cloud) -> None:
        shared = ServerContext(Limits(), SystemClock(), RequestIds("nanny"), self.security())
        clients = {name: Client([address]) for name, address in made.addresses.items()}
        with noted() as rules:
            config = ControlConfig("/nanny/v1/", "nanny-1", 1.0)
            server = NannyServer(
                config, MemoryStore(), random.Random(1), shared, ANYWHERE, clients, NoCms(), grace_s=0.1
            )
        task = asyncio.create_task(server.serve())
        self._stack.push_async_callback(_ended, task)
        self.add("nanny", (await server.listening).http, rules)
        await eventually(lambda: server.controller.is_acting, 20.0, "Nanny acts")

    async def walle(self) -> None:
        with noted() as rules:
            file = pretending(agent_checks=Patterns(["ssh"]))
            one = await self._stack.enter_async_context(running(file=file, security=self.security()))
        self.add("walle", one.address, rules)
        one.server.automaton.outbox.send([Notice(SEVERITY_ERROR, "web", "test", "n1")])

    async def recorder(self) -> None:
        shared = ServerContext(Limits(), SystemClock(), RequestIds("recorder"), self.security())
        archive = Archive(self._folder / "record", 1, 1 << 30)
        now_ms = shared.clock.wall_ms()
        rows = [_recorded(now_ms, *one) for one in (("web-1", "web", "n1"), ("mail-1", "mail", "n2"))]
        made = [_decided(now_ms, *one) for one in (("web", "n1", "uploader-here"), ("mail", "n2", "bob"))]
        start = record_pb2.LedgerEntry(start=record_pb2.LedgerStart(location=["ams"]))
        chunks = [LedgerChunk.of(now_ms, [start]), LedgerChunk.of_fuses(now_ms, [FuseEntry(start=FusesStart())])]
        archive.write(now_ms, rows, (), ("ams",), {}, made, chunks)
        with noted() as rules:
            server = RecorderProcess(archive, {}, shared, ANYWHERE, grace_s=0.1)
        task = asyncio.create_task(server.serve())
        self._stack.push_async_callback(_ended, task)
        self.add("recorder", (await server.listening).http, rules)

    def add(self, name: str, http: str, rules: Rules) -> None:
        kept = {path: known for path, known in rules.items() if not known[0].is_open}
        self.all[name] = Guarded(name, http, kept)


def _recorded(at_ms: int, id_: str, service: str, node: str) -> Row:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id, made.meta.cluster, made.spec.node_name = id_, service, "ams", node
    return Row(at_ms, CREATED, "ams", id_, service, node, 1, False, "", "", made.SerializeToString())


def _decided(at_ms: int, service: str, node: str, owner: str) -> DecisionRow:
    readers = ReadersOf(owners=(owner,), instances=((service, node, "ams"),))
    return DecisionRow(at_ms, "cms", f"task-{service}", "granted", owner, "", (), (service,), (node,), readers)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def every_server(folder: Path) -> AsyncIterator[Servers]:
    """All of them, empty."""
    async with AsyncExitStack() as stack:
        servers = Servers(folder, stack)
        made = await stack.enter_async_context(cloud())
        await servers.hq()
        await servers.cms(made)
        await servers.nanny(made)
        await servers.walle()
        await servers.recorder()
        yield servers
