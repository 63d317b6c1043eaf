"""Host agents and clients that lost their replica, and come back: the back-off of HQ's own clients, event by event."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hq.sizing.capacity import Workload
from hq.sizing.costs import MeasuredCosts
from hq.sizing.simulator import EventQueue, ServingLine

FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.1, 10.0
CONNECT_S = 3.0  # a replica must say its first word within this
BACKLOG = 512  # connections that the system holds for a replica until it takes them
_PLAYED = 4_000
_NOWHERE = -1
_RESEND_S = 1.0  # of a SYN that was dropped


@dataclass(frozen=True, slots=True)
class ReturnCost:
    """Work of a replica for one client that comes back, in seconds.

    `reports_s`: for the reports that the client sends when it has its snapshot; `patience_s`: the client leaves if it
    has to wait longer for its connection, which costs the replica `abandoned_s` all the same.
    """

    open_s: float
    reports_s: float
    abandoned_s: float
    patience_s: float


def return_cost(costs: MeasuredCosts, workload: Workload, *, reports: bool = False) -> ReturnCost:
    """Return the cost of a host agent that comes back, with or without reports that it could not send before."""
    handshake_s = costs.handshake_s if workload.secured else 0.0
    return ReturnCost(
        open_s=costs.return_s + handshake_s,
        reports_s=workload.per_node * costs.heartbeat_s if reports else 0.0,
        abandoned_s=handshake_s or 0.1 * costs.return_s,
        patience_s=CONNECT_S,
    )


class ReconnectingClients:
    """Clients with one stream each, to any of the replicas that can be reached.

    Not more than some thousands are played; each stands for `weight` clients.

    Attributes: `back_s`: when each was back; `attempts`: streams that were opened for that.
    """

    def __init__(self, queue: EventQueue, count: int, cost: ReturnCost, rng: random.Random) -> None:
        self.weight = max(1, -(-count // _PLAYED))
        self.count = round(count / self.weight)
        self.back_s: list[float] = []
        self.attempts = 0
        self._queue, self._cost, self._rng = queue, cost, rng
        self._serving: Sequence[ServingLine | None] = ()

    def serve_from(self, time_s: float, replicas: Sequence[ServingLine], refusing: int = 0) -> None:
        """Let only these replicas serve from that moment on; `refusing` others, which clients know too, refuse them."""

        def switch() -> None:
            self._serving = [*replicas, *[None] * refusing]

        self._queue.at(time_s, switch)

    def cut(self, failures: int = 0) -> None:
        """Cut all streams now; each client has failed `failures` times in a row before."""
        for _ in range(self.count):
            self._wait(failures)

    def _wait(self, failures: int, last: int = _NOWHERE) -> None:
        limit_s = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(failures, 30))
        self._queue.after(limit_s * self._rng.uniform(0.5, 1.0), partial(self._connect, failures, last))

    def _connect(self, failures: int, last: int) -> None:
        """Try any replica but the last one."""
        others = [number for number in range(len(self._serving)) if number != last] or range(len(self._serving))
        if not others:
            self._wait(failures + 1)
            return
        number = self._rng.choice(others)
        if (replica := self._serving[number]) is None:
            self._wait(failures + 1, number)
            return
        self.attempts += 1
        self._knock(replica, partial(self._wait, failures + 1, number), self._cost.patience_s)

    def _knock(self, replica: ServingLine, give_up: Callable[[], None], patience_s: float) -> None:
        """Join the clients that wait at a replica; a SYN beyond the backlog is dropped and sent again in a second."""
        if patience_s <= 0:
            give_up()
        elif replica.waiting * self.weight >= BACKLOG:
            self._queue.after(_RESEND_S, partial(self._knock, replica, give_up, patience_s - _RESEND_S))
        elif replica.wait_s() > patience_s:
            replica.add(self._cost.abandoned_s * self.weight)
            self._queue.after(patience_s, give_up)
        else:
            self._queue.at(replica.add(self._cost.open_s * self.weight), partial(self._arrive, replica))

    def _arrive(self, replica: ServingLine) -> None:
        self.back_s.append(self._queue.now)
        if self._cost.reports_s:
            replica.add(self._cost.reports_s * self.weight)
