"""Three members, three replicas, a gateway, and a proxy between any two: all of them real processes on this machine."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from store.embedded import EtcdBinary
from tests.federated.federated_process import FederatedProcess, write_config
from tests.rig.cluster import GatedCluster
from tests.rig.launcher import trouble
from tests.rig.places import Place, Places, on_the_loopback
from tests.rig.trust import PLAIN, Trust
from tests.support.faulty_proxy import Proxy
from tests.support.replicas import ReplicaProcess

PREFIX, CLUSTER = "/hq/v1/", "rig"
MEMBERS = REPLICAS = 3
_FOLLOWED = re.compile(r"^hq_federated_followed_answers_total (\S+)$", re.MULTILINE)


class Seat:
    """A place for a replica, with gates that stay: in front of it, and between it and each member.

    Attributes:
        gateway: clients reach the replica through it.
        store: the ways to the members, by number.
        replica: that sits here now; it may be dead.
    """

    def __init__(
        self,
        number: int,
        directory: Path,
        cluster: GatedCluster,
        flags: Sequence[str],
        place: Place,
        gates: str,
        ca: Path | None,
    ) -> None:
        self._number, self._directory, self._cluster, self._flags = number, directory, cluster, list(flags)
        self.place, self._gates, self._ca = place, gates, ca
        self._started = 0
        self.clock = directory / f"clock-{number}"
        self.gateway = Proxy("127.0.0.1:1", gates)
        self.store: list[Proxy] = []
        self.replica: ReplicaProcess | None = None
        self.is_up = False

    async def open(self, stack: AsyncExitStack) -> None:
        """Open the gates."""
        trouble(self.clock)
        await stack.enter_async_context(self.gateway)
        for endpoint in self._cluster.doors:
            self.store.append(await stack.enter_async_context(Proxy(endpoint, self._gates)))

    async def start(self, *, until_ready: bool = True) -> None:
        """A new replica; without `until_ready` it may still be reading the store, or waiting for one."""
        self._started += 1
        log = self._directory / f"replica-{self._number}-{self._started}.log"
        log.touch()
        state = self._directory / f"state-{self._number}"
        flags = [f"--replica=replica-{self._number}-{self._started}", f"--cluster={CLUSTER}", *self._flags]
        flags += [f"--state-dir={state}"]
        if self.place.cable is not None:
            flags += [f"--grpc={self.place.host}:0", f"--http={self.place.host}:0", "--insecure"]
        launch = ("-m", "tests.rig.launcher", str(self.clock))
        store = [gate.endpoint for gate in self.store]
        self.replica = ReplicaProcess(store, PREFIX, log, flags, launch, enter=self.place.enter)
        self.replica.ca = self._ca
        await self.replica.start(until_ready=until_ready)
        self.gateway.aim(self.replica.grpc)
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
        cluster: the members. seats: the replicas. gateway, gateway_gate: the gateway and what is before it.
        followed_answers: lists that gateways gave from memory until they were killed.
    """

    def __init__(
        self,
        directory: Path,
        binary: EtcdBinary,
        quota_bytes: int,
        flags: Sequence[str],
        places: Places | None = None,
        gateway_flags: Sequence[str] = (),
        trust: Trust = PLAIN,
    ) -> None:
        self._gateway_flags, self.trust = [*gateway_flags, *trust.gateway_flags()], trust
        self.directory, self.places = directory, places or on_the_loopback(MEMBERS)
        directory.mkdir(parents=True, exist_ok=True)
        self.cluster = GatedCluster(binary, directory / "etcd", MEMBERS, quota_bytes, self.places, trust)
        gates, all_flags = self.places.gates, [*flags, *trust.replica_flags()]
        self.seats = [
            Seat(number, directory, self.cluster, all_flags, place, gates, trust.ca)
            for number, place in enumerate(self.places.replicas)
        ]
        self.gateway_gate = Proxy("127.0.0.1:1")
        self.gateway: FederatedProcess | None = None
        self._gateways = self.followed_answers = 0
        self._stack = AsyncExitStack()

    async def start(self) -> None:
        """Return when all replicas serve. The members were started before (`cluster.start`)."""
        for seat in self.seats:
            await seat.open(self._stack)
        await asyncio.gather(*(seat.start() for seat in self.seats))
        await self._stack.enter_async_context(self.gateway_gate)
        write_config(self.directory / "gateway.yaml", {CLUSTER: self.addresses})
        await self.start_gateway()

    @property
    def addresses(self) -> list[str]:
        """Where clients reach the replicas."""
        return [seat.gateway.endpoint for seat in self.seats]

    async def start_gateway(self) -> None:
        self._gateways += 1
        log = self.directory / f"gateway-{self._gateways}.log"
        log.touch()
        self.gateway = self.new_gateway(log)
        await self.gateway.start(until_ready=False)
        self.gateway_gate.aim(self.gateway.grpc)

    def new_gateway(self, log: Path) -> FederatedProcess:
        """One more gateway, not started."""
        flags = [*self._gateway_flags, *(["--insecure"] if self.places.are_apart else [])]
        gateway = FederatedProcess(
            self.directory / "gateway.yaml", log, flags, launch=("-m", "tests.rig.gateway_launcher")
        )
        gateway.ca = self.trust.ca
        return gateway

    async def kill_gateway(self) -> None:
        if self.gateway is not None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(2.0):
                    found = _FOLLOWED.search((await self.gateway.get("/metrics"))[1])
                    self.followed_answers += int(float(found[1])) if found else 0
            await self.gateway.kill()

    async def close(self) -> None:
        """End every process that was started here, and every gate."""
        for seat in self.seats:
            await seat.kill()
        await self.kill_gateway()
        await self.cluster.close()
        await self._stack.aclose()
