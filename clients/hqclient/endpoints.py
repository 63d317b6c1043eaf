"""Which replica to ask. Decisions only, no I/O: who found out tells `succeeded` or `failed`."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hqclient.timing import Clock


@dataclass(slots=True)
class Endpoint:
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


class Endpoints:
    """The replicas of an installation, in an order of this client's own.

    One client stays with one replica as long as that is healthy: it then reads its own writes without
    waiting. The order is shuffled once, so many clients spread over the replicas and return to them after a
    failure.
    """

    def __init__(
        self,
        addresses: Iterable[str],
        clock: Clock,
        rng: random.Random,
        *,
        first_backoff_s: float = 0.5,
        max_backoff_s: float = 30.0,
    ) -> None:
        self._all = [Endpoint(address, heard_at=clock.now()) for address in dict.fromkeys(addresses)]
        if not self._all:
            raise ValueError("give the address of at least one replica, e.g. 127.0.0.1:7071")
        rng.shuffle(self._all)
        self._clock = clock
        self._rng = rng
        self._first_backoff_s = first_backoff_s
        self._max_backoff_s = max_backoff_s

    def __repr__(self) -> str:
        return f"Endpoints({self._all})"

    def __len__(self) -> int:
        return len(self._all)

    @property
    def all(self) -> tuple[Endpoint, ...]:
        """Every endpoint, in order of preference."""
        return tuple(self._all)

    def pick(self, avoid: Collection[str] = ()) -> Endpoint:
        """The best endpoint: a healthy one, else the one to be probed soonest; of `avoid` only if need be.

        Endpoints that are set aside are a last resort, never refused: an answer late is better than none.
        """
        return min(self._all, key=lambda e: (e.address in avoid, e.is_set_aside, e.probe_at if e.failures else 0))

    def has_more_than(self, tried: Collection[str]) -> bool:
        """A healthy endpoint is not among `tried`, or all are set aside and one of those is not."""
        worthwhile = [e for e in self._all if not e.is_set_aside] or self._all
        return any(endpoint.address not in tried for endpoint in worthwhile)

    def succeeded(self, endpoint: Endpoint) -> None:
        """It answered: it is healthy."""
        endpoint.failures = 0
        endpoint.probe_at = 0.0
        endpoint.heard_at = self._clock.now()

    def failed(self, endpoint: Endpoint) -> None:
        """It did not answer: set it aside, for longer each time."""
        now = self._clock.now()
        # A hundred calls that fail together are one failure, not a hundred.
        if endpoint.is_set_aside and now < endpoint.probe_at:
            return
        endpoint.failures += 1
        backoff_s = min(self._max_backoff_s, self._first_backoff_s * 2.0 ** min(endpoint.failures - 1, 30))
        endpoint.probe_at = now + backoff_s * self._rng.uniform(0.5, 1.0)

    def away_s(self) -> float:
        """For how long nobody has answered; 0: somebody is healthy, as far as is known."""
        if not all(e.is_set_aside for e in self._all):
            return 0.0
        return self._clock.now() - max(e.heard_at for e in self._all)

    def due(self) -> list[Endpoint]:
        """Those set aside whose time has come to be probed."""
        now = self._clock.now()
        return [e for e in self._all if e.is_set_aside and e.probe_at <= now]

    def next_probe_in_s(self) -> float | None:
        """Seconds until the next probe is due, 0 if one is; None: all are healthy."""
        times = [e.probe_at for e in self._all if e.is_set_aside]
        return max(0.0, min(times) - self._clock.now()) if times else None
