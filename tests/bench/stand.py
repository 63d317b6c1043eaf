"""The stand: etcd with a population, replicas of HQ over it, and the empty handlers, each a process of its own."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from store.embedded import EmbeddedEtcd, EtcdBinary, find_etcd
from tests.bench import raw
from tests.bench.filling import MAX_TXN_OPS, fill
from tests.bench.load import Target
from tests.bench.machine import ROOT
from tests.bench.population import Population
from tests.support.certificates import Certificate
from tests.support.replicas import ReplicaProcess

PREFIX = "/hq/v1/"
SERVICE = "/hq.v1.InstanceService"
_QUOTA_BYTES = 8 << 30


@dataclass
class Stand:
    """What runs. `filled_bytes`: of the values of all instances."""

    directory: Path
    population: Population
    etcd: EmbeddedEtcd
    filled_bytes: int
    _stack: AsyncExitStack
    replicas: list[ReplicaProcess] = field(default_factory=list)

    async def replica(
        self, *flags: str, until_ready: bool = True, ca: Path | None = None, enter: Sequence[str] = ()
    ) -> ReplicaProcess:
        """One more replica; returns when it serves reads, or when it listens. `enter`: words before its command."""
        log = self.directory / f"replica-{len(self.replicas)}.log"
        log.unlink(missing_ok=True)  # of a run before, over the same etcd
        process = ReplicaProcess([self.etcd.endpoint], PREFIX, log, flags, enter=enter)
        process.ca = ca
        self.replicas.append(process)
        self._stack.push_async_callback(process.kill)
        await process.start(until_ready=until_ready)
        return process

    def hq(self, method: str, *, http: bool = False, replica: int = 0) -> Target:
        """A method of a replica."""
        process = self.replicas[replica]
        return Target(process.http if http else process.grpc, f"{SERVICE}/{method}", (process.pid,))

    def raw(self, method: str) -> Target:
        """A method of etcd itself, e.g. `KV/Range`."""
        return Target(self.etcd.endpoint, f"/etcdserverpb.{method}", (self.etcd.process.pid,))

    async def empty(self, answers: Mapping[str, bytes], shown: Certificate | None = None) -> Empty:
        """Empty handlers with these answers by name; gRPC with TLS, if there is a certificate."""
        return await self._stack.enter_async_context(empty_handlers(answers, self.directory, shown))

    async def ask(self, method: str, request: bytes, replica: int = 0) -> bytes:
        """One call over gRPC; the answer as bytes. Raises AioRpcError."""
        return await raw.ask(self.replicas[replica].grpc, f"{SERVICE}/{method}", request)


@dataclass(frozen=True, slots=True)
class Empty:
    """Where the empty handlers are."""

    grpc: str
    http: str
    pid: int

    def target(self, name: str, *, http: bool = False) -> Target:
        return (
            Target(self.http, f"/{name}", (self.pid,)) if http else Target(self.grpc, f"/empty.E/{name}", (self.pid,))
        )


@asynccontextmanager
async def stand(
    directory: Path, size: int, flags: Sequence[str] = (), replicas: int = 1, binary: EtcdBinary | None = None
) -> AsyncIterator[Stand]:
    """A stand with so many instances and replicas; it ends with the block. What was filled before is used again."""
    directory.mkdir(parents=True, exist_ok=True)
    etcd = EmbeddedEtcd(
        directory / "etcd",
        binary=binary or find_etcd(),
        quota_bytes=_QUOTA_BYTES,
        extra_flags=(f"--max-txn-ops={MAX_TXN_OPS}", "--max-request-bytes=16777216"),
    )
    async with AsyncExitStack() as stack:
        await etcd.start()
        stack.push_async_callback(etcd.kill)
        population = Population(size)
        filled_bytes = await _filled(directory / "filled", etcd, population)
        made = Stand(directory, population, etcd, filled_bytes, stack)
        for _ in range(replicas):
            await made.replica(*flags)
        yield made


async def _filled(mark: Path, etcd: EmbeddedEtcd, population: Population) -> int:
    if not mark.exists():
        mark.write_text(str(await fill(etcd.endpoint, population, PREFIX)))
    return int(mark.read_text())


@asynccontextmanager
async def empty_handlers(
    answers: Mapping[str, bytes], scratch: Path, shown: Certificate | None = None
) -> AsyncIterator[Empty]:
    """A process of empty handlers."""
    directory = scratch / f"empty-{time.monotonic_ns()}"
    directory.mkdir()
    for name, body in answers.items():
        (directory / name).write_bytes(body)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.empty", str(directory)),
        *((str(shown.cert), str(shown.key)) if shown else ()),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        words = (await asyncio.wait_for(process.stdout.readline(), 30)).decode().split()
        yield Empty(words[2].rstrip(","), words[4], process.pid)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
