"""The faults: each is struck when its context is entered and healed when it is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from tests.rig.installation import Installation, Seat
from tests.rig.launcher import set_offset
from tests.rig.schedule import Kind, Order
from tests.support.proxy import Direction, Proxy

Fault = AbstractAsyncContextManager[None]
_PAUSES_S = (1.0, 60.0)
_DAY_MS = 86_400_000


class Faults:
    """Makes faults of orders. `seen` tells up to where the witness has written the history down."""

    def __init__(self, installation: Installation, seen: Callable[[], int]) -> None:
        self._hq, self._seen = installation, seen
        self.kinds: dict[Kind, Callable[[Order], Fault]] = {
            Kind("replica killed", 3): self._replica_killed,
            Kind("replica stopped in order", 2): self._replica_terminated,
            Kind("replica paused", 3, *_PAUSES_S): self._replica_paused,
            Kind("all replicas restarted in turn", 0.3, 0.3, 1.0): self._replicas_rolled,
            Kind("member killed", 2): self._member_killed,
            Kind("member paused", 2, *_PAUSES_S): self._member_paused,
            Kind("leader killed", 1): self._leader_killed,
            Kind("all members restarted in turn", 0.3, 0.5, 2.0): self._members_rolled,
            Kind("member cut off from its peers", 2, 0.5, 15.0): self._member_isolated,
            Kind("one way between members cut", 2, 0.5, 15.0): self._peers_one_way,
            Kind("one way between members half-open", 1, 0.5, 15.0): self._peers_stalled,
            Kind("members slow among themselves", 1): self._peers_slow,
            Kind("replica cut off from etcd", 2, 0.5, 15.0): self._store_cut,
            Kind("replica to member half-open", 2, 0.5, 15.0): self._store_half_open,
            Kind("requests to etcd held back", 1): self._store_requests_held,
            Kind("answers of etcd held back", 1): self._store_answers_held,
            Kind("etcd slow", 1): self._store_slow,
            Kind("connections to etcd reset", 2, 0.1, 0.2): self._store_reset,
            Kind("answer of etcd truncated", 2, 0.3, 1.0): self._store_truncated,
            Kind("replica cut off from clients", 1): self._clients_cut,
            Kind("clients half-open", 1): self._clients_half_open,
            Kind("clients slow", 1): self._clients_slow,
            Kind("connections of clients reset", 1, 0.1, 0.2): self._clients_reset,
            Kind("answer to a client truncated", 1, 0.3, 1.0): self._clients_truncated,
            Kind("etcd compacted", 2, 0.1, 0.2): self._compacted,
            Kind("member defragmented", 1, 0.1, 0.2): self._defragmented,
            Kind("wall clock jumps", 2, 1.0, 20.0): self._clock_jumps,
            Kind("front killed", 1): self._front_killed,
            Kind("etcd full", 0.2, 1.0, 6.0, alone=True, at_least_once=True): self._etcd_full,
        }

    def of(self, order: Order) -> Fault:
        """The fault of an order, not struck yet."""
        return self.kinds[order.kind](order)

    # --- processes --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _replica_killed(self, order: Order) -> AsyncIterator[None]:
        seat = self._hq.seats[order.target]
        await seat.kill()
        try:
            yield
        finally:
            await seat.start(until_ready=False)

    @asynccontextmanager
    async def _replica_terminated(self, order: Order) -> AsyncIterator[None]:
        seat = self._hq.seats[order.target]
        await seat.terminate()
        try:
            yield
        finally:
            await seat.start(until_ready=False)

    @asynccontextmanager
    async def _replica_paused(self, order: Order) -> AsyncIterator[None]:
        replica = self._hq.seats[order.target].replica
        assert replica is not None
        replica.pause()
        try:
            yield
        finally:
            replica.resume()

    @asynccontextmanager
    async def _replicas_rolled(self, order: Order) -> AsyncIterator[None]:
        for seat in self._hq.seats:
            await seat.terminate()
            await seat.start(until_ready=False)
            await asyncio.sleep(order.lasts_s)
        yield

    @asynccontextmanager
    async def _front_killed(self, order: Order) -> AsyncIterator[None]:
        await self._hq.kill_front()
        try:
            yield
        finally:
            await self._hq.start_front()

    @asynccontextmanager
    async def _member_killed(self, order: Order) -> AsyncIterator[None]:
        await self._hq.cluster.kill(order.target)
        try:
            yield
        finally:
            await self._hq.cluster.restart(order.target, until_it_serves=False)

    @asynccontextmanager
    async def _leader_killed(self, order: Order) -> AsyncIterator[None]:
        async with asyncio.timeout(5.0):
            leader = await self._hq.cluster.leader()
        await self._hq.cluster.kill(leader)
        try:
            yield
        finally:
            await self._hq.cluster.restart(leader, until_it_serves=False)

    @asynccontextmanager
    async def _member_paused(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.pause(order.target)
        try:
            yield
        finally:
            self._hq.cluster.resume(order.target)

    @asynccontextmanager
    async def _members_rolled(self, order: Order) -> AsyncIterator[None]:
        for index in range(len(self._hq.cluster.members)):
            await self._hq.cluster.stop(index)
            await self._hq.cluster.restart(index, until_it_serves=False)
            await asyncio.sleep(order.lasts_s)
        yield

    # --- the network ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _member_isolated(self, order: Order) -> AsyncIterator[None]:
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
    async def _peers_one_way(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.peers.cut(order.target, order.other)
        try:
            yield
        finally:
            self._hq.cluster.peers.heal(order.target, order.other)

    @asynccontextmanager
    async def _peers_stalled(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.peers.stall(order.target, order.other)
        try:
            yield
        finally:
            self._hq.cluster.peers.heal(order.target, order.other)

    @asynccontextmanager
    async def _peers_slow(self, order: Order) -> AsyncIterator[None]:
        self._hq.cluster.peers.delay(order.target, order.other, 0.3 * order.amount)
        try:
            yield
        finally:
            self._hq.cluster.peers.heal(order.target, order.other)

    @asynccontextmanager
    async def _store_cut(self, order: Order) -> AsyncIterator[None]:
        gates = self._hq.seats[order.target].store
        for gate in gates:
            gate.cut()
        try:
            yield
        finally:
            for gate in gates:
                gate.heal()

    def _store_half_open(self, order: Order) -> Fault:
        gate = self._hq.seats[order.target].store[order.other]
        return _held(gate.requests, gate.answers)

    def _store_requests_held(self, order: Order) -> Fault:
        return _held(*(gate.requests for gate in self._hq.seats[order.target].store))

    def _store_answers_held(self, order: Order) -> Fault:
        return _held(*(gate.answers for gate in self._hq.seats[order.target].store))

    def _store_slow(self, order: Order) -> Fault:
        return _slow(0.5 * order.amount, *self._hq.seats[order.target].store)

    @asynccontextmanager
    async def _store_reset(self, order: Order) -> AsyncIterator[None]:
        for gate in self._hq.seats[order.target].store:
            gate.reset()
        yield

    @asynccontextmanager
    async def _store_truncated(self, order: Order) -> AsyncIterator[None]:
        for gate in self._hq.seats[order.target].store:
            gate.truncate(round(20_000 * order.amount))
        yield

    @asynccontextmanager
    async def _clients_cut(self, order: Order) -> AsyncIterator[None]:
        gate = self._hq.seats[order.target].front
        gate.cut()
        try:
            yield
        finally:
            gate.heal()

    def _clients_half_open(self, order: Order) -> Fault:
        gate = self._hq.seats[order.target].front
        return _held(gate.requests, gate.answers) if order.amount < 0.5 else _held(gate.answers)

    def _clients_slow(self, order: Order) -> Fault:
        return _slow(0.5 * order.amount, self._hq.seats[order.target].front)

    @asynccontextmanager
    async def _clients_reset(self, order: Order) -> AsyncIterator[None]:
        self._hq.seats[order.target].front.reset()
        yield

    @asynccontextmanager
    async def _clients_truncated(self, order: Order) -> AsyncIterator[None]:
        self._hq.seats[order.target].front.truncate(round(20_000 * order.amount))
        yield

    # --- the store and time -----------------------------------------------------------------------------------------

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
        seat: Seat = self._hq.seats[order.target]
        set_offset(seat.clock, round((order.amount - 0.5) * 400 * _DAY_MS))
        try:
            yield
        finally:
            set_offset(seat.clock, 0)


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


class Nemesis:
    """Strikes the faults of a schedule, at most a few at a time, and counts them.

    Attributes:
        struck, failed: how many of each kind; a fault that could not be struck (nobody to compact, say) has failed.
    """

    def __init__(self, faults: Faults, say: Callable[[str], None], at_once: int = 3) -> None:
        self._faults, self._say, self._at_once = faults, say, at_once
        self._active: set[asyncio.Task[None]] = set()
        self._targets: set[tuple[str, int]] = set()
        self._fatal: BaseException | None = None  # no fault may do that: a replica died of itself, say
        self.struck: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    async def run(self, orders: list[Order]) -> None:
        """Strike one after the other, each at its time or, if too many are under way, later."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            for order in orders:
                await asyncio.sleep(began + order.at_s - loop.time())
                while len(self._active) >= (1 if order.kind.alone else self._at_once):
                    await asyncio.wait(self._active, return_when=asyncio.FIRST_COMPLETED)
                task = asyncio.create_task(self._strike(order))
                self._active.add(task)
                task.add_done_callback(self._done)
                if self._fatal is not None:
                    raise self._fatal
                if order.kind.alone:
                    await asyncio.wait((task,))
            await self.quiet()
            if self._fatal is not None:
                raise self._fatal
        finally:
            for task in self._active:
                task.cancel()
            await asyncio.gather(*self._active, return_exceptions=True)

    async def quiet(self) -> None:
        """Return when no fault is under way."""
        if self._active:
            await asyncio.wait(self._active)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._active.discard(task)
        if not task.cancelled():
            self._fatal = self._fatal or task.exception()

    async def _strike(self, order: Order) -> None:
        order = self._free(order)
        what, taken = order.kind.name, self._subjects(order)
        if taken & self._targets:
            self.failed[what] = self.failed.get(what, 0) + 1
            return
        self._targets |= taken
        try:
            async with self._faults.of(order):
                self.struck[what] = self.struck.get(what, 0) + 1
                self._say(str(order))
                await asyncio.sleep(order.lasts_s)
        except (OSError, TimeoutError) as error:
            self.failed[what] = self.failed.get(what, 0) + 1
            self._say(f"{order}: {error!r}")
        finally:
            self._targets -= taken

    def _free(self, order: Order) -> Order:
        """The order, at another target if its own is taken."""
        for step in range(3):
            moved = order._replace(target=(order.target + step) % 3, other=(order.other + step) % 3)
            if not self._subjects(moved) & self._targets:
                return moved
        return order

    @staticmethod
    def _subjects(order: Order) -> set[tuple[str, int]]:
        name = order.kind.name
        if name.startswith("all replicas"):
            return {("replica", number) for number in range(3)}
        if name.startswith(("all members", "leader")):
            return {("member", number) for number in range(3)}
        kind = "replica" if name.startswith("replica") else "member" if name.startswith("member") else name
        return {(kind, order.target)}
