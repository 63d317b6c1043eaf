"""The files that a secured server is started with, and who is who in them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

from hq.config import ReplicaConfig
from hq.process.server import ReplicaServer
from hqapi.rules import DENIED_BY_STATE
from hqpb.v1 import service_pb2
from hqpb.v1.admin_stubs import AdminServiceStub
from hqpb.v1.service_stubs import InstanceServiceStub
from serving.auth.security import Security, security_of
from serving.clock import Clock, SystemClock
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from store.memory import MemoryStore
from tests.support.certificates import Authority, Certificate
from tests.support.token_issuer import AUDIENCE, ISSUER, Issuer, bearer

TRUST_DOMAIN = "hq.test"

POLICY = """
roles:
  reader:
    - identities: ["reader/*", "spiffe://hq.test/gateway"]
    - identities: [web-reader]
      services: [web]
  agent:
    - identities: ["agent/{node}", "spiffe://hq.test/agent/{node}"]
  uploader:
    - identities: [web-uploader]
      services: [web]
    - identities: [mail-uploader]
      services: [mail]
  scheduler:
    - identities: [scheduler]
  operator:
    - identities: [operator]
    - identities: [rack-operator]
      nodes: ["rack1-*"]
  admin:
    - identities: [admin]
"""


@dataclass(slots=True)
class Secured:
    """Files in a directory: CA, server's certificate, issuer's keys, policy, audit log."""

    directory: Path
    authority: Authority = field(init=False)
    server: Certificate = field(init=False)
    issuer: Issuer = field(init=False)
    policy: Path = field(init=False)
    audit: Path = field(init=False)

    def __post_init__(self) -> None:
        self.authority = Authority(self.directory / "tls")
        self.server = self.authority.issue("server")
        self.issuer = Issuer(self.directory / "issuer")
        self.policy = self.directory / "policy.yaml"
        self.policy.write_text(POLICY)
        self.audit = self.directory / "audit.jsonl"

    def given(self, **other: Any) -> dict[str, Any]:
        """The flags as click hands them over: TLS and tokens on both transports, no client certificates."""
        return {
            "tls_cert": str(self.server.cert),
            "tls_key": str(self.server.key),
            "client_ca": "",
            "grpc_mtls": "",
            "trust_domain": "",
            "jwks": str(self.issuer.jwks),
            "audience": AUDIENCE,
            "issuer": ISSUER,
            "clock_skew": 30.0,
            "max_token_ttl": 86_400.0,
            "policy": str(self.policy),
            "audit_log": str(self.audit),
            "insecure": False,
            **other,
        }

    def with_certificates(self, **other: Any) -> dict[str, Any]:
        """The same, and callers over gRPC may show certificates on an address of its own."""
        ca = str(self.authority.cert)
        return self.given(**{"client_ca": ca, "trust_domain": TRUST_DOMAIN, "grpc_mtls": "127.0.0.1:0", **other})

    def security(self, clock: Clock | None = None, cluster: str = "test", **other: Any) -> Security:
        """What a server makes of them."""
        made = security_of(self.given(**other), clock or SystemClock(), cluster, DENIED_BY_STATE)
        assert made is not None
        return made

    def flags(self, given: dict[str, Any]) -> list[str]:
        """The same for a command line. The audience is the server's own: each has another name."""
        left = {name: value for name, value in given.items() if value and name not in ("insecure", "audience")}
        words = {name: f"{value}s" if isinstance(value, float) else value for name, value in left.items()}
        return [part for k, v in words.items() for part in (f"--{k.replace('_', '-')}", str(v))]


@dataclass(slots=True)
class Served:
    """A replica in the test's own loop over memory, with both transports on free ports."""

    server: ReplicaServer
    security: Security | None
    addresses: Addresses


@asynccontextmanager
async def served(
    security: Security | None, clock: Clock | None = None, grpc_mtls: str = "", agents: str = "", **others: Any
) -> AsyncIterator[Served]:
    """A replica of cluster `test` that can serve reads. `others`: as Addresses takes them."""
    config = ReplicaConfig(cluster="test", replica="replica-1", compact_every_s=0)
    addresses = Addresses("127.0.0.1:0", "127.0.0.1:0", grpc_mtls, agents=agents, **others)
    store, rng = MemoryStore(), random.Random(1)
    server = ReplicaServer(config, store, clock or SystemClock(), rng, addresses, Limits(), 0.0, security)
    serving = asyncio.create_task(server.serve())
    loaded = asyncio.create_task(server.replica.loading.loaded.wait())
    try:
        async with asyncio.timeout(20):
            await asyncio.wait((serving, loaded), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            addresses = await server.listening
        yield Served(server, security, addresses)
    finally:
        server.stop()
        loaded.cancel()
        await asyncio.gather(serving, loaded, return_exceptions=True)


class Caller:
    """Calls a secured replica over gRPC with a token, a certificate, both or neither. Errors are AioRpcError."""

    def __init__(self, channel: grpc.aio.Channel, token: str = "") -> None:
        self._metadata = (bearer(token),) if token else ()
        self.instances, self.admin = InstanceServiceStub(channel), AdminServiceStub(channel)

    async def call(self, name: str, request: Message) -> Any:
        """Any unary call by its name."""
        stub = self.instances if hasattr(self.instances, name) else self.admin
        return await getattr(stub, name)(request, metadata=self._metadata, timeout=10)

    def watch(self, request: service_pb2.WatchInstancesRequest) -> Any:
        """The stream."""
        return self.instances.WatchInstances(request, metadata=self._metadata)

    async def refusal(self, name: str, request: Message) -> tuple[str, str]:
        """Status code and words of a call that must fail; ("OK", "") if it does not."""
        try:
            await self.call(name, request)
        except grpc.aio.AioRpcError as error:
            return error.code().name, error.details() or ""
        return "OK", ""


def secure_channel(address: str, authority: Authority, client: Certificate | None = None) -> grpc.aio.Channel:
    """A channel with TLS, which shows a certificate if there is one."""
    shown = (client.key.read_bytes(), client.cert.read_bytes()) if client else (None, None)
    credentials = grpc.ssl_channel_credentials(authority.cert.read_bytes(), *shown)
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))
    return grpc.aio.secure_channel(address, credentials, options=options)


async def last_words(stream: Any) -> tuple[str, str]:
    """How a stream ended: its status, and its message up to what to do next."""
    try:
        async with asyncio.timeout(30):
            while True:
                assert await stream.read() is not grpc.aio.EOF
    except grpc.aio.AioRpcError as error:
        return error.code().name, (error.details() or "").partition(": ")[0]
