"""All kinds of faults: each is struck when its context is entered and healed when it is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.rig.cable_faults import CableFaults
from tests.rig.installation import Installation
from tests.rig.launcher import ALL_CALLS, HEARTBEATS, NOTHING, trouble
from tests.rig.network_faults import NetworkFaults
from tests.rig.process_faults import ProcessFaults
from tests.rig.schedule import Kind, Order

Fault = AbstractAsyncContextManager[None]
_PAUSES_S = (1.0, 60.0)
_DAY_MS = 86_400_000
_STALLED, _ASKED_AT_ONCE = 50, 20
_EVERYTHING = (
    b"POST /hq.v1.InstanceService/FindInstances HTTP/1.1\r\nhost: localhost\r\n"
    b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
)


class Faults:
    """Makes faults of orders. `seen` tells up to where the witness has written the history down."""

    def __init__(self, installation: Installation, seen: Callable[[], int]) -> None:
        self._hq, self._seen = installation, seen
        of_process, of_network = ProcessFaults(installation), NetworkFaults(installation)
        self.kinds: dict[Kind, Callable[[Order], Fault]] = {
            Kind("replica killed", 3): of_process.replica_killed,
            Kind("replica stopped in order", 2): of_process.replica_terminated,
            Kind("replica paused", 3, *_PAUSES_S): of_process.replica_paused,
            Kind("all replicas restarted in turn", 0.3, 0.3, 1.0): of_process.replicas_rolled,
            Kind("member killed", 2): of_process.member_killed,
            Kind("member paused", 2, *_PAUSES_S): of_process.member_paused,
            Kind("leader killed", 1): of_process.leader_killed,
            Kind("all members restarted in turn", 0.3, 0.5, 2.0): of_process.members_rolled,
            Kind("member cut off from its peers", 2, 0.5, 15.0): of_network.member_isolated,
            Kind("one way between members cut", 2, 0.5, 15.0): of_network.peers_one_way,
            Kind("one way between members half-open", 1, 0.5, 15.0): of_network.peers_stalled,
            Kind("members slow among themselves", 1): of_network.peers_slow,
            Kind("replica cut off from etcd", 2, 0.5, 15.0): of_network.store_cut,
            Kind("replica to member half-open", 2, 0.5, 15.0): of_network.store_half_open,
            Kind("requests to etcd held back", 1): of_network.store_requests_held,
            Kind("answers of etcd held back", 1): of_network.store_answers_held,
            Kind("etcd slow", 1): of_network.store_slow,
            Kind("connections to etcd reset", 2, 0.1, 0.2): of_network.store_reset,
            Kind("answer of etcd truncated", 2, 0.3, 1.0): of_network.store_truncated,
            Kind("replica cut off from clients", 1): of_network.clients_cut,
            Kind("clients half-open", 1): of_network.clients_half_open,
            Kind("clients slow", 1): of_network.clients_slow,
            Kind("connections of clients reset", 1, 0.1, 0.2): of_network.clients_reset,
            Kind("answer to a client truncated", 1, 0.3, 1.0): of_network.clients_truncated,
            Kind("etcd compacted", 2, 0.1, 0.2): self._compacted,
            Kind("member defragmented", 1, 0.1, 0.2): self._defragmented,
            Kind("wall clock jumps", 2, 1.0, 20.0): self._clock_jumps,
            Kind("replica refuses calls or heartbeats", 2, *_PAUSES_S): self._refusing,
            Kind("readers stall", 1, 1.0, 20.0): self._readers_stall,
            Kind("gateway killed", 1): of_process.gateway_killed,
            Kind("etcd full", 0.2, 1.0, 6.0, alone=True, at_least_once=True): self._etcd_full,
        }

        if installation.places.are_apart:
            of_cables = CableFaults(installation)
            self.kinds |= {
                Kind("replica's packets lost", 3, 0.5, 20.0): of_cables.replica_lost,
                Kind("replica's packets lost one way", 3, 0.5, 20.0): of_cables.replica_one_way,
                Kind("member's packets lost", 3, 0.5, 20.0): of_cables.member_lost,
                Kind("member's packets lost one way", 3, 0.5, 20.0): of_cables.member_one_way,
            }

    def of(self, order: Order) -> Fault:
        """The fault of an order, not struck yet."""
        return self.kinds[order.kind](order)

    @asynccontextmanager
    async def _compacted(self, order: Order) -> AsyncIterator[None]:
        await self._hq.cluster.compact(self._seen())
        yield

    @asynccontextmanager
    async def _defragmented(self, order: Order) -> AsyncIterator[None]:
        await self._hq.cluster.defragment(order.target)
        yield

    @asynccontextmanager
    async def _etcd_full(self, order: Order) -> AsyncIterator[None]:
        await self._hq.cluster.fill()
        try:
            yield
        finally:
            await self._hq.cluster.relieve(self._seen)

    @asynccontextmanager
    async def _clock_jumps(self, order: Order) -> AsyncIterator[None]:
        seat = self._hq.seats[order.target]
        trouble(seat.clock, offset_ms=round((order.amount - 0.5) * 400 * _DAY_MS))
        try:
            yield
        finally:
            trouble(seat.clock, offset_ms=0)

    @asynccontextmanager
    async def _refusing(self, order: Order) -> AsyncIterator[None]:
        seat = self._hq.seats[order.target]
        trouble(seat.clock, refused=ALL_CALLS if order.amount < 0.5 else HEARTBEATS)
        try:
            yield
        finally:
            trouble(seat.clock, refused=NOTHING)

    @asynccontextmanager
    async def _readers_stall(self, order: Order) -> AsyncIterator[None]:
        """Connections that ask for everything again and again, and read nothing."""
        host, _, port = self._hq.seats[order.target].gateway.endpoint.rpartition(":")
        writers = []
        try:
            for _ in range(_STALLED):
                _, writer = await asyncio.open_connection(host, int(port))
                writer.write(_EVERYTHING * _ASKED_AT_ONCE)
                writers.append(writer)
            yield
        finally:
            for writer in writers:
                writer.transport.abort()
