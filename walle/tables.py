"""Tables: kinds of operations and their names, what a change of a host requires, and the stages of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATE_MAINTENANCE,
    HOST_STATE_PROBATION,
    OPERATION_KIND_CHANGE_DISK,
    OPERATION_KIND_CHANGE_MEMORY,
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_POWER_OFF,
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OPERATION_KIND_REPAIR_LINK,
    OPERATION_KIND_TEMPORARY_UNREACHABLE,
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
    HostState,
    Operation,
    OperationKind,
    Outcome,
    Stage,
)

# As the CMS protocol and the command line write them.
NAMES: Final[Mapping[OperationKind, str]] = {
    OPERATION_KIND_PREPARE: "prepare",
    OPERATION_KIND_DEACTIVATE: "deactivate",
    OPERATION_KIND_POWER_OFF: "power-off",
    OPERATION_KIND_REBOOT: "reboot",
    OPERATION_KIND_PROFILE: "profile",
    OPERATION_KIND_REDEPLOY: "redeploy",
    OPERATION_KIND_REPAIR_LINK: "repair-link",
    OPERATION_KIND_CHANGE_DISK: "change-disk",
    OPERATION_KIND_CHANGE_MEMORY: "change-memory",
    OPERATION_KIND_TEMPORARY_UNREACHABLE: "temporary-unreachable",
    OPERATION_KIND_DNS_FIX: "dns-fix",
}
KINDS: Final[Mapping[str, OperationKind]] = {name: kind for kind, name in NAMES.items()}

# Steps that a check may ask for; the others are asked for by people and scenarios.
REPAIRS: Final = frozenset(
    {
        OPERATION_KIND_REBOOT,
        OPERATION_KIND_PROFILE,
        OPERATION_KIND_REDEPLOY,
        OPERATION_KIND_REPAIR_LINK,
        OPERATION_KIND_CHANGE_DISK,
        OPERATION_KIND_CHANGE_MEMORY,
        OPERATION_KIND_DNS_FIX,
    }
)


class Change(StrEnum):
    """What an owner does with a host."""

    ADD = "hosts add"
    ADD_PREORDERED = "preorder"
    ADD_PREORDERED_PREPARE = "preorder --prepare"
    PREPARE = "hosts prepare"
    MOVE = "hosts switch-project"
    MOVE_RELEASE = "hosts switch-project --release"
    REMOVE = "hosts remove"


class Told(NamedTuple):
    """The operation that it requires (in the CMSs of the host's current project), and the state afterwards.

    `operation` None: no CMS is told, it is done at once. `state` None: unchanged.
    """

    operation: OperationKind | None
    state: HostState | None


_QUIET: Final = Told(None, None)
_IN: Final = Told(OPERATION_KIND_PREPARE, HOST_STATE_ASSIGNED)
_OUT: Final = Told(OPERATION_KIND_DEACTIVATE, HOST_STATE_FREE)

# The protocol's list of who is told, line by line, by the host's state or the one it is added in. A CMS learns of hosts
# that go into use and out of use, not of Wall-E's bookkeeping.
MEMBERSHIP: Final[Mapping[tuple[Change, HostState], Told]] = {
    (Change.ADD, HOST_STATE_FREE): _QUIET,
    (Change.ADD, HOST_STATE_ASSIGNED): _IN,
    (Change.ADD_PREORDERED, HOST_STATE_FREE): _QUIET,
    (Change.ADD_PREORDERED_PREPARE, HOST_STATE_FREE): _IN,
    (Change.PREPARE, HOST_STATE_FREE): _IN,
    (Change.PREPARE, HOST_STATE_ASSIGNED): _IN,
    (Change.PREPARE, HOST_STATE_MAINTENANCE): _IN,
    (Change.PREPARE, HOST_STATE_PROBATION): _IN,
    (Change.MOVE, HOST_STATE_FREE): _QUIET,
    (Change.MOVE, HOST_STATE_ASSIGNED): _QUIET,  # the projects are assumed to belong together
    (Change.MOVE, HOST_STATE_MAINTENANCE): _QUIET,
    (Change.MOVE, HOST_STATE_PROBATION): _QUIET,
    (Change.MOVE_RELEASE, HOST_STATE_FREE): _QUIET,
    (Change.MOVE_RELEASE, HOST_STATE_ASSIGNED): _OUT,
    (Change.MOVE_RELEASE, HOST_STATE_MAINTENANCE): _OUT,
    (Change.MOVE_RELEASE, HOST_STATE_PROBATION): _OUT,
    (Change.REMOVE, HOST_STATE_FREE): _QUIET,
    (Change.REMOVE, HOST_STATE_ASSIGNED): _OUT,
    (Change.REMOVE, HOST_STATE_MAINTENANCE): _OUT,
    (Change.REMOVE, HOST_STATE_PROBATION): _OUT,
}

# Preorders cannot ignore CMSs; all other changes can.
MAY_IGNORE_CMS: Final = frozenset(Change) - {Change.ADD_PREORDERED, Change.ADD_PREORDERED_PREPARE}


class NotPossible(ValueError):
    """A host in this state cannot be changed so; the message says what to do."""


def told(change: Change, state: HostState) -> Told:
    """Raises NotPossible."""
    try:
        return MEMBERSHIP[change, state]
    except KeyError:
        possible = ", ".join(_name(one) for other, one in MEMBERSHIP if other is change)
        raise NotPossible(f"{change}: not possible in state {_name(state)}, only in: {possible}") from None


def _name(state: HostState) -> str:
    return HostState.Name(state).removeprefix("HOST_STATE_").lower()


class Event(StrEnum):
    """What happens to an operation."""

    DRY_RUN_OK = "no dry run was rejected"
    DRY_RUN_REJECTED = "a dry run was rejected"
    ALL_OK = "every CMS says ok"
    REJECTED = "a CMS rejected the task"
    CONFIRMED = "confirmed, the check still fails, no fuse has tripped"
    WITHDRAWN = "a CMS took its ok back"
    RECOVERED = "the check is fine"
    COMPLETE = "the work is done, and no check waits for it"
    FUSE_OUT = "automation was switched off"
    INCIDENT = "its rack or switch fails as a whole"
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

STAGES: Final[Mapping[tuple[Stage, Event], Row]] = {
    (STAGE_REQUESTED, Event.DRY_RUN_OK): (STAGE_APPROVAL, _NOT_YET),
    (STAGE_REQUESTED, Event.DRY_RUN_REJECTED): _CANCELLED,
    (STAGE_REQUESTED, Event.RECOVERED): _CANCELLED,
    (STAGE_REQUESTED, Event.FUSE_OUT): _CANCELLED,
    (STAGE_REQUESTED, Event.INCIDENT): _CANCELLED,
    (STAGE_REQUESTED, Event.CANCEL): _CANCELLED,
    (STAGE_REQUESTED, Event.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_REQUESTED, Event.GAVE_UP): _FAILED,
    (STAGE_APPROVAL, Event.ALL_OK): (STAGE_CONFIRMING, _NOT_YET),
    (STAGE_APPROVAL, Event.REJECTED): (STAGE_ENDING, OUTCOME_REJECTED),
    (STAGE_APPROVAL, Event.RECOVERED): _CANCELLED,
    (STAGE_APPROVAL, Event.FUSE_OUT): _CANCELLED,
    (STAGE_APPROVAL, Event.INCIDENT): _CANCELLED,
    (STAGE_APPROVAL, Event.CANCEL): _CANCELLED,
    (STAGE_CONFIRMING, Event.CONFIRMED): (STAGE_RUNNING, _NOT_YET),
    (STAGE_CONFIRMING, Event.WITHDRAWN): (STAGE_APPROVAL, _NOT_YET),
    (STAGE_CONFIRMING, Event.REJECTED): (STAGE_ENDING, OUTCOME_REJECTED),
    (STAGE_CONFIRMING, Event.RECOVERED): _CANCELLED,
    (STAGE_CONFIRMING, Event.FUSE_OUT): _CANCELLED,
    (STAGE_CONFIRMING, Event.INCIDENT): _CANCELLED,
    (STAGE_CONFIRMING, Event.CANCEL): _CANCELLED,
    # The work cannot be prepared: the approval is not kept for it.
    (STAGE_CONFIRMING, Event.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_CONFIRMING, Event.GAVE_UP): _FAILED,
    # Running work continues, whatever the fuses say: a host in the middle of a redeploy is useless.
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


# A CMS that takes its ok back does not give a broken executor more tries.
_KEEP_FAILURES: Final = (Event.ALL_OK, Event.WITHDRAWN)


def is_possible(operation: Operation, event: Event) -> bool:
    return (operation.stage, event) in STAGES


def advance(operation: Operation, event: Event, now_ms: int, message: str = "") -> Operation:
    """A copy in the next stage. Raises KeyError: the table does not have it.

    When the last stage is over, the copy has STAGE_UNSPECIFIED and keeps its outcome.
    """
    stage, outcome = STAGES[operation.stage, event]
    moved = Operation()
    moved.CopyFrom(operation)
    moved.stage, moved.since_ms = stage, now_ms
    if event not in _KEEP_FAILURES:
        moved.failures = 0
    moved.outcome = outcome or operation.outcome
    if event is not Event.TASKS_DELETED:  # keep showing why it ended
        moved.message = message or event.value
    return moved
