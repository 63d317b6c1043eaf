"""Three installations over real etcds, two replicas each, and gateways over them: real processes, real sockets."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from store.embedded import EmbeddedEtcd, EtcdBinary
from tests.federated.federated_process import FederatedProcess, write_config
from tests.support import etcd_backup
from tests.support.faulty_proxy import Proxy
from tests.support.replicas import ReplicaProcess
from tests.support.reserved_port import kept_ports

NAMES = ("east", "north", "west")


class World:
    """Installations by name, two replicas each, every one behind a gate.

    Attributes:
        replicas, gates: by location, in the same order.
        gateways: all that were started.
    """

    def __init__(self, directory: Path, binary: EtcdBinary) -> None:
        self._directory, self._stack = directory, AsyncExitStack()
        self._etcds: dict[str, EmbeddedEtcd] = {}
        for name in ("east", "others"):
            ports = kept_ports()
            self._etcds[name] = EmbeddedEtcd(directory / f"etcd-{name}", binary=binary, ports=lambda ports=ports: ports)  # type: ignore[misc]
        self.replicas: dict[str, list[ReplicaProcess]] = {name: [] for name in NAMES}
        self.gates: dict[str, list[Proxy]] = {name: [] for name in NAMES}
        self.gateways: list[FederatedProcess] = []

    def _etcd(self, name: str) -> EmbeddedEtcd:
        return self._etcds["east" if name == "east" else "others"]

    async def start(self) -> None:
        """Start everything but gateways. East has an etcd of its own, the others share one."""
        await asyncio.gather(*(etcd.start() for etcd in self._etcds.values()))
        await asyncio.gather(*(self._start_behind_gate(name) for name in NAMES for _ in range(2)))

    async def gateway(self, timeout: str = "5s") -> FederatedProcess:
        """One more gateway, which waits so long for a location."""
        config = self._directory / f"gateway-{timeout}.yaml"
        write_config(config, {name: [gate.endpoint for gate in gates] for name, gates in self.gates.items()}, timeout)
        gateway = FederatedProcess(config, self._directory / f"gateway-{len(self.gateways)}.log")
        self.gateways.append(gateway)
        await gateway.start()
        return gateway

    async def restart(self, name: str, index: int, *, kill: bool) -> None:
        """End a replica and put a new one in its place."""
        old = self.replicas[name][index]
        await (old.kill() if kill else old.terminate())
        self.replicas[name][index] = await self._start_replica(name)
        self.gates[name][index].aim(self.replicas[name][index].grpc)

    def delay(self, name: str, seconds: float) -> None:
        """Make a location answer so late, half of it each way; 0: heal."""
        for gate in self.gates[name]:
            gate.delay(seconds / 2) if seconds else gate.heal()

    async def back_up(self, name: str) -> Path:
        """A snapshot of a location's etcd."""
        snapshot = self._directory / f"snapshot-{name}"
        await asyncio.to_thread(etcd_backup.save, self._etcd(name), snapshot)
        return snapshot

    async def restore(self, name: str, snapshot: Path) -> None:
        """Put a backup in the place of a location's etcd, under its replicas."""
        etcd = self._etcd(name)
        for replica in self.replicas[name]:
            replica.pause()
        await etcd.stop()
        await asyncio.to_thread(etcd_backup.restore, etcd, snapshot)
        await etcd.start()
        for replica in self.replicas[name]:
            replica.resume()

    async def end(self) -> None:
        """Leave nothing running."""
        for process in (*self.gateways, *(r for listed in self.replicas.values() for r in listed)):
            await process.kill()
        await self._stack.aclose()
        for etcd in self._etcds.values():
            await etcd.kill()

    async def _start_behind_gate(self, name: str) -> None:
        replica = await self._start_replica(name)
        self.replicas[name].append(replica)
        gate = Proxy(replica.grpc)
        await self._stack.enter_async_context(gate)
        self.gates[name].append(gate)

    async def _start_replica(self, name: str) -> ReplicaProcess:
        log = self._directory / f"{name}-{len(list(self._directory.glob(f'{name}-*.log')))}.log"
        log.touch()
        replica = ReplicaProcess([self._etcd(name).endpoint], f"/{name}/", log, ["--cluster", name])
        try:
            await replica.start()
        except BaseException:
            await replica.kill()
            raise
        return replica
