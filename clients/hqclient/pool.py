"""The replicas a client can reach: their health, which one to ask next, and the task that probes those set aside."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hqclient.backoff import backoff_limit_s
from hqclient.clock import ClientClock
from hqclient.links import ChannelFactory, FindCause, ReplicaLink, Stubs, Version, never_renewed, unknown_cause


@dataclass(slots=True)
class PooledReplica:
    """A replica's address and what is known of its health.

    Attributes:
        failures: periods in a row in which it failed; 0: healthy, more: set aside.
        probe_at: while it is set aside, when to probe it next, on the client's clock.
        heard_at: when it answered last, or became known.
    """

    address: str
    failures: int = 0
    probe_at: float = 0.0
    heard_at: float = 0.0

    @property
    def is_set_aside(self) -> bool:
        return self.failures > 0


class Replicas:
    """The replicas of an installation, in an order of this client's own.

    One client stays with one replica as long as that is healthy: it then reads its own writes without
    waiting. The order is shuffled once, so many clients spread over the replicas and return to them after a
    failure.
    """

    def __init__(
        self,
        addresses: Iterable[str],
        clock: ClientClock,
        rng: random.Random,
        *,
        first_backoff_s: float = 0.5,
        max_backoff_s: float = 30.0,
    ) -> None:
        self._all = [PooledReplica(address, heard_at=clock.now()) for address in dict.fromkeys(addresses)]
        if not self._all:
            raise ValueError("give the address of at least one replica, e.g. 127.0.0.1:7071")
        rng.shuffle(self._all)
        self._clock = clock
        self._rng = rng
        self._first_backoff_s = first_backoff_s
        self._max_backoff_s = max_backoff_s

    def __repr__(self) -> str:
        return f"Replicas({self._all})"

    def __len__(self) -> int:
        return len(self._all)

    @property
    def all(self) -> tuple[PooledReplica, ...]:
        """Every replica, in order of preference."""
        return tuple(self._all)

    def pick(self, avoid: Collection[str] = ()) -> PooledReplica:
        """The best replica: a healthy one, else the one to be probed soonest; of `avoid` only if need be.

        Replicas that are set aside are a last resort, never refused: an answer late is better than none.
        """
        for replica in self._all:  # almost always the first
            if not replica.failures and replica.address not in avoid:
                return replica
        return min(self._all, key=lambda r: (r.address in avoid, r.is_set_aside, r.probe_at if r.failures else 0))

    def has_more_than(self, tried: Collection[str]) -> bool:
        """Whether a healthy replica is not among `tried`; if all are set aside, whether any replica is not."""
        worthwhile = [r for r in self._all if not r.is_set_aside] or self._all
        return any(replica.address not in tried for replica in worthwhile)

    def record_success(self, replica: PooledReplica) -> None:
        """It answered: it is healthy."""
        replica.failures = 0
        replica.probe_at = 0.0
        replica.heard_at = self._clock.now()

    def record_failure(self, replica: PooledReplica) -> None:
        """It did not answer: set it aside, for longer each time."""
        now = self._clock.now()
        # A hundred calls that fail together are one failure, not a hundred.
        if replica.is_set_aside and now < replica.probe_at:
            return
        replica.failures += 1
        backoff_s = backoff_limit_s(replica.failures, self._first_backoff_s, self._max_backoff_s)
        replica.probe_at = now + backoff_s * self._rng.uniform(0.5, 1.0)

    def away_s(self) -> float:
        """For how long nobody has answered; 0: somebody is healthy, as far as is known."""
        if not all(r.is_set_aside for r in self._all):
            return 0.0
        return self._clock.now() - max(r.heard_at for r in self._all)

    def due(self) -> list[PooledReplica]:
        """Replicas that were set aside and are due for another probe."""
        now = self._clock.now()
        return [r for r in self._all if r.is_set_aside and r.probe_at <= now]

    def next_probe_in_s(self) -> float | None:
        """Seconds until the next probe is due, 0 if one is; None: all are healthy."""
        times = [r.probe_at for r in self._all if r.is_set_aside]
        return max(0.0, min(times) - self._clock.now()) if times else None


class Pool:
    """Links to every replica. Close it when done."""

    def __init__(
        self,
        replicas: Replicas,
        factory: ChannelFactory,
        clock: ClientClock,
        *,
        connect_timeout_s: float,
        version: Version = never_renewed,
        find_cause: FindCause = unknown_cause,
    ) -> None:
        self.replicas = replicas
        self._clock = clock
        self._links = {
            r.address: ReplicaLink(
                r.address, factory, connect_timeout_s=connect_timeout_s, version=version, find_cause=find_cause
            )
            for r in replicas.all
        }
        self._prober: asyncio.Task[None] | None = None
        self._end = asyncio.Event()

    def __repr__(self) -> str:
        return f"Pool({list(self._links.values())})"

    def is_closed(self) -> bool:
        """Whether nothing more will be sent."""
        return self._end.is_set()

    async def pause(self, delay_s: float) -> None:
        """Return after `delay_s` seconds, or when the pool is closed."""
        waits = [asyncio.ensure_future(self._clock.sleep(delay_s)), asyncio.ensure_future(self._end.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def connected_stubs(self, replica: PooledReplica, timeout_s: float) -> Stubs:
        """Stubs of a replica that is connected at this moment.

        Raises:
            HqApiError: UNAVAILABLE, not sent.
            RuntimeError: the client was closed.
        """
        if self.is_closed():
            raise RuntimeError("this client is closed; make a new one")
        return await self._links[replica.address].connected_stubs(timeout_s)

    def pick(self, avoid: Collection[str] = ()) -> PooledReplica:
        """The best replica to ask now."""
        return self.replicas.pick(avoid)

    def record_success(self, replica: PooledReplica) -> None:
        """It answered."""
        self.replicas.record_success(replica)

    def record_failure(self, replica: PooledReplica) -> None:
        """It did not answer: ask others, and probe it from time to time."""
        self.replicas.record_failure(replica)
        if not self.is_closed() and (self._prober is None or self._prober.done()):
            self._prober = asyncio.create_task(self._probe_until_healthy(), name="probe set-aside replicas")

    async def close(self) -> None:
        """End every call and probe. May be called twice."""
        self._end.set()
        if self._prober is not None:
            self._prober.cancel()
            await asyncio.gather(self._prober, return_exceptions=True)
        await asyncio.gather(*(link.close() for link in self._links.values()))

    async def _probe_until_healthy(self) -> None:
        while (wait_s := self.replicas.next_probe_in_s()) is not None:
            await self._clock.sleep(wait_s)
            await asyncio.gather(*(self._probe(replica) for replica in self.replicas.due()))

    async def _probe(self, replica: PooledReplica) -> None:
        if await self._links[replica.address].is_serving():
            self.replicas.record_success(replica)
        else:
            self.replicas.record_failure(replica)
