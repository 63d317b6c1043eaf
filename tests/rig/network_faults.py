"""Networks that break, hang, lose one direction, or are slow: between members, to the store, to the clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.rig.installation import Installation
from tests.rig.schedule import Order
from tests.support.faulty_proxy import Direction, Proxy

Fault = AbstractAsyncContextManager[None]


class NetworkFaults:
    """Faults of the proxies between any two processes."""

    def __init__(self, installation: Installation) -> None:
        self._hq = installation

    @asynccontextmanager
    async def member_isolated(self, order: Order) -> AsyncIterator[None]:
        others = [i for i in range(len(self._hq.cluster.members)) if i != order.target]
        for other in others:
            self._hq.cluster.peers.cut(order.target, other)
            self._hq.cluster.peers.cut(other, order.target)
        try:
            yield
        finally:
            for other in others:
                self._hq.cluster.peers.heal(order.target, other)
                self._hq.cluster.peers.heal(other, order.target)

    @asynccontextmanager
    async def peers_one_way(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.peers.cut(order.target, order.other)
        try:
            yield
        finally:
            self._hq.cluster.peers.heal(order.target, order.other)

    @asynccontextmanager
    async def peers_stalled(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.peers.stall(order.target, order.other)
        try:
            yield
        finally:
            self._hq.cluster.peers.heal(order.target, order.other)

    @asynccontextmanager
    async def peers_slow(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.peers.delay(order.target, order.other, 0.3 * order.amount)
        try:
            yield
        finally:
            self._hq.cluster.peers.heal(order.target, order.other)

    @asynccontextmanager
    async def store_cut(self, order: Order) -> AsyncIterator[None]:
        gates = self._hq.seats[order.target].store
        for gate in gates:
            gate.cut()
        try:
            yield
        finally:
            for gate in gates:
                gate.heal()

    def store_half_open(self, order: Order) -> Fault:
        gate = self._hq.seats[order.target].store[order.other]
        return _held(gate.requests, gate.answers)

    def store_requests_held(self, order: Order) -> Fault:
        return _held(*(gate.requests for gate in self._hq.seats[order.target].store))

    def store_answers_held(self, order: Order) -> Fault:
        return _held(*(gate.answers for gate in self._hq.seats[order.target].store))

    def store_slow(self, order: Order) -> Fault:
        return _slow(0.5 * order.amount, *self._hq.seats[order.target].store)

    @asynccontextmanager
    async def store_reset(self, order: Order) -> AsyncIterator[None]:
        for gate in self._hq.seats[order.target].store:
            gate.reset()
        yield

    @asynccontextmanager
    async def store_truncated(self, order: Order) -> AsyncIterator[None]:
        for gate in self._hq.seats[order.target].store:
            gate.truncate(round(20_000 * order.amount))
        yield

    @asynccontextmanager
    async def clients_cut(self, order: Order) -> AsyncIterator[None]:
        gate = self._hq.seats[order.target].gateway
        gate.cut()
        try:
            yield
        finally:
            gate.heal()

    def clients_half_open(self, order: Order) -> Fault:
        gate = self._hq.seats[order.target].gateway
        return _held(gate.requests, gate.answers) if order.amount < 0.5 else _held(gate.answers)

    def clients_slow(self, order: Order) -> Fault:
        return _slow(0.5 * order.amount, self._hq.seats[order.target].gateway)

    @asynccontextmanager
    async def clients_reset(self, order: Order) -> AsyncIterator[None]:
        self._hq.seats[order.target].gateway.reset()
        yield

    @asynccontextmanager
    async def clients_truncated(self, order: Order) -> AsyncIterator[None]:
        self._hq.seats[order.target].gateway.truncate(round(20_000 * order.amount))
        yield


@asynccontextmanager
async def _held(*directions: Direction) -> AsyncIterator[None]:
    for direction in directions:
        direction.stall()
    try:
        yield
    finally:
        for direction in directions:
            direction.heal()


@asynccontextmanager
async def _slow(seconds: float, *gates: Proxy) -> AsyncIterator[None]:
    for gate in gates:
        gate.delay(seconds)
    try:
        yield
    finally:
        for gate in gates:
            gate.heal()
