"""The sweep: marks revisions not ready whose agents are silent, and never those that HQ itself failed to hear.

No lock: every replica sweeps, and an expiry is correct whoever writes it (expiries.py).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from hq.liveness.deadlines import RevisionKey
from hq.liveness.expiries import Expiries, ExpiryOutcome
from hq.liveness.guard import Census, ExpiryGuard, ExpiryPace, GuardCommand, GuardVerdict
from hq.liveness.heartbeats import Heartbeats
from hq.liveness.orders import Orders
from hq.liveness.reachability import Reachability
from hq.liveness.replay import AGENT
from hq.liveness.tracker import Tracker
from hq.memory.cache import Cache
from serving.clock import Clock
from serving.errors import ServiceError
from store.commit import MAX_WRITES
from store.fence import Fence

log = logging.getLogger(__name__)

_TRIES = 20
_MOST = 5 * MAX_WRITES  # expiries after one knock, which may take as long as the interval between heartbeat batches
_SPENT_PATIENCE_S = 0.5  # expiries are to go ahead, and a batch that hangs would take seconds
_OVERTAKEN = 2  # tries per pass that heartbeats may spoil; then expiries take two steps, which heartbeats cannot spoil


@dataclass(frozen=True, slots=True)
class SweepTimes:
    """Seconds. `spread_s`: replicas start each sweep at random within it, so that they do not all write at once."""

    idle_s: float = 1.0
    spread_s: float = 0.5


class Sweep:
    """The loop. Attribute: `waiting`, how many expiries the guard holds back."""

    def __init__(
        self,
        cache: Cache,
        tracker: Tracker,
        guard: ExpiryGuard,
        orders: Orders,
        reachability: Reachability,
        heartbeats: Heartbeats,
        fence: Fence,
        expiries: Expiries,
        clock: Clock,
        rng: random.Random,
        times: SweepTimes | None = None,
    ) -> None:
        self._cache, self._tracker, self._guard, self._orders = cache, tracker, guard, orders
        self._reachability, self._heartbeats, self._fence, self._expiries = reachability, heartbeats, fence, expiries
        self._clock, self._rng = clock, rng
        self._times = times or SweepTimes()
        self._pace = ExpiryPace()
        self._verdict, self._ordered = GuardVerdict(False, False, None, None, "no sweep yet"), GuardCommand.NONE
        self.waiting = 0

    @property
    def verdict(self) -> GuardVerdict:
        """Return the guard's verdict of the last sweep or, if an order came or ended since, the next one."""
        order = self._orders.order()
        if order is self._ordered:
            return self._verdict
        return self._guard.verdict(self._census(), order, limited=self._reachability.door.is_spent)

    async def run(self) -> None:
        """Sweep for ever."""
        while True:
            await asyncio.sleep(self._times.idle_s + self._rng.uniform(0, self._times.spread_s))
            try:
                await self.once()
            except (ServiceError, TimeoutError) as error:
                log.info("a sweep was postponed: %s", error)

    async def once(self) -> int:
        """One pass; return how many revisions it expired. Raises ServiceError when the store does not answer."""
        expired, tries, overtaken, done = 0, _TRIES, 0, set[RevisionKey]()
        if self._heartbeats.failing:
            self._reachability.look(self._clock.now())
            await self._knock()
        while tries and self._due(done):
            await self._knock()
            # Look again: whatever was acknowledged anywhere before the fence (a report, an order) is in memory now.
            in_two_steps = overtaken >= _OVERTAKEN
            outcomes = await self._expiries.write(self._due(done), self._verdict.words, in_two_steps=in_two_steps)
            # What could not be expired must not stand in the way of others.
            again = (ExpiryOutcome.OVERTAKEN, ExpiryOutcome.VOIDED)
            done |= {key for key, outcome in outcomes.items() if outcome not in again}
            overtaken += ExpiryOutcome.OVERTAKEN in outcomes.values()
            new = sum(outcome is ExpiryOutcome.EXPIRED for outcome in outcomes.values())
            expired, tries = expired + new, _TRIES if new else tries - 1
        if not tries:
            log.info(
                "reports and orders kept changing during %d attempts to expire: retrying at the next sweep", _TRIES
            )
        return expired

    async def _knock(self) -> None:
        """Put a fence on the path of heartbeats: while the path is closed, nobody's silence means anything.

        Raises ServiceError. A path that has been closed for longer than may excuse silence is no longer waited for.
        """
        is_spent = self._reachability.door.is_spent
        try:
            async with asyncio.timeout(_SPENT_PATIENCE_S if is_spent else None):
                await self._heartbeats.knock()
        except (ServiceError, TimeoutError):
            if not is_spent:
                raise
            await self._fence.wait_for_fence()

    def _due(self, done: set[RevisionKey]) -> list[RevisionKey]:
        """The next revisions to expire, longest silence first: none if HQ was away, or the guard holds."""
        now = self._clock.now()
        if not self._reachability.look(now):
            return []
        nodes = [suspended.node for suspended in self._orders.suspensions()]
        self._tracker.suspend(nodes, self._cache.on_node)
        allowed = self._judge(now)
        if self._verdict.hold:
            return self._held_too_long(now, done, allowed)
        due = list(islice((key for key in self._tracker.deadlines.expired_keys(now) if key not in done), allowed))
        silent = self._tracker.agents.expired_keys(now)
        agents = chain(self._without_ready(silent, set(due)), self._unbegun(now))
        return due + list(islice((key for key in agents if key not in done), allowed))

    def _held_too_long(self, now: float, done: set[RevisionKey], allowed: int) -> list[RevisionKey]:
        """Return the revisions that the guard has held for as long as it may. An operator's order has no such end."""
        if self._verdict.until is None:
            return []
        hold_s, tracker = self._guard.rules.hold_s, self._tracker
        due = list(islice((key for key in tracker.deadlines.held_too_long(now, hold_s) if key not in done), allowed))
        agents = self._without_ready(tracker.agents.held_too_long(now, hold_s), set(due))
        return due + list(islice((key for key in agents if key not in done), allowed))

    def _without_ready(self, silent: Iterable[str], due: set[RevisionKey]) -> Iterator[RevisionKey]:
        """The agents of instances none of whose revisions is ready, or will be after these expiries."""
        for instance_id in silent:
            entry = self._cache.get(instance_id)
            marks = entry.marks if entry is not None else ()
            if all(not mark.ready or RevisionKey(instance_id, mark.id) in due for mark in marks):
                yield RevisionKey(instance_id, AGENT)

    def _unbegun(self, now: float) -> Iterator[RevisionKey]:
        """The instances that no agent began to report in time, though others report from their nodes."""
        unbegun, reporting = self._tracker.unbegun, dict[str, bool]()
        for instance_id in list(islice(unbegun.expired_keys(now), _MOST)):
            entry = self._cache.get(instance_id)
            if entry is None:
                continue
            node = entry.traits.node
            if node not in reporting:
                reporting[node] = any(other.has_reporter() for other in self._cache.on_node(node))
            if reporting[node]:
                yield RevisionKey(instance_id, AGENT)
            else:
                unbegun.record_contact(
                    instance_id, now
                )  # no agent is known to be there: look again after another timeout

    def _judge(self, now: float) -> int:
        """Ask the guard; return how many expiries may be written together now."""
        census, order = self._census(), self._orders.order()
        before, is_spent = self._verdict, self._reachability.door.is_spent
        self._verdict, self._ordered = self._guard.judge(now, census, order, limited=is_spent), order
        if self._verdict.hold and not before.hold:
            log.warning("expiries are held: %s", self._verdict.words)
        elif before.hold and not self._verdict.hold:
            log.warning("expiries proceed again: %s", self._verdict.words)
        allowed = self._pace.allowance(now, self._guard.expiries_per_s(census.expected), self._tracker.expiries)
        self.waiting = self._tracker.deadlines.expired_count(now) if self._verdict.hold else 0
        return min(_MOST, allowed) if self._verdict.limited or self._verdict.hold else _MOST

    def _census(self) -> Census:
        return self._tracker.census(self._cache.nodes())
