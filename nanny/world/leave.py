"""Leave to disrupt instances: from a CMS, or, without one, by `max_unavailable` alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from nanny.rollout.views import Key


@dataclass(frozen=True, slots=True)
class ApprovalAnswer:
    """Whether the instances may be taken away; `why` says what prevents it, and `retry_s` when to ask again.

    Attributes:
        at_most: the most that could be granted at once if all others were ready; 0: unknown or unbounded.
        by_budget: a budget is in the way: fewer at once might be granted.
        is_hopeless: a budget, as it stands, would grant none of these even if all were ready: others might be granted.
    """

    granted: bool
    why: str = ""
    retry_s: float = 2.0
    at_most: int = 0
    by_budget: bool = False
    is_hopeless: bool = False


GRANTED = ApprovalAnswer(granted=True)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """Instances of a service that a task shall take away.

    Attributes:
        is_rollback: the task goes back from a roll-out that failed: before planned work, and outside of windows, too.
        max_failures: so many lost instances of the service are not counted on.
        leave_out: locations whose unavailable instances are not counted on, either.
        order_began_ms: when work of its order was approved first, in Unix time: it may go on for a while after the end
            of a window; 0: not yet.
    """

    task: str
    service: str
    instances: Sequence[Key]
    comment: str
    is_rollback: bool = False
    max_failures: int = 0
    leave_out: Collection[str] = ()
    order_began_ms: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave that somebody holds for these instances, and for all on these hosts."""

    task: str
    instances: frozenset[Key] = frozenset()
    hosts: frozenset[str] = frozenset()

    def covers(self, key: Key, host: str) -> bool:
        return key in self.instances or host in self.hosts


class ApprovalPort(Protocol):
    """Grants leave. Tasks are identified by id: requesting one twice is idempotent."""

    address: str

    async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
        """Create the task unless it is there, and return its state. Provisional until `confirm`."""
        ...

    async def confirm(self, task: str) -> ApprovalAnswer:
        """Call directly before the first effect: the decision is made again."""
        ...

    async def give_back(self, task: str) -> bool:
        """End a task: its instances serve again, or it is no longer needed. False: it may still exist."""
        ...

    async def holds_of_others(self, service: str) -> Sequence[Hold]:
        """Return the holds of others on a service: their instances are left for later. May be slightly stale."""
        ...

    async def declare(self, running: Sequence[Hold]) -> bool:
        """Declare running work, if the CMS requests it because its store has a new history. Return whether it did."""
        ...


class NoCms:
    """There is no CMS: only the plan's own bound applies, and messages say so."""

    address = ""

    async def ask(self, wanted: ApprovalRequest) -> ApprovalAnswer:
        return GRANTED

    async def confirm(self, task: str) -> ApprovalAnswer:
        return GRANTED

    async def give_back(self, task: str) -> bool:
        return True

    async def holds_of_others(self, service: str) -> Sequence[Hold]:
        return ()

    async def declare(self, running: Sequence[Hold]) -> bool:
        return False
