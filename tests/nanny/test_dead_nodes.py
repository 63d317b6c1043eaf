"""A dead node neither fails a roll-out nor the way back: silent instances come last, and nobody waits for them."""

from __future__ import annotations

from nannypb.v1 import service_pb2 as pb
from tests.nanny.virtual_cloud import virtual_cloud
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_a_dead_node_with_a_stopped_revision_is_last_and_not_waited_for_on_the_way_there_and_back() -> None:
    async with virtual_cloud(6) as cloud:
        await cloud.create(maxUnavailable="1")
        v1, v2 = await cloud.add("v1"), await cloud.add("v2")
        await cloud.activate(v1)
        await cloud.target(v2, pb.TARGET_PREPARED)
        await cloud.until(v2, pb.CURRENT_STATE_PREPARED)
        await cloud.kill_node("web-0")
        v3 = await cloud.add("v3")
        assert await cloud.activate(v3) < 120
        assert "1 whose agents have not reported" in (await cloud.state(v3)).message
        assert await cloud.activate(v1) < 120
        assert await cloud.runs(v1) == set(cloud.names)
