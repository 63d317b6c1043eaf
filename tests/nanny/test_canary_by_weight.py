"""A canary of one per cent by weight gets one per cent of the requests over three locations: counted at the servers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hqclient import HqApiError
from nannyctl.nanny_server import new_request_id
from nannypb.v1 import service_pb2 as pb
from tests.nanny.callers import Callers
from tests.nanny.cloud import LOCATIONS, SERVICE, Cloud, cloud_of
from tests.support.etcd import SharedEtcd
from tests.support.sample_instances import eventually

REQUESTS = 100_000
NAMES = [f"{location}-{number}" for location in LOCATIONS for number in range(2)]
STEPS = [{"instances": "1", "weight": "5%"}, {"promote": True}]  # 5 of 505


async def weights(cloud: Cloud) -> dict[str, int]:
    """Weights of all instances in HQ."""
    clients = {name: cloud.locations[name.split("-")[0]].client for name in NAMES}
    found = {name: (await client.get(name)).instance.spec for name, client in clients.items()}
    return {name: spec.weight if spec.HasField("weight") else 100 for name, spec in found.items()}


async def waits_for_people(cloud: Cloud, snapshot: str) -> pb.SnapshotState:
    """Its roll-out has come to its second step."""

    async def state() -> pb.SnapshotState | None:
        try:
            [found] = [one for one in (await cloud.service()).snapshot if one.snapshot_id == snapshot]
        except HqApiError:
            return None
        return found if found.action.step_number == len(STEPS) else None

    found = await eventually(state, 120.0, "the step of people")
    assert isinstance(found, pb.SnapshotState)
    return found


@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_one_per_cent_by_weight_is_one_per_cent_of_100_000_requests(tmp_path: Path, etcd: SharedEtcd) -> None:
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 2) as (cloud, reader):
        await cloud.create(maxUnavailable="2", minReadyS=1, progressDeadlineS=120, step=STEPS)
        before, canary = [await cloud.add_server(title, NAMES) for title in ("v1", "v2")]
        await cloud.target(before)
        await cloud.until(before, pb.CURRENT_STATE_ACTIVE)
        await reader.until_seen(len(NAMES))
        reader.floor = len(NAMES) - 2
        await cloud.target(canary)
        state = await waits_for_people(cloud, canary)
        [light] = [name for name, weight in (await weights(cloud)).items() if weight != 100]
        assert cloud.gateway is not None
        callers = Callers(cloud.gateway.grpc, SERVICE)
        calling = asyncio.create_task(callers.run())
        try:
            while sum((served := await cloud.served()).values()) < REQUESTS:
                assert not calling.done()
                await asyncio.sleep(0.2)
            promotion = pb.PromoteRolloutRequest(
                service_id=SERVICE, order_id=state.order.id, step_number=len(STEPS), request_id=new_request_id()
            )
            await cloud.call("PromoteRollout", promotion)
            await cloud.until(canary, pb.CURRENT_STATE_ACTIVE)
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
        share = served[light] / sum(served.values())
        print(f"\n{served[light]} of {sum(served.values())} requests: {share:.3%}")
        assert 0.007 <= share <= 0.013, served
        assert not callers.failures, (len(callers.failures), callers.failures[:5])
        assert set((await weights(cloud)).values()) == {100}
        assert not reader.below, reader.below[:5]
