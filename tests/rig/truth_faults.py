"""Faults that memory has to prove itself against: a deletion that etcd may leave out, and starts without end."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TypeVar

from hqclient.client import Client
from hqclient.errors import HqApiError
from hqpb.v1 import instance_pb2 as model
from store.embedded import EtcdBinary
from store.etcd_versions import is_sound
from tests.rig.agents import RigAgent
from tests.rig.installation import Installation, Seat
from tests.rig.network_faults import Fault, NetworkFaults
from tests.rig.recording import Log, now_ns
from tests.rig.schedule import Kind, Order
from tests.rig.uploaders import Names, Uploader

T = TypeVar("T")

STRANGER = Kind("replica away while a stranger compacts at the head", 2, 0.5, 8.0)
RESTARTS = Kind(
    *("all replicas restarted faster than the timeout", 0.1, 0.3, 1.0),
    alone=True,
    at_least_once=True,
    records_itself=True,
)
_BETWEEN_RESTARTS_S = 20.0  # two thirds of the timeout
_DYING, _PATIENCE_S, _CALL_S = 2, 100.0, 6.0


class TruthFaults:
    """Over instances of their own, which nobody else writes: those of others are created again soon."""

    def __init__(self, installation: Installation, log: Log, seen: Callable[[], int], binary: EtcdBinary) -> None:
        self._hq, self._log, self._seen, self._binary = installation, log, seen, binary
        self._rng, self._number = random.Random(1), 900
        self._network = NetworkFaults(installation)
        self.kinds: dict[Kind, Callable[[Order], Fault]] = {
            STRANGER: self.compacted_by_a_stranger,
            RESTARTS: self.restarted_for_ever,
        }

    @asynccontextmanager
    async def compacted_by_a_stranger(self, order: Order) -> AsyncIterator[None]:
        """An instance is deleted, and the store compacted there, while a replica that has it hears nothing."""
        away = self._hq.seats[order.target]
        others = [seat for number, seat in enumerate(self._hq.seats) if number != order.target]
        async with self._client(others) as anywhere, self._client([away]) as there:
            ghost = self._new_id()
            uploader = self._uploader(anywhere)
            await _insist(lambda: uploader.create(ghost))
            await _insist(lambda: there.get(ghost))
            # Watches that are behind lose the deletion where etcd has that fault: until it is mended, it shows.
            is_slow = order.amount < 0.5 and is_sound(self._binary.version)
            fault = self._network.store_answers_held if is_slow else self._network.store_cut
            async with fault(order):
                version = await _insist(lambda: uploader.delete(ghost))
                async with asyncio.timeout(30.0):
                    while self._seen() < version:
                        await asyncio.sleep(0.05)
                await self._hq.cluster.compact(version)
                yield

    @asynccontextmanager
    async def restarted_for_ever(self, order: Order) -> AsyncIterator[None]:
        """Agents die, and no replica lives for as long as a revision may be silent; then all live again."""
        async with self._client(self._hq.seats) as client:
            dying = [self._new_id() for _ in range(_DYING)]
            for instance_id in dying:
                await self._live_once(client, instance_id)
            for _ in range(3 + round(2 * order.amount)):
                began_ns = now_ns()
                await asyncio.gather(*(seat.terminate() for seat in self._hq.seats))
                await asyncio.gather(*(seat.start() for seat in self._hq.seats))
                self._log.fault("all replicas restarted", began_ns)
                await asyncio.sleep(_BETWEEN_RESTARTS_S)
            with suppress(TimeoutError):  # the checker says so
                async with asyncio.timeout(_PATIENCE_S):
                    while await _ready(client, dying):
                        await asyncio.sleep(1.0)
            yield

    async def _live_once(self, client: Client, instance_id: str) -> None:
        await _insist(lambda: self._uploader(client).create(instance_id))
        node = Names(0).node(instance_id)
        agent = RigAgent(f"dying-{instance_id}", client, self._log, instance_id, node, self._rng, 1.0)
        await _insist(agent.report)

    def _new_id(self) -> str:
        self._number += 1
        return f"i-{self._number}"

    def _uploader(self, client: Client) -> Uploader:
        return Uploader("truth", client, self._log, Names(0), self._rng)

    @asynccontextmanager
    async def _client(self, seats: Sequence[Seat]) -> AsyncIterator[Client]:
        addresses = [seat.gateway.endpoint for seat in seats]
        credentials = self._hq.trust.credentials
        async with AsyncExitStack() as stack:
            yield await stack.enter_async_context(Client(addresses, timeout_s=_CALL_S, credentials=credentials))


async def _ready(client: Client, ids: Sequence[str]) -> bool:
    """Whether one of them is ready, or nobody says."""
    with suppress(HqApiError):
        found = [(await client.get(instance_id)).instance for instance_id in ids]
        return any(one.status.ready.status == model.CONDITION_STATUS_TRUE for one in found)
    return True


async def _insist(do: Callable[[], Awaitable[T]]) -> T:
    """Call until it succeeds. Raises TimeoutError: the fault could not be struck."""
    async with asyncio.timeout(30.0):
        while True:
            try:
                return await do()
            except HqApiError:
                await asyncio.sleep(0.3)
