"""Who is told when a host is added, moved, prepared or removed: the protocol's list, line by line.

A CMS learns of hosts that go into use and out of use, not of what Wall-E keeps in its books.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATE_MAINTENANCE,
    HOST_STATE_PROBATION,
    OPERATION_KIND_DEACTIVATE,
    OPERATION_KIND_PREPARE,
    HostState,
    OperationKind,
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
    """The operation that it takes (in the CMS's of the project where the host is), and the state afterwards.

    `operation` None: no CMS is told, it is done at once. `state` None: it stays.
    """

    operation: OperationKind | None
    state: HostState | None


_QUIET: Final = Told(None, None)
_IN: Final = Told(OPERATION_KIND_PREPARE, HOST_STATE_ASSIGNED)
_OUT: Final = Told(OPERATION_KIND_DEACTIVATE, HOST_STATE_FREE)

# By the state that the host has, or is added in.
TABLE: Final[Mapping[tuple[Change, HostState], Told]] = {
    (Change.ADD, HOST_STATE_FREE): _QUIET,
    (Change.ADD, HOST_STATE_ASSIGNED): _IN,
    (Change.ADD_PREORDERED, HOST_STATE_FREE): _QUIET,
    (Change.ADD_PREORDERED_PREPARE, HOST_STATE_FREE): _IN,
    (Change.PREPARE, HOST_STATE_FREE): _IN,
    (Change.PREPARE, HOST_STATE_ASSIGNED): _IN,
    (Change.PREPARE, HOST_STATE_MAINTENANCE): _IN,
    (Change.PREPARE, HOST_STATE_PROBATION): _IN,
    (Change.MOVE, HOST_STATE_FREE): _QUIET,
    (Change.MOVE, HOST_STATE_ASSIGNED): _QUIET,  # the projects are taken to belong together
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

# A preorder cannot ignore CMS's; everything else can.
MAY_IGNORE_CMS: Final = frozenset(Change) - {Change.ADD_PREORDERED, Change.ADD_PREORDERED_PREPARE}


class NotPossible(ValueError):
    """A host in this state cannot be changed so; the message says what to do."""


def told(change: Change, state: HostState) -> Told:
    """Raises NotPossible."""
    try:
        return TABLE[change, state]
    except KeyError:
        name = HostState.Name(state).removeprefix("HOST_STATE_").lower()
        raise NotPossible(f"{change}: not possible in state {name}") from None
