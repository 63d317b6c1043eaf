"""Three members, three replicas, a front, and a proxy between any two: all of them real processes on the loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from hq.embedded import EtcdBinary
from tests.federated.fronts import FrontProcess, write_config
from tests.rig.cluster import GatedCluster
from tests.rig.launcher import set_offset
from tests.support.proxy import Proxy
from tests.support.replicas import ReplicaProcess

PREFIX, CLUSTER = "/hq/v1/", "rig"
MEMBERS = REPLICAS = 3


class Seat:
    """A place for a replica, with gates that stay: in front of it, and between it and each member.

    Attributes:
        front: clients reach the replica through it.
        store: the ways to the members, by number.
        replica: that sits here now; it may be dead.
    """

    def __init__(self, number: int, directory: Path, cluster: GatedCluster, flags: Sequence[str]) -> None:
        self._number, self._directory, self._cluster, self._flags = number, directory, cluster, list(flags)
        self._started = 0
        self.clock = directory / f"clock-{number}"
        self.front = Proxy("127.0.0.1:1")
        self.store: list[Proxy] = []
        self.replica: ReplicaProcess | None = None
        self.is_up = False

    async def open(self, stack: AsyncExitStack) -> None:
        """Open the gates."""
        set_offset(self.clock, 0)
        await stack.enter_async_context(self.front)
        for endpoint in self._cluster.endpoints:
            self.store.append(await stack.enter_async_context(Proxy(endpoint)))

    async def start(self, *, until_ready: bool = True) -> None:
        """A new replica; without `until_ready` it may still be reading the store, or waiting for one."""
        self._started += 1
        log = self._directory / f"replica-{self._number}-{self._started}.log"
        log.touch()
        flags = [f"--replica=replica-{self._number}-{self._started}", f"--cluster={CLUSTER}", *self._flags]
        launch = ("-m", "tests.rig.launcher", str(self.clock))
        self.replica = ReplicaProcess([gate.endpoint for gate in self.store], PREFIX, log, flags, launch)
        await self.replica.start(until_ready=until_ready)
        self.front.aim(self.replica.grpc)
        self.is_up = True

    async def kill(self) -> None:
        self.is_up = False
        if self.replica is not None:
            await self.replica.kill()

    async def terminate(self) -> None:
        """SIGTERM, and SIGKILL if that takes too long."""
        self.is_up = False
        if self.replica is None:
            return
        try:
            await self.replica.terminate(15.0)
        except TimeoutError:
            await self.replica.kill()


class Installation:
    """Everything that is under test. `start`, and `close` whatever happened.

    Attributes:
        cluster: the members. seats: the replicas. front, front_gate: the front and what is before it.
    """

    def __init__(self, directory: Path, binary: EtcdBinary, quota_bytes: int, flags: Sequence[str]) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.cluster = GatedCluster(binary, directory / "etcd", MEMBERS, quota_bytes)
        self.seats = [Seat(number, directory, self.cluster, flags) for number in range(REPLICAS)]
        self.front_gate = Proxy("127.0.0.1:1")
        self.front: FrontProcess | None = None
        self._fronts = 0
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Return when all replicas serve."""
        await self.cluster.start()
        for seat in self.seats:
            await seat.open(self._stack)
        await asyncio.gather(*(seat.start() for seat in self.seats))
        await self._stack.enter_async_context(self.front_gate)
        write_config(self.directory / "front.yaml", {CLUSTER: self.addresses})
        await self.start_front()

    @property
    def addresses(self) -> list[str]:
        """Where clients reach the replicas."""
        return [seat.front.endpoint for seat in self.seats]

    async def start_front(self) -> None:
        self._fronts += 1
        log = self.directory / f"front-{self._fronts}.log"
        log.touch()
        self.front = FrontProcess(self.directory / "front.yaml", log)
        await self.front.start(until_ready=False)
        self.front_gate.aim(self.front.grpc)

    async def kill_front(self) -> None:
        if self.front is not None:
            await self.front.kill()

    async def close(self) -> None:
        """End every process that was started here, and every gate."""
        for seat in self.seats:
            await seat.kill()
        await self.kill_front()
        await self.cluster.close()
        await self._stack.aclose()


class WitnessProcess:
    """tests/rig/witness.py in a process of its own.

    Attributes:
        seen: the revision up to which it has written everything.
    """

    def __init__(self, out: Path, life: int, endpoints: Sequence[str], seen: int = 0) -> None:
        self.out, self._life, self._endpoints, self.seen = out, life, list(endpoints), seen
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Return when it watches."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.rig.witness", str(self.out), PREFIX, str(self._life), str(self.seen)),
            *self._endpoints,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        await self._take(await self._process.stdout.readline())
        self._reading = asyncio.create_task(self._read())

    async def end(self, timeout_s: float = 60.0) -> int:
        """Let it see everything there is, and leave; its exit code."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"end\n")
        async with asyncio.timeout(timeout_s):
            return await self._process.wait()

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            await self._take(line)

    async def _take(self, line: bytes) -> None:
        word, _, number = line.decode().partition(" ")
        if word == "at":
            self.seen = int(number)
