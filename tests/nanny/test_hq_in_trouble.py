"""HQ in trouble is waited for, visibly and with back-off; only what it will never take fails an action."""

from __future__ import annotations

from typing import Any

import pytest

from hq.errors import AlreadyExists
from hqpb.v1 import service_pb2 as hq_pb
from nannypb.v1 import service_pb2 as pb
from serving.error_statuses import grpc_code
from serving.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    OutcomeUnknown,
    Overloaded,
    PermissionDenied,
    ServiceError,
    StoreUnavailable,
    invalid,
)
from tests.nanny.virtual_cloud import VirtualCloud, virtual_cloud
from tests.support.virtual_time import in_virtual_time

TROUBLES = [
    StoreUnavailable("etcd did not answer"),
    DeadlineExceeded("etcd did not answer"),
    OutcomeUnknown("etcd did not answer"),
    Overloaded("etcd did not answer"),
    ServiceError("etcd did not answer"),
]


def in_each_item(error: ServiceError) -> Any:
    """ApplyInstances answers, with this error for each instance."""
    item = hq_pb.ItemError(code=grpc_code(error).value[0], reason=error.reason, message=str(error))

    def answer(request: hq_pb.ApplyInstancesRequest) -> hq_pb.ApplyInstancesResponse:
        return hq_pb.ApplyInstancesResponse(result=[hq_pb.ApplyResult(error=item) for _ in request.instance])

    return answer


async def running_service(cloud: VirtualCloud) -> str:
    """The first snapshot runs; the id of the second one, which is not prepared yet."""
    await cloud.create()
    await cloud.activate(await cloud.add("v1"))
    return await cloud.add("v2")


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda error: error.reason)
@in_virtual_time
async def test_a_stalled_etcd_while_preparing_is_waited_for_and_shown_for_as_long_as_it_takes(
    trouble: ServiceError,
) -> None:
    async with virtual_cloud(3) as cloud:
        v2 = await running_service(cloud)
        cloud.hq.direct.faults["ApplyInstances"] = in_each_item(trouble)
        asked = len(cloud.hq.direct.asked)
        await cloud.target(v2)
        await cloud.sleep(600.0)
        state = await cloud.state(v2)
        assert state.current == pb.CURRENT_STATE_PREPARING, state.message
        assert "waits for HQ in ams: etcd did not answer" in state.action.message
        assert cloud.hq.direct.asked[asked:].count("ApplyInstances") <= 30
        cloud.hq.direct.faults.clear()
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=120.0)


@pytest.mark.long
@in_virtual_time
async def test_a_stalled_etcd_in_the_middle_of_a_roll_out_is_waited_for_and_costs_no_deadline() -> None:
    async with virtual_cloud(3) as cloud:
        v2 = await running_service(cloud)
        await cloud.target(v2, pb.TARGET_PREPARED)
        await cloud.until(v2, pb.CURRENT_STATE_PREPARED)
        cloud.hq.direct.faults["ApplyInstances"] = TROUBLES[0]
        await cloud.target(v2)
        await cloud.sleep(600.0)
        assert "waits for HQ in ams" in (await cloud.state(v2)).action.message
        cloud.hq.direct.faults.clear()
        state = await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, pb.CURRENT_STATE_BROKEN)
        assert state.current == pb.CURRENT_STATE_ACTIVE, state.message


REFUSALS = [
    invalid("instance.spec", "is wrong"),
    PermissionDenied("is wrong: not authorized"),
    AlreadyExists("web-0", 7),
    FailedPrecondition("instance web-0 belongs to another service, not web"),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda error: error.reason)
@in_virtual_time
async def test_what_is_invalid_not_authorized_or_in_conflict_fails_at_once(refusal: ServiceError) -> None:
    async with virtual_cloud(3) as cloud:
        v2 = await running_service(cloud)
        cloud.hq.direct.faults["ApplyInstances"] = in_each_item(refusal)
        await cloud.target(v2)
        state = await cloud.until(v2, pb.CURRENT_STATE_PARTIALLY_PREPARED, timeout_s=30.0)
        assert "HQ refuses web-0 (ams)" in state.message
        assert str(refusal) in state.message
