"""A real HQ for the judges that are everyday tools: plain text over memory, or TLS and tokens over an etcd."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from store.embedded import EmbeddedEtcd
from tests.fuzz.target import guarded_by, started
from tests.support.secured import Secured

SERVICE: Final = "hq.v1.InstanceService"
INSTANCES: Final = ("web-1", "web-2", "web-3")
_READY_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Replica:
    """Where it is, and as whom to call it; it has INSTANCES of the service `web`.

    Attributes:
        grpc, http: host:port; one and the same, or two names of the same.
        ca: file of the authority; None: plain text.
        token: of a reader; empty: nobody asks.
    """

    grpc: str
    http: str
    ca: Path | None = None
    token: str = ""

    @property
    def base(self) -> str:
        return f"{'https' if self.ca else 'http'}://{self.http}"

    @property
    def authorization(self) -> str:
        """The header's value; empty: none is needed."""
        return f"Bearer {self.token}" if self.token else ""


@asynccontextmanager
async def plain(directory: Path) -> AsyncIterator[Replica]:
    """`hq dev` over memory on free ports, until the end of the block."""
    async with started(directory, "--store", "memory") as target:
        replica = Replica(target.grpc, target.http)
        await _fill(replica, "")
        yield replica


@asynccontextmanager
async def secured(directory: Path) -> AsyncIterator[Replica]:
    """`hq serve` over an etcd of its own, with TLS and tokens, until the end of the block."""
    files, etcd = Secured(directory), EmbeddedEtcd(directory / "etcd")
    await etcd.start()
    try:
        flags = ("--etcd", etcd.endpoint, *files.flags(files.given()))
        async with guarded_by(directory, *flags) as target:
            token = files.issuer.token("reader/judge", good_for_s=3_600.0)
            replica = Replica(target.grpc, target.http, files.authority.cert, token)
            await _fill(replica, files.issuer.token("web-uploader"))
            yield replica
    finally:
        await etcd.stop()


async def _fill(replica: Replica, token: str) -> None:
    tls: Any = ssl.create_default_context(cafile=str(replica.ca)) if replica.ca else False
    headers = {"authorization": f"Bearer {token}"} if token else {}
    given: Any = {"verify": tls, "headers": headers, "base_url": replica.base, "timeout": _READY_S}
    async with httpx.AsyncClient(trust_env=False, **given) as client:
        async with asyncio.timeout(_READY_S):
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.1)
        for name in INSTANCES:
            answer = await client.post(f"/{SERVICE}/CreateInstance", json={"instance": _instance(name)})
            if answer.status_code != 200:
                raise RuntimeError(f"{name} cannot be created: {answer.status_code} {answer.text}")


def _instance(name: str) -> dict[str, Any]:
    return {
        "meta": {"id": name, "serviceId": "web", "labels": {"engine": "python"}},
        "spec": {
            "nodeName": "node-1",
            "allocation": {"cpuMillicores": "500", "port": [{"name": "http", "number": 8080}]},
            "revision": [{"id": "r1", "target": "REVISION_TARGET_READY"}],
        },
    }
