"""The states of a task, as a table. The table in docs/cms.md is made from this one."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a task stands. ENDED tasks are not stored."""

    WAITING = "waiting"
    PROVISIONAL = "provisional"  # ok, until it is confirmed, withdrawn or not polled
    LAPSED = "lapsed"  # nobody polled it: it waits without blocking others
    GRANTED = "granted"
    REJECTED = "rejected"
    ENDED = "ended"


class TaskEvent(StrEnum):
    """The events of a task."""

    GRANT = "grant"
    OFFER = "offer"
    REJECT = "reject"
    CONFIRM = "confirm"
    WITHDRAW = "withdraw"
    LAPSE = "lapse"
    POLL = "poll"
    END = "end"  # deleted by its issuer, or ended by an operator


TABLE: Final = {
    (State.WAITING, TaskEvent.GRANT): State.GRANTED,
    (State.WAITING, TaskEvent.OFFER): State.PROVISIONAL,
    (State.WAITING, TaskEvent.REJECT): State.REJECTED,
    (State.WAITING, TaskEvent.POLL): State.WAITING,
    (State.WAITING, TaskEvent.END): State.ENDED,
    (State.PROVISIONAL, TaskEvent.CONFIRM): State.GRANTED,
    (State.PROVISIONAL, TaskEvent.WITHDRAW): State.WAITING,
    (State.PROVISIONAL, TaskEvent.LAPSE): State.LAPSED,
    (State.PROVISIONAL, TaskEvent.POLL): State.PROVISIONAL,
    (State.PROVISIONAL, TaskEvent.END): State.ENDED,
    (State.LAPSED, TaskEvent.POLL): State.WAITING,
    (State.LAPSED, TaskEvent.END): State.ENDED,
    (State.GRANTED, TaskEvent.CONFIRM): State.GRANTED,
    (State.GRANTED, TaskEvent.POLL): State.GRANTED,
    (State.GRANTED, TaskEvent.END): State.ENDED,
    (State.REJECTED, TaskEvent.POLL): State.REJECTED,
    (State.REJECTED, TaskEvent.END): State.ENDED,
}

HOLDING: Final = frozenset({State.PROVISIONAL, State.GRANTED})
"""States in which a task takes its instances out of the budgets."""

STATUS: Final = {
    State.WAITING: "in-process",
    State.LAPSED: "in-process",
    State.PROVISIONAL: "ok",
    State.GRANTED: "ok",
    State.REJECTED: "rejected",
}
"""The word of the wire for each state."""


class NoSuchStep(Exception):
    """The table has no such step; str() says which."""


def after(state: State, event: TaskEvent) -> State:
    """The state that follows. Raises NoSuchStep."""
    try:
        return TABLE[state, event]
    except KeyError:
        raise NoSuchStep(f"a task that is {state} cannot {event}") from None
