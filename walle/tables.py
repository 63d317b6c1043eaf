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

# Hosts in use: automation repairs them, and planned work selects them.
IN_USE: Final = (HOST_STATE_ASSIGNED, HOST_STATE_PROBATION)

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


class MembershipChange(StrEnum):
    """Changes of a host's membership that an owner orders."""

    ADD = "hosts add"
    ADD_PREORDERED = "preorder"
    ADD_PREORDERED_PREPARE = "preorder --prepare"
    PREPARE = "hosts prepare"
    MOVE = "hosts switch-project"
    MOVE_RELEASE = "hosts switch-project --release"
    REMOVE = "hosts remove"


class MembershipRule(NamedTuple):
    """The operation that a change requires (in the CMSs of the host's current project), and the state afterwards.

    `operation` None: no CMS is told, it is done at once. `state` None: unchanged.
    """

    operation: OperationKind | None
    state: HostState | None


_QUIET: Final = MembershipRule(None, None)
_IN: Final = MembershipRule(OPERATION_KIND_PREPARE, HOST_STATE_ASSIGNED)
_OUT: Final = MembershipRule(OPERATION_KIND_DEACTIVATE, HOST_STATE_FREE)

# The protocol's list of who is told, line by line, by the host's state or the one it is added in. A CMS learns of hosts
# that go into use and out of use, not of Wall-E's bookkeeping.
MEMBERSHIP: Final[Mapping[tuple[MembershipChange, HostState], MembershipRule]] = {
    (MembershipChange.ADD, HOST_STATE_FREE): _QUIET,
    (MembershipChange.ADD, HOST_STATE_ASSIGNED): _IN,
    (MembershipChange.ADD_PREORDERED, HOST_STATE_FREE): _QUIET,
    (MembershipChange.ADD_PREORDERED_PREPARE, HOST_STATE_FREE): _IN,
    (MembershipChange.PREPARE, HOST_STATE_FREE): _IN,
    (MembershipChange.PREPARE, HOST_STATE_ASSIGNED): _IN,
    (MembershipChange.PREPARE, HOST_STATE_MAINTENANCE): _IN,
    (MembershipChange.PREPARE, HOST_STATE_PROBATION): _IN,
    (MembershipChange.MOVE, HOST_STATE_FREE): _QUIET,
    (MembershipChange.MOVE, HOST_STATE_ASSIGNED): _QUIET,  # the projects are assumed to belong together
    (MembershipChange.MOVE, HOST_STATE_MAINTENANCE): _QUIET,
    (MembershipChange.MOVE, HOST_STATE_PROBATION): _QUIET,
    (MembershipChange.MOVE_RELEASE, HOST_STATE_FREE): _QUIET,
    (MembershipChange.MOVE_RELEASE, HOST_STATE_ASSIGNED): _OUT,
    (MembershipChange.MOVE_RELEASE, HOST_STATE_MAINTENANCE): _OUT,
    (MembershipChange.MOVE_RELEASE, HOST_STATE_PROBATION): _OUT,
    (MembershipChange.REMOVE, HOST_STATE_FREE): _QUIET,
    (MembershipChange.REMOVE, HOST_STATE_ASSIGNED): _OUT,
    (MembershipChange.REMOVE, HOST_STATE_MAINTENANCE): _OUT,
    (MembershipChange.REMOVE, HOST_STATE_PROBATION): _OUT,
}


class NotPossible(ValueError):
    """A host in this state cannot be changed so; the message says what to do."""


def membership_rule(change: MembershipChange, state: HostState) -> MembershipRule:
    """Raises NotPossible."""
    try:
        return MEMBERSHIP[change, state]
    except KeyError:
        possible = ", ".join(_name(one) for other, one in MEMBERSHIP if other is change)
        raise NotPossible(f"{change}: not possible in state {_name(state)}, only in: {possible}") from None


def _name(state: HostState) -> str:
    return HostState.Name(state).removeprefix("HOST_STATE_").lower()


class OperationEvent(StrEnum):
    """The events of an operation."""

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
    HELD = "planned work holds its host"
    STOPPED = "nothing begins now"
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

