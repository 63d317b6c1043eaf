"""The guard: holds expiries back when so many fall silent at once that HQ itself is the likelier cause. Pure.

Eureka's self-preservation is the prior art; it holds for as long as the condition lasts, and so can serve dead
instances for hours. This guard is bounded: it delays expiries, it never prevents them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class GuardRules:
    """When the guard holds, and how long.

    Attributes:
        max_silent_share: more than this share of the expected revisions silent: hold.
        min_revisions, min_nodes: below either there is no statistic to trust, and the guard stays out of it.
        hold_s: it holds at most this long, then expiries go ahead at a bounded rate; time used up is available again
            only after as long without a hold: whoever can make the guard hold again and again gains nothing.
        settle_s: how long a hold goes on after the share has fallen: the others may just be on their way back.
        expiries_per_s, expiries_share_per_s: that rate: the greater of a number and a share of the expected revisions.
    """

    max_silent_share: float = 0.2
    min_revisions: int = 20
    min_nodes: int = 3
    hold_s: float = 600.0
    settle_s: float = 190.0
    expiries_per_s: float = 50.0
    expiries_share_per_s: float = 0.01


class Census(NamedTuple):
    """The numbers that the guard decides by.

    Attributes:
        expected: revisions that are ready or expired within the last timeout. Declared removals are not in it.
        silent: those of them silent for over two report intervals, or expired within the last timeout.
        nodes: nodes that instances are on.
        many_refused: another replica refuses the reports of more nodes than it can name.
        agents, silent_agents: agents heard since this replica started, and those of them silent as above.
    """

    expected: int
    silent: int
    nodes: int
    many_refused: bool = False
    agents: int = 0
    silent_agents: int = 0


class GuardCommand(Enum):
    """An operator's order."""

    NONE = 0
    RELEASE = 1
    FORCE = 2


class _Phase(Enum):
    CALM = 0
    HOLDING = 1
    SPENT = 2  # held for as long as it may; the share has not fallen since


class GuardVerdict(NamedTuple):
    """The guard's decision.

    Attributes:
        hold: no expiries now.
        limited: expiries go ahead, at a bounded rate.
        since, until: of the hold, on the injected clock; None without one or without an end.
        words: for people, and for the record of a decision.
    """

    hold: bool
    limited: bool
    since: float | None
    until: float | None
    words: str


class HoldUse(NamedTuple):
    """How much a guard has used of the time that it may hold expiries. `renewed_in_s`: 0 if none of it is used."""

    is_holding: bool
    left_s: float
    renewed_in_s: float


