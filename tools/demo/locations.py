"""One installation of the demo: a real etcd and its replicas, to be broken and mended."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hqclient.client import Client
from store.embedded import EmbeddedEtcd
from tools.demo.children import Child
from tools.demo.setting import LIVENESS_TIMEOUT_S, REPLICAS, START_S

_LISTENING = r"listening: gRPC (\S+), HTTP (\S+)"


class Refused(Exception):
    """An order makes no sense as things stand; str() says why."""


class Replica:
    """One `hq serve`. Its address stays the same over restarts."""

    def __init__(self, location: str, number: int, directory: Path) -> None:
        self.name = f"{location}-{number}"
        self.grpc = self.http = "127.0.0.1:0"
        self._location = location
        self._log = directory / f"replica-{number}.log"
        self._child: Child | None = None
        self._serves = False

    @property
    def is_up(self) -> bool:
        """It runs and has said that it serves."""
        return self._serves and self.is_running

    @property
    def is_running(self) -> bool:
        return self._child is not None and self._child.is_running

    async def start(self, etcd: str) -> None:
        """Return when it answers. Raises ChildFailed."""
        await self.stop()  # it may have died by itself
        child = self._child = Child(f"replica {self.name}", "hq.main", self._arguments(etcd), self._log)
        self._serves = False
        await child.start()
        found = await child.says(_LISTENING)
        self.grpc, self.http = found[1], found[2]
        async with Client([self.grpc]) as client:
            await client.count(timeout_s=START_S)
        self._serves = True

    async def kill(self) -> None:
        """As a crash would."""
        if self._child is not None:
            await self._child.kill()

    async def stop(self) -> None:
        """In order."""
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
    """An etcd and a few replicas. What is ordered for it happens one after the other.

    Attributes:
        is_stopped: by order, and not started again.
    """

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self._etcd = EmbeddedEtcd(directory / "etcd")
        self._etcd_runs = False
        self.is_stopped = False
        self.replicas = [Replica(name, number + 1, directory) for number in range(REPLICAS)]
        self._lock = asyncio.Lock()

    @property
    def etcd(self) -> str:
        """Address of its etcd, once it was started."""
        return self._etcd.endpoint

    @property
    def addresses(self) -> list[str]:
        """gRPC of all replicas, once it was started."""
        return [replica.grpc for replica in self.replicas]

    @property
    def up(self) -> int:
        """How many replicas serve."""
        return sum(replica.is_up for replica in self.replicas)

    async def start(self) -> None:
        """Start etcd, then all replicas; return when they answer. Raises Refused, ChildFailed, EtcdFailed."""
        async with self._lock:
            if self._etcd_runs:
                raise Refused(f"{self.name} is not stopped")
            await self._etcd.start()
            self._etcd_runs, self.is_stopped = True, False
            await asyncio.gather(*(replica.start(self._etcd.endpoint) for replica in self.replicas))

    async def stop(self) -> None:
        """Stop everything; the data stay. Raises Refused."""
        if self.is_stopped:
            raise Refused(f"{self.name} is stopped already")
        self.is_stopped = True
        await self.end()

    async def end(self) -> None:
        """Stop whatever runs."""
        async with self._lock:
            await asyncio.gather(*(replica.stop() for replica in self.replicas))
            await self._etcd.stop()
            self._etcd_runs = False

    async def kill_replica(self, number: int | None = None) -> Replica:
        """SIGKILL that replica, or the first that runs. Raises Refused."""
        async with self._lock:
            chosen = self._choose(number, running=True)
            await chosen.kill()
            return chosen

    async def start_replica(self, number: int | None = None) -> Replica:
        """Bring that replica back, or the first that does not run. Raises Refused, ChildFailed."""
        async with self._lock:
            if self.is_stopped:
                raise Refused(f"{self.name} is stopped: start-location {self.name}")
            chosen = self._choose(number, running=False)
            await chosen.start(self._etcd.endpoint)
            return chosen

    def _choose(self, number: int | None, *, running: bool) -> Replica:
        if number is not None and not 0 < number <= len(self.replicas):
            raise Refused(f"{self.name} has replicas 1 to {len(self.replicas)}")
        listed = self.replicas if number is None else [self.replicas[number - 1]]
        fitting = [replica for replica in listed if replica.is_running is running]
        if not fitting:
            names = " and ".join(replica.name for replica in listed)
            raise Refused(
                f"nothing to kill: {names} down already" if running else f"nothing to start: {names} up already"
            )
        return fitting[0]