STAGES: Final[Mapping[tuple[Stage, OperationEvent], Row]] = {
    (STAGE_REQUESTED, OperationEvent.DRY_RUN_OK): (STAGE_APPROVAL, _NOT_YET),
    (STAGE_REQUESTED, OperationEvent.DRY_RUN_REJECTED): _CANCELLED,
    (STAGE_REQUESTED, OperationEvent.RECOVERED): _CANCELLED,
    (STAGE_REQUESTED, OperationEvent.FUSE_OUT): _CANCELLED,
    (STAGE_REQUESTED, OperationEvent.INCIDENT): _CANCELLED,
    (STAGE_REQUESTED, OperationEvent.HELD): _CANCELLED,
    (STAGE_REQUESTED, OperationEvent.CANCEL): _CANCELLED,
    (STAGE_REQUESTED, OperationEvent.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_REQUESTED, OperationEvent.GAVE_UP): _FAILED,
    (STAGE_APPROVAL, OperationEvent.ALL_OK): (STAGE_CONFIRMING, _NOT_YET),
    (STAGE_APPROVAL, OperationEvent.REJECTED): (STAGE_ENDING, OUTCOME_REJECTED),
    (STAGE_APPROVAL, OperationEvent.RECOVERED): _CANCELLED,
    (STAGE_APPROVAL, OperationEvent.FUSE_OUT): _CANCELLED,
    (STAGE_APPROVAL, OperationEvent.INCIDENT): _CANCELLED,
    (STAGE_APPROVAL, OperationEvent.HELD): _CANCELLED,
    (STAGE_APPROVAL, OperationEvent.STOPPED): _CANCELLED,
    (STAGE_APPROVAL, OperationEvent.CANCEL): _CANCELLED,
    (STAGE_CONFIRMING, OperationEvent.CONFIRMED): (STAGE_RUNNING, _NOT_YET),
    (STAGE_CONFIRMING, OperationEvent.WITHDRAWN): (STAGE_APPROVAL, _NOT_YET),
    (STAGE_CONFIRMING, OperationEvent.REJECTED): (STAGE_ENDING, OUTCOME_REJECTED),
    (STAGE_CONFIRMING, OperationEvent.RECOVERED): _CANCELLED,
    (STAGE_CONFIRMING, OperationEvent.FUSE_OUT): _CANCELLED,
    (STAGE_CONFIRMING, OperationEvent.INCIDENT): _CANCELLED,
    (STAGE_CONFIRMING, OperationEvent.HELD): _CANCELLED,
    (STAGE_CONFIRMING, OperationEvent.STOPPED): _CANCELLED,
    (STAGE_CONFIRMING, OperationEvent.CANCEL): _CANCELLED,
    # The work cannot be prepared: the approval is not kept for it.
    (STAGE_CONFIRMING, OperationEvent.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_CONFIRMING, OperationEvent.GAVE_UP): _FAILED,
    # Running work continues, whatever the fuses say: a host in the middle of a redeploy is useless.
    (STAGE_RUNNING, OperationEvent.EXECUTED): (STAGE_VERIFYING, _NOT_YET),
    (STAGE_RUNNING, OperationEvent.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_RUNNING, OperationEvent.GAVE_UP): _FAILED,
    (STAGE_VERIFYING, OperationEvent.RECOVERED): (STAGE_ENDING, OUTCOME_DONE),
    (STAGE_VERIFYING, OperationEvent.COMPLETE): (STAGE_ENDING, OUTCOME_DONE),
    (STAGE_VERIFYING, OperationEvent.NEXT_STEP): (STAGE_REQUESTED, _NOT_YET),
    (STAGE_VERIFYING, OperationEvent.GAVE_UP): _FAILED,
    (STAGE_VERIFYING, OperationEvent.CANCEL): _CANCELLED,
    (STAGE_ENDING, OperationEvent.TASKS_DELETED): (_OVER, _NOT_YET),
}


# A CMS that takes its ok back does not give a broken executor more tries.
_KEEP_FAILURES: Final = (OperationEvent.ALL_OK, OperationEvent.WITHDRAWN)


def is_possible(operation: Operation, event: OperationEvent) -> bool:
    return (operation.stage, event) in STAGES


def advance(operation: Operation, event: OperationEvent, now_ms: int, message: str = "") -> Operation:
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
    if event is not OperationEvent.TASKS_DELETED:  # keep showing why it ended
        moved.message = message or event.value
    return moved
