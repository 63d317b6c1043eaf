"""Which CMSs are told of adding, moving and removing a host, in the order of the protocol's list."""

from __future__ import annotations

import pytest

from serving.errors import InvalidRequest
from walle.api.checking import check_new_host
from walle.approval.protocol import is_told
from walle.tables import MembershipChange, MembershipRule, NotPossible, membership_rule
from wallepb.v1 import service_pb2 as pb
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

NOBODY = MembershipRule(None, None)
PREPARE = MembershipRule(OPERATION_KIND_PREPARE, HOST_STATE_ASSIGNED)
DEACTIVATE = MembershipRule(OPERATION_KIND_DEACTIVATE, HOST_STATE_FREE)


@pytest.mark.parametrize(
    ("change", "state", "expected"),
    [
        (MembershipChange.ADD, HOST_STATE_FREE, NOBODY),  # hosts add $inv -S free
        (MembershipChange.ADD, HOST_STATE_ASSIGNED, PREPARE),  # hosts add $inv
        (MembershipChange.ADD_PREORDERED, HOST_STATE_FREE, NOBODY),
        (MembershipChange.ADD_PREORDERED_PREPARE, HOST_STATE_FREE, PREPARE),
        (MembershipChange.PREPARE, HOST_STATE_FREE, PREPARE),  # hosts prepare $inv
        (MembershipChange.MOVE, HOST_STATE_ASSIGNED, NOBODY),  # without --release
        (MembershipChange.MOVE_RELEASE, HOST_STATE_ASSIGNED, DEACTIVATE),  # in the CMS of the source project
        (MembershipChange.MOVE, HOST_STATE_FREE, NOBODY),
        (MembershipChange.MOVE_RELEASE, HOST_STATE_FREE, NOBODY),
        (MembershipChange.REMOVE, HOST_STATE_FREE, NOBODY),
        (MembershipChange.REMOVE, HOST_STATE_ASSIGNED, DEACTIVATE),
    ],
)
def test_the_membership_rule_says_which_cms_is_told(
    change: MembershipChange, state: HostState, expected: MembershipRule
) -> None:
    assert membership_rule(change, state) == expected


def test_a_preordered_host_cannot_ignore_its_cms() -> None:
    check_new_host(pb.AddHostRequest(host="a.example", project="web", ignore_cms=True))
    with pytest.raises(InvalidRequest, match="preorders"):
        check_new_host(pb.AddHostRequest(host="a.example", project="web", ignore_cms=True, preordered=True))


def test_a_change_that_is_impossible_in_a_state_is_refused_with_the_possible_states() -> None:
    with pytest.raises(NotPossible, match="hosts add: not possible in state maintenance, only in: free, assigned"):
        membership_rule(MembershipChange.ADD, HOST_STATE_MAINTENANCE)


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
def test_a_cms_of_any_version_is_asked_about_work_on_a_host(version: str, kind: OperationKind) -> None:
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
def test_a_cms_is_not_told_of_operations_its_version_does_not_know(kind: OperationKind, versions: list[str]) -> None:
    assert [v for v in ("v1.0", "v1.1", "v1.2", "v1.3", "v1.4") if is_told(v, kind)] == versions
