"""nanny.v1 over the wire: bad input is told by field and stores nothing; an order sent twice is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from hqclient import HqApiError
from hqclient.credential_files import CredentialFiles
from nanny.reach import MANAGERS, OWNERS, service_in
from nannyctl.nanny_server import NannyServer
from nannypb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest, OutOfReach, PermissionDenied
from serving.rights.access import Access, Identity, ProofKind, Scope
from serving.rights.patterns import Patterns
from serving.rights.rules import OPERATE, Role
from tests.support.gateway_process import Program
from tests.support.sample_instances import eventually

GOOD = b"{service: web, instances: [{id: web-1}], revisions: [{id: v1}]}"


@pytest.fixture
async def nanny(tmp_path: Path) -> AsyncIterator[NannyServer]:
    """A Nanny over memory with the service `web`; no HQ answers."""
    words = ("dev", "--store", "memory", "--location", "default=127.0.0.1:1")
    program = Program("nanny.main", (*words, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"), tmp_path / "nanny.log")
    await program.start()
    server = NannyServer((program.grpc,), 10.0, CredentialFiles())

    async def acts() -> bool:
        try:
            return bool((await server.call("GetControl", pb.GetControlRequest())).control.acting)
        except HqApiError:
            return False

    try:
        await eventually(acts, 30.0, "it acts")
        await server.call("CreateService", pb.CreateServiceRequest(service_id="web"))
        yield server
    finally:
        await program.kill()


async def refused(nanny: NannyServer, method: str, request: Any) -> str:
    with pytest.raises(HqApiError) as caught:
        await nanny.call(method, request)
    fields = "; ".join(f"{one.field}: {one.description}" for one in caught.value.violations)
    return f"{caught.value.code.name} {fields or caught.value.message}"


async def test_bad_input_names_the_field_and_stores_nothing(nanny: NannyServer) -> None:
    policy = pb.RolloutPolicy(max_unavailable="many", location=["mars"])
    steps = [pb.RolloutStep(instances="many"), pb.RolloutStep(weight="5"), pb.RolloutStep(instances="2", hold_s=1)]
    named = pb.RolloutPolicy(step=[pb.RolloutStep(promote=True), pb.RolloutStep(check="errors")])
    check = pb.RolloutPolicy(check=[pb.RolloutCheck(name="errors", prometheus="main", query="x", below=1, above=0)])
    for method, request, told in (
        ("CreateService", pb.CreateServiceRequest(service_id="a b"), "INVALID_ARGUMENT service_id"),
        (
            "CreateService",
            pb.CreateServiceRequest(service_id="new", info=pb.InfoAttributes(rollout=policy)),
            "info.rollout.max_unavailable: 'many' is not a valid amount",
        ),
        *(
            ("CreateService", pb.CreateServiceRequest(service_id="new", info=pb.InfoAttributes(rollout=one)), told)
            for one, told in (
                (pb.RolloutPolicy(step=steps[:1]), "info.rollout.step[0].instances: 'many' is not a valid amount"),
                (pb.RolloutPolicy(step=steps[1:2]), "info.rollout.step[0].weight: '5' is not a share: write it as 5%"),
                (pb.RolloutPolicy(step=steps[2:]), "info.rollout.step[0]: write instances, weight or both, or one of"),
                (named, "info.rollout.step[1].check: there is no check 'errors' in this policy; it has: none"),
                (check, "info.rollout.check[0].prometheus: Nanny knows no Prometheus 'main'; it knows none: start"),
                (check, "info.rollout.check[0]: write one bound: below or above"),
            )
        ),
        (
            "UpdateService",
            pb.UpdateServiceRequest(
                service_id="web",
                info=pb.InfoAttributes(rollout=pb.RolloutPolicy(soak_s=700)),
                update_mask=FieldMask(paths=["rollout.soak_s"]),
            ),
            "info.rollout.soak_s: is 700 s, which is not below progress_deadline_s (600 s)",
        ),
        ("PromoteRollout", pb.PromoteRolloutRequest(service_id="web"), "INVALID_ARGUMENT order_id: name the order"),
        (
            "AbortRollout",
            pb.AbortRolloutRequest(service_id="web", order_id="o1"),
            "ABORTED there is no order 'o1', or a later one took its place",
        ),
        ("CreateService", pb.CreateServiceRequest(service_id="web"), "ALREADY_EXISTS"),
        (
            "UpdateService",
            pb.UpdateServiceRequest(
                service_id="web", info=pb.InfoAttributes(rollout=pb.RolloutPolicy(leave_out=["default"] * 9_999))
            ),
            "info.rollout.leave_out: names a location twice",
        ),
        (
            "UpdateService",
            pb.UpdateServiceRequest(service_id="web", update_mask=FieldMask(paths=["description", "rollout.frob"])),
            "INVALID_ARGUMENT update_mask: info has no field 'rollout.frob'",
        ),
        ("GetService", pb.GetServiceRequest(service_id="none"), "NOT_FOUND there is no service none"),
        ("SetTarget", pb.SetTargetRequest(service_id="web"), "INVALID_ARGUMENT target"),
        ("SetTarget", pb.SetTargetRequest(service_id="web", target=pb.TARGET_ACTIVE), "has no snapshot yet"),
        (
            "SetTarget",
            pb.SetTargetRequest(service_id="web", snapshot_id="0123456789abcdef", target=pb.TARGET_ACTIVE),
            "NOT_FOUND snapshot 0123456789abcdef",
        ),
        ("StopService", pb.StopServiceRequest(service_id="web"), "there is nothing to stop"),
        ("CreateSnapshot", pb.CreateSnapshotRequest(service_id="web", content=b"frob: 1"), "content.frob"),
    ):
        assert told in await refused(nanny, method, request), method
    services = (await nanny.call("ListServices", pb.ListServicesRequest())).service
    assert [one.id for one in services] == ["web"]
    assert not services[0].head


async def test_an_instance_of_another_service_takes_no_target(nanny: NannyServer) -> None:
    await nanny.call("CreateSnapshot", pb.CreateSnapshotRequest(service_id="web", content=GOOD))
    request = pb.SetInstanceTargetRequest(service_id="web", instance_id="other-1", target=pb.TARGET_ACTIVE)
    assert "NOT_FOUND instance other-1" in await refused(nanny, "SetInstanceTarget", request)


@pytest.mark.long
async def test_an_order_sent_twice_is_one_and_the_same_id_for_another_is_a_conflict(nanny: NannyServer) -> None:
    snapshot = (
        await nanny.call("CreateSnapshot", pb.CreateSnapshotRequest(service_id="web", content=GOOD))
    ).snapshot.id
    again = (await nanny.call("CreateSnapshot", pb.CreateSnapshotRequest(service_id="web", content=GOOD))).snapshot.id
    assert again == snapshot
    order = pb.SetTargetRequest(service_id="web", target=pb.TARGET_PREPARED, request_id="one")
    await asyncio.gather(*(nanny.call("SetTarget", order) for _ in range(3)))
    history = (await nanny.call("ListHistory", pb.ListHistoryRequest(service_id="web"))).entry
    assert [entry.what for entry in history].count("target PREPARED") == 1
    other = pb.SetTargetRequest(service_id="web", target=pb.TARGET_CREATED, request_id="one")
    assert "ALREADY_EXISTS" in await refused(nanny, "SetTarget", other)


@pytest.mark.long
async def test_while_hq_is_away_a_snapshot_says_so_and_its_action_waits(nanny: NannyServer) -> None:
    await nanny.call("CreateSnapshot", pb.CreateSnapshotRequest(service_id="web", content=GOOD))
    order = pb.SetTargetRequest(service_id="web", target=pb.TARGET_PREPARED)
    await nanny.call("SetTarget", order)

    async def told() -> bool:
        service = (await nanny.call("GetService", pb.GetServiceRequest(service_id="web"))).service
        return any("default does not answer" in one.action.message for one in service.snapshot)

    await eventually(told, 30.0, "it says that the location is away")


def access(role: Role, service: str) -> Access:
    return Access(Identity("ann", ProofKind.TOKEN, 0.0), OPERATE, {role: (Scope(services=Patterns([service])),)})


def allows(roles: tuple[Role, ...], request: Any, who: Access) -> None:
    check = service_in(roles).check
    assert check is not None
    check(request, who)


def test_pause_is_for_operations_managers_of_the_service() -> None:
    request = pb.PauseActionsRequest(service_id="web")
    for role in (Role.OPERATOR, Role.ADMIN):
        allows(MANAGERS, request, access(role, "web"))
    for role in (Role.UPLOADER, Role.READER):
        with pytest.raises(PermissionDenied):
            allows(MANAGERS, request, access(role, "web"))


def test_orders_are_for_owners_of_the_service() -> None:
    request = pb.StopServiceRequest(service_id="web")
    allows(OWNERS, request, access(Role.UPLOADER, "web"))
    with pytest.raises(PermissionDenied):
        allows(OWNERS, request, access(Role.OPERATOR, "web"))


def test_a_service_out_of_reach_is_not_found_but_creating_it_is_denied() -> None:
    with pytest.raises(OutOfReach, match="there is no service web"):
        allows(OWNERS, pb.StopServiceRequest(service_id="web"), access(Role.UPLOADER, "other"))
    with pytest.raises(PermissionDenied):
        allows(OWNERS, pb.CreateServiceRequest(service_id="web"), access(Role.UPLOADER, "other"))
    with pytest.raises(InvalidRequest, match="name a service"):
        allows(OWNERS, pb.StopServiceRequest(), access(Role.UPLOADER, "other"))
