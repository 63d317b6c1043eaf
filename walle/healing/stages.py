"""The stages of an operation as a table: (stage, event) -> stage and outcome. What is not in it does not happen."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from wallepb.v1.host_pb2 import (
    OUTCOME_CANCELLED,
    OUTCOME_DONE,
    OUTCOME_FAILED,
    OUTCOME_REJECTED,
    OUTCOME_UNSPECIFIED,
    STAGE_APPROVAL,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_REQUESTED,
    STAGE_RUNNING,
    STAGE_UNSPECIFIED,
    STAGE_VERIFYING,
    Operation,
    Outcome,
    Stage,
)


class Event(StrEnum):
    """What happens to an operation."""

    DRY_RUN_OK = "no dry run was rejected"
    DRY_RUN_REJECTED = "a dry run was rejected"
    ALL_OK = "every CMS says ok"
    REJECTED = "a CMS rejected the task"
    CONFIRMED = "confirmed, the check still fails, the fuses are in"
    WITHDRAWN = "a CMS took its ok back"
    RECOVERED = "the check is fine"
    COMPLETE = "the work is done, and no check waits for it"
    FUSE_OUT = "the automation went off"
    CANCEL = "somebody cancelled it"
    EXECUTED = "the work is done"
    NEXT_STEP = "it did not help, the next step begins"
    GAVE_UP = "it did not help, no next step begins now"
    TASKS_DELETED = "no CMS holds a task any more"


Row = tuple[Stage, Outcome]
_OVER: Final = STAGE_UNSPECIFIED
_CANCELLED: Final[Row] = (STAGE_ENDING, OUTCOME_CANCELLED)
_FAILED: Final[Row] = (STAGE_ENDING, OUTCOME_FAILED)
_NOT_YET: Final = OUTCOME_UNSPECIFIED

TABLE: Final[Mapping[tuple[Stage, Event], Row]] = {
    (STAGE_REQUESTED, Event.DRY_RUN_OK): (STAGE_APPROVAL, _NOT_YET),
    (STAGE_REQUESTED, Event.DRY_RUN_REJECTED): _CANCELLED,
    (STAGE_REQUESTED, Event.RECOVERED): _CANCELLED,
    (STAGE_REQUESTED, Event.FUSE_OUT): _CANCELLED,
    (STAGE_REQUESTED, Event.CANCEL): _CANCELLED,
    (STAGE_APPROVAL, Event.ALL_OK): (STAGE_CONFIRMING, _NOT_YET),
    (STAGE_APPROVAL, Event.REJECTED): (STAGE_ENDING, OUTCOME_REJECTED),
    (STAGE_APPROVAL, Event.RECOVERED): _CANCELLED,
    (STAGE_APPROVAL, Event.FUSE_OUT): _CANCELLED,
    (STAGE_APPROVAL, Event.CANCEL): _CANCELLED,
    (STAGE_CONFIRMING, Event.CONFIRMED): (STAGE_RUNNING, _NOT_YET),
    (STAGE_CONFIRMING, Event.WITHDRAWN): (STAGE_APPROVAL, _NOT_YET),
    (STAGE_CONFIRMING, Event.REJECTED): (STAGE_ENDING, OUTCOME_REJECTED),
    (STAGE_CONFIRMING, Event.RECOVERED): _CANCELLED,
    (STAGE_CONFIRMING, Event.FUSE_OUT): _CANCELLED,
    (STAGE_CONFIRMING, Event.CANCEL): _CANCELLED,
    # Work that runs goes on, whatever the fuses say: a host in the middle of a redeploy is worth nothing.
    (STAGE_RUNNING, Event.EXECUTED): (STAGE_VERIFYING, _NOT_YET),
    (STAGE_RUNNING, Event.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_RUNNING, Event.GAVE_UP): _FAILED,
    (STAGE_VERIFYING, Event.RECOVERED): (STAGE_ENDING, OUTCOME_DONE),
    (STAGE_VERIFYING, Event.COMPLETE): (STAGE_ENDING, OUTCOME_DONE),
    (STAGE_VERIFYING, Event.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_VERIFYING, Event.GAVE_UP): _FAILED,
    (STAGE_VERIFYING, Event.CANCEL): _CANCELLED,
    (STAGE_ENDING, Event.TASKS_DELETED): (_OVER, _NOT_YET),
}


def is_possible(operation: Operation, event: Event) -> bool:
    return (operation.stage, event) in TABLE


def advance(operation: Operation, event: Event, now_ms: int, message: str = "") -> Operation:
    """A copy in the next stage. Raises KeyError: the table does not have it.

    When the last stage is over, the copy has STAGE_UNSPECIFIED and keeps its outcome.
    """
    stage, outcome = TABLE[operation.stage, event]
    moved = Operation()
    moved.CopyFrom(operation)
    moved.stage, moved.since_ms, moved.failures = stage, now_ms, 0
    moved.outcome = outcome or operation.outcome
    if event is not Event.TASKS_DELETED:  # why it ended stays to be read
        moved.message = message or event.value
    return moved
