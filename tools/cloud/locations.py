"""One installation of the cloud: a real etcd and its replicas."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hqclient.client import Client
from store.embedded import EmbeddedEtcd
from tools.cloud.children import Child
from tools.cloud.setting import LIVENESS_TIMEOUT_S, REPLICAS, START_S

_LISTENING = r"listening: gRPC (\S+), HTTP (\S+)"


class Replica:
    """One `hq serve`."""

    def __init__(self, location: str, number: int, directory: Path) -> None:
        self.name = f"{location}-{number}"
        self.grpc = self.http = "127.0.0.1:0"
        self._location = location
        self._log = directory / f"replica-{number}.log"
        self._child: Child | None = None

    async def start(self, etcd: str) -> None:
        """Return when it answers. Raises ChildFailed."""
        child = self._child = Child(f"replica {self.name}", "hq.main", self._arguments(etcd), self._log)
        await child.start()
        found = await child.says(_LISTENING)
        self.grpc, self.http = found[1], found[2]
        async with Client([self.grpc]) as client:
            await client.count(timeout_s=START_S)

    async def stop(self) -> None:
        """Stop its processes in order."""
        if self._child is not None:
            await self._child.stop()

    def _arguments(self, etcd: str) -> list[str]:
        return [
            "serve",
            f"--etcd={etcd}",
            f"--cluster={self._location}",
            f"--grpc={self.grpc}",
            f"--http={self.http}",
            f"--liveness-timeout={LIVENESS_TIMEOUT_S:g}s",
            "--compact-every=5s",  # from the first mark on, watches go on after a restart without a new snapshot
            "--grace=1s",
        ]


class Location:
    """An etcd and a few replicas."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self._etcd = EmbeddedEtcd(directory / "etcd")
        self.replicas = [Replica(name, number + 1, directory) for number in range(REPLICAS)]

    @property
    def etcd(self) -> str:
        """Address of its etcd, once it was started."""
        return self._etcd.endpoint

    @property
    def addresses(self) -> list[str]:
        """gRPC of all replicas, once it was started."""
        return [replica.grpc for replica in self.replicas]

    async def start(self) -> None:
        """Start etcd, then all replicas; return when they answer. Raises ChildFailed, EtcdFailed."""
        await self._etcd.start()
        await asyncio.gather(*(replica.start(self._etcd.endpoint) for replica in self.replicas))

    async def end(self) -> None:
        """Stop whatever runs."""
        await asyncio.gather(*(replica.stop() for replica in self.replicas))
        await self._etcd.stop()
