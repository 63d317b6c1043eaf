"""A secured gateway in the test's own loop, over one replica, with a certificate of its own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from federated.clock import FederatedSystemClock
from federated.gateway import FederatedGateway
from federated.locations.channel import Dialer
from federated.locations.config import ConfigFile
from federated.locations.locations import Locations
from federated.server import FederatedServer
from hqapi.rules import DENIED_BY_STATE
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from serving.auth.security import security_of
from serving.calls.incoming import RequestIds
from serving.context import ServerContext
from serving.limiting.limits import Limits
from serving.listeners import Addresses
from tests.support.secured import Secured


@asynccontextmanager
async def federated(files: Secured, replica: str, last_good_bytes: int = 0, **given: Any) -> AsyncIterator[Addresses]:
    """Where it serves location `test`, a replica's address for certificates; `given` are flags of its security."""
    config = files.directory / "gateway.yaml"
    config.write_text(f"locations: {{test: {{replicas: ['{replica}']}}}}")
    own = files.authority.issue("gateway", ["spiffe://hq.test/gateway"])
    shown = Credentials(CredentialFiles(str(files.authority.cert), str(own.cert), str(own.key)))
    clock, rng = FederatedSystemClock(), random.Random(1)
    locations = Locations(ConfigFile(config), clock, rng, Dialer(shown), last_good_bytes)
    security = security_of(files.given(audit_log="", **given), clock, None, DENIED_BY_STATE, forwards=True)
    shared = ServerContext(Limits(), clock, RequestIds("gateway"), security)
    server = FederatedServer(
        FederatedGateway(locations, clock, rng, 3 << 20), shared, Addresses("127.0.0.1:0", "127.0.0.1:0"), 0.5
    )
    serving = asyncio.create_task(server.serve())
    try:
        addresses = await server.listening
        await locations.started.wait()
        yield addresses
    finally:
        server.stop()
        await serving
