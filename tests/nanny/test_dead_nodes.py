"""A dead node neither fails a roll-out nor the way back: silent instances come last, and nobody waits for them."""

from __future__ import annotations

from functools import partial

import pytest

from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE, Instance
from hqpb.v1.service_pb2 import InstanceSilence
from nanny.actions.reports import is_silent
from nanny.world.silences import is_heard
from nannypb.v1 import service_pb2 as pb
from tests.nanny.virtual_cloud import Looks, VirtualCloud, virtual_cloud
from tests.support.virtual_time import in_virtual_time

SOON_S = 120.0
"""Six batches of an instance each; less than the progress deadline above what they take."""


async def with_a_stopped_revision(cloud: VirtualCloud) -> tuple[str, str]:
    """The first snapshot runs, the second one is installed: its agents say NotWantedReady of it."""
    await cloud.create(maxUnavailable="1")
    v1, v2 = await cloud.add("v1"), await cloud.add("v2")
    await cloud.activate(v1)
    await cloud.target(v2, pb.TARGET_PREPARED)
    await cloud.until(v2, pb.CURRENT_STATE_PREPARED)
    return v1, v2


@pytest.mark.long
@in_virtual_time
async def test_a_dead_node_with_a_stopped_revision_is_last_and_not_waited_for_on_roll_out_and_roll_back() -> None:
    async with virtual_cloud(6) as cloud:
        v1, v2 = await with_a_stopped_revision(cloud)
        await cloud.kill_node("web-0")
        v3 = await cloud.add("v3")
        assert await cloud.activate(v3) < SOON_S
        state = await cloud.state(v3)
        assert "1 whose agents have not reported" in state.message
        for snapshot in (v1, v2):  # what it said last of the one that is stopped, too, says nothing now
            assert await cloud.shown_state(snapshot, "web-0") == "Unknown"
        assert await cloud.activate(v1) < SOON_S
        assert await cloud.runs(v1) == set(cloud.names)


def test_an_instance_is_heard_by_its_own_report_interval() -> None:
    """HQ says 180 s of all, and for some their spec says otherwise."""
    own = partial(InstanceSilence, instance_id="web-0")
    assert is_heard(own(silent_ms=270_000), 180_000)
    assert not is_heard(own(silent_ms=271_000), 180_000)
    assert is_heard(own(silent_ms=600_000, report_interval_ms=600_000), 180_000)
    assert not is_heard(own(silent_ms=60_000, report_interval_ms=20_000), 180_000)
    assert not is_heard(own(), 180_000)
    assert is_heard(own(node_suspended=True), 180_000)


@in_virtual_time
async def test_a_failed_roll_out_beside_a_dead_node_is_rolled_back() -> None:
    async with virtual_cloud(6) as cloud:
        v1, _ = await with_a_stopped_revision(cloud)
        await cloud.kill_node("web-5")
        bad = await cloud.add("bad", lambda *_: Looks(ready=False))
        await cloud.target(bad)
        state = await cloud.until(bad, pb.CURRENT_STATE_BROKEN)
        assert "web-0 (ams) did not become ready" in state.message
        assert await cloud.activate(v1) < SOON_S


@pytest.mark.long
@in_virtual_time
async def test_a_node_that_died_while_its_new_revision_started_fails_no_roll_back() -> None:
    """HQ gives up waiting for ready revisions only, so that this instance never becomes silent."""
    async with virtual_cloud(6) as cloud:
        v1, _ = await with_a_stopped_revision(cloud)
        bad = await cloud.add("bad", lambda *_: Looks(ready=False))
        await cloud.target(bad)
        await cloud.until(bad, pb.CURRENT_STATE_BROKEN)
        cloud.agents.silent |= await cloud.runs(bad)
        await cloud.activate(v1)
        assert await cloud.runs(v1) == set(cloud.names)


@in_virtual_time
async def test_an_instance_that_comes_back_is_heard_again() -> None:
    async with virtual_cloud(3) as cloud:
        v1, _ = await with_a_stopped_revision(cloud)
        await cloud.kill_node("web-0")
        assert is_silent(await instance(cloud))
        cloud.agents.silent.clear()
        await cloud.sleep(60.0)
        assert not is_silent(await instance(cloud))
        assert (await instance(cloud)).status.ready.status == CONDITION_STATUS_TRUE
        assert await cloud.runs(v1) == set(cloud.names)


async def instance(cloud: VirtualCloud) -> Instance:
    return (await cloud.instances())["web-0"]