class ExpiryGuard:
    """The guard of one replica; each has its own, measured on its own clock."""

    def __init__(self, rules: GuardRules) -> None:
        self.rules = rules
        self._phase = _Phase.CALM
        self._since = 0.0
        self._fell_at: float | None = None
        self._ends = 0.0  # of a hold, at the latest
        self._left_s, self._renewed_at = rules.hold_s, float("-inf")
        self.holds = 0

    def judge(
        self, now: float, census: Census, order: GuardCommand = GuardCommand.NONE, *, limited: bool = False
    ) -> GuardVerdict:
        """Say whether expiries may go ahead now. `limited`: no report could come in for longer than may excuse that."""
        self._move(now, self._over(census))
        return self.verdict(census, order, limited=limited)

    def verdict(self, census: Census, order: GuardCommand, *, limited: bool) -> GuardVerdict:
        """Return the verdict as of the last call of `judge`. Changes nothing."""
        over = self._over(census)
        share = f"{census.silent} of {census.expected} revisions silent"
        if self._is_over(census.silent_agents, census.agents):
            share += f", {census.silent_agents} of {census.agents} agents"
        if order is GuardCommand.FORCE:
            return GuardVerdict(True, False, None, None, f"held by an operator's order ({share})")
        if order is GuardCommand.RELEASE:
            return GuardVerdict(False, over or limited, None, None, f"released by an operator's order ({share})")
        if self._phase is _Phase.HOLDING:
            limit = f"{'over' if over else 'no longer over'} {self.rules.max_silent_share:.0%}"
            return GuardVerdict(True, False, self._since, self._until(), f"holding: {share}, {limit}")
        if limited:
            words = f"no reports could come in for {self.rules.hold_s:.0f} s, no longer holding: {share}"
            return GuardVerdict(False, True, None, None, words)
        if self._phase is _Phase.SPENT:
            return GuardVerdict(
                False, True, None, None, f"held for {self.rules.hold_s:.0f} s already, no longer holding: {share}"
            )
        few = "" if self._applies(census) else " (too few to judge)"
        return GuardVerdict(False, False, None, None, f"not holding: {share}{few}")

    def use(self, now: float) -> HoldUse | None:
        """Return how much of its time it has used up; None: nothing."""
        if self._phase is _Phase.HOLDING:
            return HoldUse(True, max(0.0, self._ends - now), 0.0)
        return HoldUse(False, self._left_s, self._renewed_at - now) if now < self._renewed_at else None

    def resume(self, now: float, use: HoldUse) -> None:
        """Take over the use of a guard whose replica is gone: a start must not renew a hold."""
        self._left_s = min(use.left_s, self.rules.hold_s)
        self._renewed_at = now + (self.rules.hold_s if use.is_holding else use.renewed_in_s)
        if use.is_holding:
            self._begin(now)

    def expiries_per_s(self, expected: int) -> float:
        """The bounded rate."""
        return max(self.rules.expiries_per_s, self.rules.expiries_share_per_s * expected)

    def _applies(self, census: Census) -> bool:
        return census.expected >= self.rules.min_revisions and census.nodes >= self.rules.min_nodes

    def _over(self, census: Census) -> bool:
        if census.nodes >= self.rules.min_nodes and self._is_over(census.silent_agents, census.agents):
            return True
        return self._applies(census) and (census.many_refused or self._is_over(census.silent, census.expected))

    def _is_over(self, silent: int, expected: int) -> bool:
        return expected >= self.rules.min_revisions and silent > self.rules.max_silent_share * expected

    def _move(self, now: float, over: bool) -> None:
        if self._phase is _Phase.HOLDING:
            self._fell_at = None if over else now if self._fell_at is None else self._fell_at
            if now >= self._until():
                self._left_s, self._renewed_at = max(0.0, self._ends - now), now + self.rules.hold_s
                self._phase = _Phase.SPENT if over else _Phase.CALM
        elif not over:
            self._phase = _Phase.CALM
        elif self._phase is _Phase.CALM:
            self._begin(now)

    def _begin(self, now: float) -> None:
        """Hold, for as long as is left of `hold_s`."""
        if now >= self._renewed_at:
            self._left_s = self.rules.hold_s
        self._phase = _Phase.HOLDING if self._left_s > 0 else _Phase.SPENT
        self._since, self._fell_at, self._ends = now, None, now + self._left_s
        self.holds += self._phase is _Phase.HOLDING

    def _until(self) -> float:
        """When the hold ends at the latest."""
        return self._ends if self._fell_at is None else min(self._ends, self._fell_at + self.rules.settle_s)


class ExpiryPace:
    """An allowance that grows with time, up to one second's worth, and shrinks with every expiry that is seen.

    Expiries of all replicas are counted: many replicas are not faster than one.
    """

    def __init__(self) -> None:
        self._allowance = 0.0
        self._last: tuple[float, int] | None = None  # when it was counted, and how many expiries were seen by then

    def allowance(self, now: float, expiries_per_s: float, expiries_seen: int) -> int:
        """How many expiries may be written now. `expiries_seen` is the number seen ever."""
        before, seen_before = self._last or (now, expiries_seen)
        self._last = now, expiries_seen
        most = max(1.0, expiries_per_s)
        allowance = self._allowance + (now - before) * expiries_per_s - (expiries_seen - seen_before)
        self._allowance = max(-most, min(allowance, most))
        return max(0, int(self._allowance))
