"""A roll-out in steps: a few first, holds, people, shares of weight; the same ones in every try, whoever restarts."""

from __future__ import annotations

from typing import Any

import pytest

from hqclient import HqApiError
from hqpb.v1 import service_pb2 as hq_pb
from hqpb.v1.instance_pb2 import Instance
from nanny.snapshots.weights import SHARE
from nannypb.v1 import service_pb2 as pb
from tests.nanny.virtual_cloud import SERVICE, Looks, VirtualCloud, virtual_cloud
from tests.support.prometheus_stand_in import vector
from tests.support.virtual_time import in_virtual_time

pytestmark = pytest.mark.long

CANARY: list[dict[str, Any]] = [
    {"instances": "1", "weight": "5%"},
    {"holdS": 90},
    {"instances": "50%", "weight": "20%"},
    {"promote": True},
]


async def at_step(cloud: VirtualCloud, snapshot: str, number: int) -> pb.SnapshotState:
    """Its state, once this step is under way; 0: once they are over."""
    while (state := await cloud.state(snapshot)).action.step_number != number or not state.action.step:
        assert state.current not in (pb.CURRENT_STATE_BROKEN, pb.CURRENT_STATE_ACTIVE), state
        await cloud.sleep(1.0)
    return state


async def say(cloud: VirtualCloud, verb: str, snapshot: str, number: int, order: str = "") -> str:
    """Promote or abort; what it is refused with."""
    made = getattr(pb, f"{verb}RolloutRequest")
    order = order or (await cloud.state(snapshot)).order.id
    by = pb.Authorship(author="ann", comment="looks bad")
    try:
        await cloud.nanny.unary(f"{verb}Rollout", made(service_id=SERVICE, order_id=order, step_number=number, by=by))
    except HqApiError as error:
        return f"{error.code.name} {error.message}"
    return ""


async def weights(cloud: VirtualCloud) -> list[int]:
    return [_weight(one) for _, one in sorted((await cloud.instances()).items())]


def _weight(instance: Instance) -> int:
    return instance.spec.weight if instance.spec.HasField("weight") else 100


async def rolled_out(cloud: VirtualCloud, **rollout: Any) -> tuple[str, str]:
    """v1 is active, and v2 is there; a soak of 30 s."""
    await cloud.create(**{"step": CANARY, "soakS": 30, **rollout})
    v1, v2 = await cloud.add("v1"), await cloud.add("v2")
    await cloud.activate(v1, timeout_s=200.0)  # nothing ran before: no steps
    return v1, v2


@in_virtual_time
async def test_a_canary_by_weight_holds_and_is_promoted() -> None:
    async with virtual_cloud(6) as cloud:
        _, v2 = await rolled_out(cloud)
        await cloud.target(v2)
        await at_step(cloud, v2, 2)
        began = cloud.clock.now()
        assert await cloud.runs(v2) == {"web-0"}
        await cloud.sleep(5.0)
        assert await weights(cloud) == [5, 100, 100, 100, 100, 100]
        assert (await cloud.state(v2)).action.cms_task == ""
        await at_step(cloud, v2, 3)
        assert 85.0 <= cloud.clock.now() - began <= 110.0
        state = await at_step(cloud, v2, 4)
        assert "waits for `nanny rollout promote web`" in (await _said(cloud, v2))
        await cloud.sleep(100.0)
        assert await cloud.runs(v2) == {"web-0", "web-1", "web-2"}
        assert await weights(cloud) == [20, 20, 20, 100, 100, 100]

        assert "no order" in await say(cloud, "Promote", v2, 4, "another")
        assert "step 4 is under way, not 3" in await say(cloud, "Promote", v2, 3)
        assert await say(cloud, "Promote", v2, state.action.step_number) == ""
        assert "ABORTED" in await say(cloud, "Promote", v2, 4)
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)
        await cloud.sleep(40.0)
        assert await weights(cloud) == [100] * 6
        assert not any(SHARE in one.meta.annotations for one in (await cloud.instances()).values())


async def _said(cloud: VirtualCloud, snapshot: str) -> str:
    await cloud.sleep(2.0)
    return (await cloud.state(snapshot)).action.message


