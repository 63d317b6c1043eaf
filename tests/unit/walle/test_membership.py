"""Who is told of adding, moving and removing a host: the protocol's list, in its order."""

from __future__ import annotations

import pytest

from walle.approval.protocol import is_told
from walle.tables import MAY_IGNORE_CMS, Change, NotPossible, Told, told
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_FREE,
    HOST_STATE_MAINTENANCE,
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
    HostState,
    OperationKind,
)

NOBODY = Told(None, None)
PREPARE = Told(OPERATION_KIND_PREPARE, HOST_STATE_ASSIGNED)
DEACTIVATE = Told(OPERATION_KIND_DEACTIVATE, HOST_STATE_FREE)


@pytest.mark.parametrize(
    ("change", "state", "expected"),
    [
        (Change.ADD, HOST_STATE_FREE, NOBODY),  # hosts add $inv -S free
        (Change.ADD, HOST_STATE_ASSIGNED, PREPARE),  # hosts add $inv
        (Change.ADD_PREORDERED, HOST_STATE_FREE, NOBODY),
        (Change.ADD_PREORDERED_PREPARE, HOST_STATE_FREE, PREPARE),
        (Change.PREPARE, HOST_STATE_FREE, PREPARE),  # hosts prepare $inv
        (Change.MOVE, HOST_STATE_ASSIGNED, NOBODY),  # without --release
        (Change.MOVE_RELEASE, HOST_STATE_ASSIGNED, DEACTIVATE),  # in the CMS of the source project
        (Change.MOVE, HOST_STATE_FREE, NOBODY),
        (Change.MOVE_RELEASE, HOST_STATE_FREE, NOBODY),
        (Change.REMOVE, HOST_STATE_FREE, NOBODY),
        (Change.REMOVE, HOST_STATE_ASSIGNED, DEACTIVATE),
    ],
)
def test_who_is_told(change: Change, state: HostState, expected: Told) -> None:
    assert told(change, state) == expected


def test_everything_but_preorders_can_ignore_cms() -> None:
    assert set(Change) - MAY_IGNORE_CMS == {Change.ADD_PREORDERED, Change.ADD_PREORDERED_PREPARE}


def test_what_makes_no_sense_is_refused_by_name() -> None:
    with pytest.raises(NotPossible, match="hosts add: not possible in state maintenance, only in: free, assigned"):
        told(Change.ADD, HOST_STATE_MAINTENANCE)


_ALWAYS = (
    OPERATION_KIND_POWER_OFF,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_PROFILE,
    OPERATION_KIND_REDEPLOY,
    OPERATION_KIND_REPAIR_LINK,
    OPERATION_KIND_CHANGE_DISK,
    OPERATION_KIND_CHANGE_MEMORY,
)


@pytest.mark.parametrize("version", ["v1.0", "v1.1", "v1.2", "v1.3", "v1.4"])
@pytest.mark.parametrize("kind", _ALWAYS)
def test_every_version_is_asked_about_work_on_a_host(version: str, kind: OperationKind) -> None:
    assert is_told(version, kind)


@pytest.mark.parametrize(
    ("kind", "versions"),
    [
        (OPERATION_KIND_PREPARE, ["v1.1", "v1.2", "v1.3", "v1.4"]),
        (OPERATION_KIND_DEACTIVATE, ["v1.1", "v1.2", "v1.3", "v1.4"]),
        (OPERATION_KIND_TEMPORARY_UNREACHABLE, ["v1.4"]),
        (OPERATION_KIND_DNS_FIX, []),
    ],
)
def test_a_cms_is_not_told_of_what_its_version_does_not_know(kind: OperationKind, versions: list[str]) -> None:
    assert [v for v in ("v1.0", "v1.1", "v1.2", "v1.3", "v1.4") if is_told(v, kind)] == versions
