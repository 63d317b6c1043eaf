"""One request, sent to the replicas of a location until one of them answers."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from federated.clock import FederatedClock
from federated.locations.channel import Metadata, ReplicaChannel
from federated.locations.plan import HedgeBudget, Latencies
from hqclient.errors import HqApiError
from hqclient.pool import PooledReplica, Replicas
from hqclient.retry import REPEATED, Safety, blames_endpoint, elsewhere_may_help, may_repeat
from serving.transport.client import ClientCall

_LOOK_AGAIN_S: Final = 0.05
_SICK_AFTER_S: Final = 0.2  # or twice the time after which a second replica is asked


@dataclass(slots=True)
class RaceStats:
    """Counters of requests.

    Attributes:
        calls: sent to a first replica.
        hedges: of those, sent to a second one because the first took longer than usual.
        hedges_won: of those, answered by the second one.
        failovers: sent to another replica because one failed.
    """

    calls: int = 0
    hedges: int = 0
    hedges_won: int = 0
    failovers: int = 0


@dataclass(slots=True)
class Race:
    """Reads of one location: which replica, a second one when the first is slow, another when one fails."""

    replicas: Replicas
    channels: Mapping[str, ReplicaChannel]
    clock: FederatedClock
    budget: HedgeBudget = field(default_factory=HedgeBudget)
    stats: RaceStats = field(default_factory=RaceStats)
    latencies: defaultdict[str, Latencies] = field(default_factory=lambda: defaultdict(Latencies))

    async def run(self, method: str, request: bytes, timeout_s: float, metadata: Metadata) -> bytes:
        """The first answer.

        Raises:
            HqApiError: of the last replica that was asked; at the latest when the time is up.
        """
        self.stats.calls += 1
        self.budget.record_call()
        question = _HedgedRead(self, method, request, self.clock.now() + timeout_s, metadata)
        return await question.answer(self.latencies[method].hedge_after_s())

    async def write(self, method: str, request: bytes, safety: Safety, timeout_s: float, metadata: Metadata) -> bytes:
        """The answer to a write, which is sent to another replica only if the previous one surely stored nothing.

        Raises:
            HqApiError: of the last replica that was asked.
        """
        deadline = self.clock.now() + timeout_s
        tried: set[str] = set()
        unknown = False
        while True:
            replica = self.replicas.pick(tried)
            tried.add(replica.address)
            try:
                return await self.ask(replica, method, request, deadline, metadata)
            except HqApiError as error:
                is_last = not self.replicas.has_more_than(tried) or self.clock.now() >= deadline
                if is_last or not may_repeat(error, safety) or not elsewhere_may_help(error):
                    error.earlier_try_unknown = unknown
                    raise
                if error.outcome_unknown and not unknown:
                    unknown, metadata = True, (*metadata, REPEATED)
                self.stats.failovers += 1

    async def ask(
        self, replica: PooledReplica, method: str, request: bytes, deadline: float, metadata: Metadata = ()
    ) -> bytes:
        """Ask this one replica, and remember how it did. Raises HqApiError."""
        began = self.clock.now()
        call = self.begin(replica, method, request, deadline, metadata)
        try:
            return await self.answer(replica, method, call, began)
        finally:
            call.leave()

    def begin(
        self, replica: PooledReplica, method: str, request: bytes, deadline: float, metadata: Metadata
    ) -> ClientCall:
        """Send a request to this replica. Call `leave` on the result once it is of no more use."""
        left_s = max(0.001, deadline - self.clock.now())
        return self.channels[replica.address].begin(method, request, left_s, metadata)

    async def answer(self, replica: PooledReplica, method: str, call: ClientCall, began: float) -> bytes:
        """Wait for the answer of a call from `begin`, and remember how the replica did. Raises HqApiError."""
        try:
            answer = await self.channels[replica.address].answer(call)
        except HqApiError as error:
            if blames_endpoint(error, self.clock.now() - began):
                self.replicas.record_failure(replica)
            raise
        # A replica that was set aside comes back only by a probe: this answer may have been slow.
        self.latencies[method].record_latency(self.clock.now() - began)
        return answer


class _Running(NamedTuple):
    replica: PooledReplica
    call: ClientCall
    began: float


class _HedgedRead:
    """One read in progress. Its calls share one future: a task for each would cost more than the call."""

    __slots__ = ("_deadline", "_metadata", "_method", "_race", "_request", "_running", "_tried")

    def __init__(self, race: Race, method: str, request: bytes, deadline: float, metadata: Metadata) -> None:
        self._race, self._method, self._request, self._deadline = race, method, request, deadline
        self._metadata = metadata
        self._running: list[_Running] = []
        self._tried: set[str] = set()

    async def answer(self, hedge_after_s: float) -> bytes:
        first, began = self._launch(), self._race.clock.now()
        patience_s, sick_after_s = hedge_after_s, max(_SICK_AFTER_S, 2 * hedge_after_s)
        try:
            while True:
                ended = await self._wait_for_end(patience_s)
                if not ended:
                    is_sick = self._race.clock.now() - began >= sick_after_s
                    self._hedge(first, may_hedge=patience_s == hedge_after_s, is_sick=is_sick)
                    patience_s = _LOOK_AGAIN_S
                errors: list[HqApiError] = []
                for one in ended:
                    self._running.remove(one)
                    try:
                        answer = await self._race.answer(one.replica, self._method, one.call, one.began)
                    except HqApiError as failure:
                        errors.append(failure)
                    else:
                        self._note_winner(one.replica, first)
                        return answer
                for error in errors:
                    self._on_error(error)
        finally:
            for one in self._running:
                one.call.leave()

    async def _wait_for_end(self, patience_s: float) -> list[_Running]:
        """Wait until a call has ended. Returns those that have; an empty list after `patience_s` seconds."""
        loop = asyncio.get_running_loop()
        left_s, until = patience_s, loop.time() + patience_s
        while not (ended := [one for one in self._running if one.call.is_over]) and left_s > 0:
            waiter = loop.create_future()
            for one in self._running:
                one.call.waiter = waiter
            timer = loop.call_later(left_s, _wake, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
            left_s = until - loop.time()
        return ended

    def _launch(self) -> PooledReplica:
        race, replica = self._race, self._race.replicas.pick(self._tried)
        self._tried.add(replica.address)
        call = race.begin(replica, self._method, self._request, self._deadline, self._metadata)
        self._running.append(_Running(replica, call, race.clock.now()))
        return replica

    def _hedge(self, first: PooledReplica, *, may_hedge: bool, is_sick: bool) -> None:
        """Ask a second replica, if there is a healthy one, and the budget allows or the first one is sick."""
        race = self._race
        if len(self._tried) > 1 or not any(not r.is_set_aside and r is not first for r in race.replicas.all):
            return
        if may_hedge and race.budget.spend():
            race.stats.hedges += 1
            self._launch()
        elif is_sick or first.is_set_aside:  # the latter because of other calls in the meantime
            # Not a hedge but a fail-over: from now on no call starts at this replica, so it happens once.
            race.replicas.record_failure(first)
            race.stats.failovers += 1
            self._launch()

    def _note_winner(self, replica: PooledReplica, first: PooledReplica) -> None:
        if any(one.replica is first for one in self._running):
            self._race.stats.hedges_won += 1
            # The first replica is slow and another is not: the next calls need not find that out again.
            self._race.replicas.record_failure(first)

    def _on_error(self, error: HqApiError) -> None:
        """Ask the next replica, wait for the other request in progress, or give up."""
        if not may_repeat(error, Safety.REPEATABLE):
            raise error
        race = self._race
        in_time = race.clock.now() < self._deadline
        if in_time and elsewhere_may_help(error) and race.replicas.has_more_than(self._tried):
            race.stats.failovers += 1
            self._launch()
        elif not self._running:
            raise error


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