@in_virtual_time
@pytest.mark.parametrize("rolls_back", [False, True])
async def test_abort_fails_the_order_and_the_policy_decides(rolls_back: bool) -> None:
    async with virtual_cloud(6) as cloud:
        v1, v2 = await rolled_out(cloud, rollBack=rolls_back)
        await cloud.target(v2, request_id="o2")
        await at_step(cloud, v2, 2)
        assert "ABORTED" in await say(cloud, "Abort", v2, 1)
        assert "step 2 does not wait for people" in await say(cloud, "Promote", v2, 2)
        assert await say(cloud, "Abort", v2, 2) == ""
        if rolls_back:
            await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        await cloud.sleep(40.0)
        order = (await cloud.state(v2)).order
        wanted = pb.ORDER_OUTCOME_ROLLED_BACK if rolls_back else pb.ORDER_OUTCOME_FAILED
        assert (order.outcome, order.message) == (wanted, "aborted by ann: looks bad")
        assert await cloud.runs(v2) == (set() if rolls_back else {"web-0"})
        assert await weights(cloud) == [100] * 6
        assert "ABORTED" in await say(cloud, "Abort", v2, 2)


@in_virtual_time
async def test_another_order_takes_the_share_away_and_begins_with_the_same_canary() -> None:
    async with virtual_cloud(6) as cloud:
        v1, v2 = await rolled_out(cloud)
        await cloud.target(v2)
        await at_step(cloud, v2, 2)
        v3 = await cloud.add("v3", weight=40)
        await cloud.target(v3)
        await cloud.until(v3, pb.CURRENT_STATE_ACTIVATING)
        await at_step(cloud, v3, 2)
        assert await cloud.runs(v3) == {"web-0"}
        await cloud.sleep(5.0)
        assert await weights(cloud) == [2, 100, 100, 100, 100, 100]
        await cloud.activate(v1)  # what was active last takes no steps
        await cloud.sleep(40.0)
        assert await weights(cloud) == [40, 100, 100, 100, 100, 100]  # v1 says nothing of weights


@in_virtual_time
async def test_a_weight_that_people_gave_comes_back_and_an_ailing_instance_is_no_canary() -> None:
    async with virtual_cloud(6) as cloud:
        _, v2 = await rolled_out(cloud)
        for name, weight in (("web-1", 40), ("web-2", 0)):
            instance = (await cloud.instances())[name]
            instance.spec.weight = weight
            await cloud.hq.apply([instance])
        cloud.agents.programs["v1"] = lambda name, _: Looks(ready=name != "web-0")
        await cloud.sleep(30.0)
        await cloud.target(v2)
        await at_step(cloud, v2, 2)
        assert await cloud.runs(v2) == {"web-1"}
        assert (await weights(cloud))[1:3] == [2, 0]
        assert await say(cloud, "Abort", v2, 2) == ""
        await cloud.sleep(10.0)
        assert (await weights(cloud))[1:3] == [40, 0]


@in_virtual_time
async def test_a_check_passes_or_fails_the_order_and_without_a_value_it_waits() -> None:
    check = {"name": "errors", "prometheus": "main", "query": "errors{i=~'$instances'}", "below": 0.1, "durationS": 60}
    async with virtual_cloud(6) as cloud:
        query = "errors{i=~'web-0'}"
        cloud.prometheus.answers = {query: vector()}
        _, v2 = await rolled_out(cloud, step=[{"instances": "1"}, {"check": "errors"}], check=[check])
        await cloud.target(v2)
        await at_step(cloud, v2, 2)
        await cloud.sleep(90.0)
        assert (await cloud.state(v2)).action.check_result == "the query found no value, which means wait"
        cloud.prometheus.answers[query] = vector("0.01", "0.02")
        await cloud.sleep(40.0)
        cloud.prometheus.is_down = True
        await cloud.sleep(90.0)
        assert "does not answer" in (await cloud.state(v2)).action.message
        cloud.prometheus.is_down = False
        await at_step(cloud, v2, 0)
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)

        v3 = await cloud.add("v3")
        cloud.prometheus.answers[query] = vector("0.4", "0.02")
        await cloud.target(v3)
        await cloud.until(v3, pb.CURRENT_STATE_BROKEN)
        assert (await cloud.state(v3)).order.message == "check errors: 0.4 is not below 0.1 (1 of 2 values)"
        assert await cloud.runs(v3) == {"web-0"}


