"""A task: a request for leave, and its state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from cms.ledger.actions import ACTIONS
from cms.ledger.instances import InstanceKey
from cms.ledger.states import HOLDING, State, TaskEvent, after


class Need(IntEnum):
    """The order in which tasks are granted where not all can be; the most needed first."""

    REPAIR = 0
    URGENT = 1
    ROLLOUT = 2
    PLANNED = 3


class UnitKey(NamedTuple):
    """Tasks that are decided as one: those of a group, else the task alone."""

    owner: str
    group: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Task:
    """Times are in seconds of the ledger's clock.

    Attributes:
        order: of creation, unique.
        owner: the identity that created it; empty without security.
        hosts: it takes down all instances there; or
        instances: it takes down these only. One of the two is not empty.
        confirm: its ok is provisional until it is confirmed.
        added_at: when it was created, or when this process learned of it.
        polled_at: when somebody asked for it last.
        since: when it came into its state.
        need: who goes first.
        max_failures: of a roll-out: it need not count on so many lost instances of a budget.
        leave_out: of a roll-out: locations; nor need it count on unavailable instances there.
        order_began_at: of a roll-out: when its order began, in Unix time; None: it begins with this task.
        asked_at: since when its issuer has been asking for the same hosts.
        overdue_at: a hold is overdue from then on.
    """

    id: str
    order: int
    action: str
    hosts: tuple[str, ...] = ()
    instances: tuple[InstanceKey, ...] = ()
    owner: str = ""
    issuer: str = ""
    group: str = ""
    confirm: bool = False
    state: State = State.WAITING
    added_at: float = 0.0
    polled_at: float = 0.0
    since: float = 0.0
    overdue_at: float = float("inf")
    need: Need = Need.PLANNED
    asked_at: float = 0.0
    max_failures: int = 0
    leave_out: frozenset[str] = frozenset()
    order_began_at: float | None = None

    @property
    def proves_itself(self) -> bool:
        """Whether it ends only after its instances have reported, so that they need not be heard again."""
        return bool(self.instances) and ACTIONS[self.action].proves_itself

    @property
    def disrupts(self) -> bool:
        """Whether it takes something down."""
        return ACTIONS[self.action].disrupts

    @property
    def holds(self) -> bool:
        """Whether it takes its instances out of the budgets."""
        return self.state in HOLDING and self.disrupts

    @property
    def unit(self) -> UnitKey:
        """The unit that it is decided with."""
        return UnitKey(self.owner, self.group, "" if self.group else self.id)

    @property
    def asks_for(self) -> tuple[str, str, frozenset[str], frozenset[InstanceKey]]:
        """Return the fields by which a later task is the same request, asked again."""
        return self.owner, self.issuer, frozenset(self.hosts), frozenset(self.instances)

    def after_event(self, event: TaskEvent, now: float) -> Task:
        """The task after an event. Raises NoSuchStep."""
        state = after(self.state, event)
        polled_at = now if event in (TaskEvent.POLL, TaskEvent.OFFER) else self.polled_at
        if state is self.state:
            return replace(self, polled_at=polled_at)
        overdue_at = now + ACTIONS[self.action].bound_s if state in HOLDING else float("inf")
        return replace(self, state=state, since=now, polled_at=polled_at, overdue_at=overdue_at)
