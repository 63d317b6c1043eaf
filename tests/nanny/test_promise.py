"""An outside reader never sees fewer ready instances than the floor, whatever is ordered and whoever is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hqpb.v1 import service_pb2 as hq_pb
from hqpb.v1.instance_pb2 import CONDITION_STATUS_TRUE
from nanny.snapshots.wanted import INSTALLED, READY, target_of
from nannypb.v1 import service_pb2 as pb
from tests.nanny.cloud import LOCATIONS, Cloud, Reader, cloud_of
from tests.support.etcd import SharedEtcd
from tests.support.sample_instances import eventually

pytestmark = [
    pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True),
    pytest.mark.long,
    pytest.mark.timeout(300),
]
NAMES = [f"{location}-{number}" for location in LOCATIONS for number in range(2)]


@pytest.fixture
async def scene(tmp_path: Path, etcd: SharedEtcd) -> AsyncIterator[tuple[Cloud, Reader]]:
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 2) as (cloud, reader):
        await cloud.create(maxUnavailable="1", minReadyS=1, progressDeadlineS=120)
        yield cloud, reader


async def first(cloud: Cloud, reader: Reader) -> str:
    """The first snapshot runs everywhere, and the floor holds from now on."""
    snapshot = await cloud.add("v1", NAMES)
    await cloud.target(snapshot)
    await cloud.until(snapshot, pb.CURRENT_STATE_ACTIVE)
    await reader.until_seen(len(NAMES))
    reader.floor = len(NAMES) - 1
    return snapshot


def assert_held(reader: Reader) -> None:
    assert not reader.below, reader.below[:5]
    assert reader.seen


async def test_activation_roll_back_and_a_bad_revision_keep_the_floor(scene: tuple[Cloud, Reader]) -> None:
    cloud, reader = scene
    v1 = await first(cloud, reader)
    reader.during = "activate"
    v2 = await cloud.add("v2", NAMES)
    await cloud.target(v2)
    await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)
    reader.during = "roll-back"
    await cloud.target(v1)
    await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
    reader.during = "a bad revision"
    await cloud.give_up_after(10)
    bad = await cloud.add_bad("bad", NAMES)
    await cloud.target(bad)
    service = await cloud.until(bad, pb.CURRENT_STATE_BROKEN)
    assert "in the first batch" in next(one.message for one in service.snapshot if one.snapshot_id == bad)
    await cloud.give_up_after(120)
    reader.during = "back from a bad revision"
    await cloud.target(v1)
    await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
    assert_held(reader)
    assert reader.seen[-1] >= len(NAMES) - 1


async def test_scaling_up_and_down_keeps_the_floor(scene: tuple[Cloud, Reader]) -> None:
    cloud, reader = scene
    await first(cloud, reader)
    more = [*NAMES, *(f"{location}-2" for location in LOCATIONS)]
    for name in more[len(NAMES) :]:
        await cloud.add_agent(name.split("-")[0], name)
    reader.during = "scale up"
    v2 = await cloud.add("v2", more)
    await cloud.target(v2)
    await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)
    reader.during = "scale down"
    v3 = await cloud.add("v3", NAMES)
    await cloud.target(v3)
    await cloud.until(v3, pb.CURRENT_STATE_ACTIVE)
    service = await cloud.until(v2, pb.CURRENT_STATE_PREPARED)
    assert service.state == pb.SERVICE_STATE_ONLINE
    assert_held(reader)


async def test_scaling_keeps_the_processes_of_instances_that_stay(scene: tuple[Cloud, Reader]) -> None:
    cloud, reader = scene
    v1 = await first(cloud, reader)
    revision = cloud.revisions[v1]
    before = {name: await cloud.agents[name].container_pid(revision) for name in NAMES}
    more = [*NAMES, *(f"{location}-2" for location in LOCATIONS)]
    for name in more[len(NAMES) :]:
        await cloud.add_agent(name.split("-")[0], name)
    for names in (more, NAMES):
        reader.during = f"scaled to {len(names)}"
        scaled = await cloud.add("v1", names)
        await cloud.target(scaled)
        await cloud.until(scaled, pb.CURRENT_STATE_ACTIVE)
        assert cloud.revisions[scaled] == revision
    await eventually(lambda: _is_offline(cloud, more[len(NAMES) :]), 60.0, "those that are named no more are off")
    assert {name: await cloud.agents[name].container_pid(revision) for name in NAMES} == before
    assert_held(reader)


async def _is_offline(cloud: Cloud, names: list[str]) -> bool:
    found = [(await cloud.locations[name.split("-")[0]].client.get(name)).instance for name in names]
    return not any(one.status.ready.status == CONDITION_STATUS_TRUE for one in found)


async def test_nanny_killed_in_every_phase_is_succeeded_and_each_order_takes_effect_once(
    scene: tuple[Cloud, Reader],
) -> None:
    """A location that does not answer holds each phase open; the roll-out is struck between two batches."""
    cloud, reader = scene
    v1 = await first(cloud, reader)
    await cloud.start_nanny()
    v2 = await cloud.add("v2", NAMES)
    for order, phase, end in (
        (pb.TARGET_CREATED, pb.CURRENT_STATE_GENERATING, pb.CURRENT_STATE_CREATED),
        (pb.TARGET_PREPARED, pb.CURRENT_STATE_PREPARING, pb.CURRENT_STATE_PREPARED),
        (pb.TARGET_ACTIVE, pb.CURRENT_STATE_ACTIVATING, pb.CURRENT_STATE_ACTIVE),
        (None, pb.CURRENT_STATE_DEACTIVATING, pb.CURRENT_STATE_PREPARED),
        (pb.TARGET_CREATED, pb.CURRENT_STATE_REMOVING, pb.CURRENT_STATE_CREATED),
        (pb.TARGET_DESTROYED, pb.CURRENT_STATE_DESTROYING, pb.CURRENT_STATE_UNSPECIFIED),
    ):
        reader.during = f"killed in {pb.CurrentState.Name(phase)}"
        if order is None:
            reader.floor = 0  # the order is to switch off
        if phase != pb.CURRENT_STATE_ACTIVATING:
            cloud.locations["vla"].pause()
        try:
            await (
                cloud.target(v2, order, fill=phase == pb.CURRENT_STATE_GENERATING) if order else cloud.stop_service()
            )
            await cloud.until(v2, phase)
            if phase == pb.CURRENT_STATE_ACTIVATING:
                await cloud.batches(v2, 2)
            await cloud.kill_acting()
        finally:
            cloud.locations["vla"].resume()
        await cloud.until(v2, end, timeout_s=90.0)
    await cloud.until(v1, pb.CURRENT_STATE_PREPARED)
    history = (await cloud.call("ListHistory", pb.ListHistoryRequest(service_id="web"))).entry
    assert [entry.what for entry in reversed(history) if entry.what.startswith(("target ", "stopped"))] == [
        "target ACTIVE",
        "target CREATED with the fill flag",
        "target PREPARED",
        "target ACTIVE",
        "stopped",
        "target CREATED",
        "target DESTROYED",
    ]
    assert_held(reader)


async def test_a_replica_of_hq_killed_in_the_middle_of_a_roll_out_can_only_delay_it(
    scene: tuple[Cloud, Reader],
) -> None:
    cloud, reader = scene
    await first(cloud, reader)
    reader.during = "a replica of HQ killed"
    v2 = await cloud.add("v2", NAMES)
    await cloud.target(v2)
    await cloud.batches(v2, 1)
    for replica in cloud.locations[LOCATIONS[0]].replicas:
        await replica.kill()
        await cloud.batches(v2, 2)
        await replica.start()
    await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=90.0)
    assert_held(reader)


async def test_a_roll_out_finishes_the_other_locations_and_waits_for_one_that_is_away(
    scene: tuple[Cloud, Reader],
) -> None:
    cloud, reader = scene
    await first(cloud, reader)
    reader.during = "a location away"
    v2 = await cloud.add("v2", NAMES)
    cloud.locations["vla"].pause()
    try:
        await cloud.target(v2)

        await eventually(lambda: others_are_done(cloud, v2), 90.0, "the others are done, and vla is waited for")
    finally:
        cloud.locations["vla"].resume()
    await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=90.0)
    assert_held(reader)


@pytest.mark.parametrize("with_cms", [False, True])
async def test_a_location_that_stays_away_is_left_out_by_an_order_and_switched_when_it_is_back(
    tmp_path: Path, etcd: SharedEtcd, *, with_cms: bool
) -> None:
    """Also with a CMS it costs nothing: else its instances, which do not answer, would use up the budget of all."""
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 2, with_cms=with_cms) as (cloud, reader):
        await cloud.create(maxUnavailable="1", minReadyS=1, progressDeadlineS=120)
        await first(cloud, reader)
        reader.during = "a location left out"
        v2 = await cloud.add("v2", NAMES)
        cloud.locations["vla"].pause()
        try:
            await cloud.target(v2)
            waits = waits_for_the_cms if with_cms else others_are_done
            await eventually(lambda: waits(cloud, v2), 90.0, "vla is waited for")
            await cloud.leave_out("vla")
            await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=120.0)
        finally:
            cloud.locations["vla"].resume()
        await cloud.leave_out()

        async def is_brought() -> bool:
            instances = [(await cloud.locations["vla"].client.get(name)).instance for name in NAMES if "vla" in name]
            return (
                all(target_of(one, cloud.revisions[v2]) == READY for one in instances)
                and not (await cloud.service()).drift
            )

        await eventually(is_brought, 90.0, "vla is brought to what the others run")
        assert_held(reader)


async def others_are_done(cloud: Cloud, snapshot: str) -> bool:
    """The roll-out has switched all of them but those in vla, which it says it waits for."""
    [action] = [one.action for one in (await cloud.service()).snapshot if one.snapshot_id == snapshot]
    done = {one.location for one in action.location if one.total and one.done == one.total}
    return action.action == "activate" and done == set(LOCATIONS) - {"vla"} and "vla" in action.message


async def waits_for_the_cms(cloud: Cloud, snapshot: str) -> bool:
    """The budget counts on what does not answer; what to do about it is said."""
    [action] = [one.action for one in (await cloud.service()).snapshot if one.snapshot_id == snapshot]
    hint = "to continue without it: nanny service leave-out web vla"
    return "waiting for the CMS to approve" in action.message and action.message.endswith(hint)


async def test_what_somebody_else_changes_is_shown_as_drift_and_brought_back(scene: tuple[Cloud, Reader]) -> None:
    cloud, reader = scene
    v1 = await first(cloud, reader)
    client = cloud.locations["sas"].client
    instance = (await client.get("sas-0")).instance
    instance.spec.revision[0].target = INSTALLED
    await client.apply([instance])

    async def told() -> bool:
        return any(v1 in entry for entry in (await cloud.service()).drift)

    async def brought_back() -> bool:
        now = (await client.get("sas-0")).instance
        return target_of(now, cloud.revisions[v1]) == READY and not (await cloud.service()).drift

    await eventually(told, 30.0, "the drift is shown")
    await eventually(brought_back, 60.0, "it is brought back")


async def test_reboots_by_the_cms_in_the_middle_of_a_roll_out_share_its_floor(tmp_path: Path, etcd: SharedEtcd) -> None:
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 2, with_cms=True) as (cloud, reader):
        await cloud.create(maxUnavailable="1", minReadyS=1, progressDeadlineS=60)
        await first(cloud, reader)
        reader.during = "roll-out and reboots"
        v2 = await cloud.add("v2", NAMES)
        await cloud.target(v2)
        reboots = asyncio.gather(*(cloud.reboot(f"{location}-1") for location in LOCATIONS))
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=150.0)
        await asyncio.wait_for(reboots, 60.0)
        assert_held(reader)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("with_cms", [False, True])
async def test_a_revision_that_crashes_after_each_start_stops_at_its_first_batch_beside_a_dead_host(
    tmp_path: Path, etcd: SharedEtcd, *, with_cms: bool
) -> None:
    """Of six hosts one is dead: that fails neither the roll-out nor the way back, and does not use up the budget."""
    flags = ("--liveness-timeout", "8s")
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 2, *flags, with_cms=with_cms) as (cloud, reader):
        await cloud.create(maxUnavailable="1", minReadyS=1, soakS=12, progressDeadlineS=60, rollBack=True)
        v1 = await first(cloud, reader)
        reader.floor = len(NAMES) - 3  # of those: one away, one tolerated failure, and the dead one
        reader.during = "beside a dead host"
        await cloud.agents["vla-1"].kill()
        for pid in cloud.agents["vla-1"].processes():
            os.kill(pid, signal.SIGKILL)
        v2 = await cloud.add("v2", NAMES)
        await cloud.target(v2)
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)
        reader.during = "a crashing revision"
        bad = await cloud.add("bad", NAMES, "sleep 4; exit 1")
        await cloud.target(bad)
        await cloud.until(bad, pb.CURRENT_STATE_ACTIVATING)
        switched: set[str] = set()

        async def is_rolled_back() -> bool:
            for location in cloud.locations.values():
                where = hq_pb.InstanceFilter(service_id=["web"])
                async for page in location.client.find(where):
                    switched.update(
                        one.meta.id for one in page.instances if target_of(one, cloud.revisions[bad]) == READY
                    )
            orders = {one.snapshot_id: one.order for one in (await cloud.service()).snapshot}
            return orders[bad].outcome == pb.ORDER_OUTCOME_ROLLED_BACK

        await eventually(is_rolled_back, 120.0, "it is caught and rolled back")
        assert len(switched) == 1, switched
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE)
        await cloud.target(v1)
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        assert_held(reader)