@in_virtual_time
@pytest.mark.parametrize("at_step_number", [0, 2, 4])
async def test_an_order_may_skip_the_steps_also_while_they_are_under_way(at_step_number: int) -> None:
    async with virtual_cloud(6) as cloud:
        _, v2 = await rolled_out(cloud)
        if at_step_number:
            await cloud.target(v2)
            await at_step(cloud, v2, at_step_number)
        await cloud.nanny.unary(
            "SetTarget",
            pb.SetTargetRequest(service_id=SERVICE, snapshot_id=v2, target=pb.TARGET_ACTIVE, skip_steps=True),
        )
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=400.0)
        await cloud.sleep(5.0)
        assert await weights(cloud) == [100] * 6


@in_virtual_time
async def test_a_hold_longer_than_the_deadline_outlives_a_restart_of_nanny() -> None:
    async with virtual_cloud(3) as cloud:
        _, v2 = await rolled_out(cloud, step=[{"instances": "1"}, {"holdS": 300}])
        await cloud.target(v2)
        await at_step(cloud, v2, 2)
        await cloud.sleep(120.0)
        await cloud.restart()
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=600.0)


@in_virtual_time
async def test_a_canary_gets_its_whole_weight_back_only_with_what_replaces_it() -> None:
    async with virtual_cloud(3) as cloud:
        _, v2 = await rolled_out(cloud)
        v3 = await cloud.add("v3")
        cloud.agents.cannot_prepare.add(("web-1", "v3"))
        await cloud.target(v2)
        await at_step(cloud, v2, 2)
        await cloud.sleep(5.0)
        await cloud.target(v3)
        await cloud.sleep(20.0)
        assert (await cloud.state(v3)).current == pb.CURRENT_STATE_PREPARING
        assert (await cloud.runs(v2), await weights(cloud)) == ({"web-0"}, [5, 100, 100])
        cloud.agents.cannot_prepare.clear()
        await at_step(cloud, v3, 4)
        await say(cloud, "Promote", v3, 4)
        await cloud.until(v3, pb.CURRENT_STATE_ACTIVE)
        await cloud.sleep(40.0)
        assert await weights(cloud) == [100] * 3


@in_virtual_time
async def test_a_canary_that_replaces_one_that_fell_holds_for_the_whole_time() -> None:
    async with virtual_cloud(6) as cloud:
        _, v2 = await rolled_out(cloud, step=[{"instances": "1"}, {"holdS": 120}])
        cloud.agents.programs["v2"] = lambda name, age_s: Looks(2.0 <= age_s < 110.0 or (name != "web-0" and age_s > 2))
        await cloud.target(v2)
        await at_step(cloud, v2, 2)
        while await cloud.runs(v2) != {"web-0", "web-1"}:
            await cloud.sleep(1.0)
        began = cloud.clock.now()
        while len(await cloud.runs(v2)) == 2:
            await cloud.sleep(1.0)
        assert cloud.clock.now() - began >= 120.0


@in_virtual_time
async def test_weights_that_hq_refuses_are_named_once_sent_seldom_and_hold_up_no_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("nanny.actions.shares.AT_ONCE", 1)
    async with virtual_cloud(6) as cloud:
        _, v2 = await rolled_out(cloud)
        await cloud.target(v2)
        await at_step(cloud, v2, 4)
        await cloud.sleep(5.0)
        assert await weights(cloud) == [20, 20, 20, 100, 100, 100]
        apply = cloud.hq.apply
        asked = []

        async def refuse(instances: list[Instance], **where: Any) -> Any:
            if instances[0].meta.id != "web-0":
                return await apply(instances, **where)
            asked.append(cloud.clock.now())
            return hq_pb.ApplyInstancesResponse(result=[{"error": {"code": 3, "message": "no weights here"}}])

        monkeypatch.setattr(cloud.hq, "apply", refuse)
        await say(cloud, "Abort", v2, 4)
        await cloud.sleep(65.0)
        assert await weights(cloud) == [20, 100, 100, 100, 100, 100]
        assert len(asked) <= 3
        assert caplog.text.count("HQ refuses the weight of web-0 (ams): no weights here") == 1
