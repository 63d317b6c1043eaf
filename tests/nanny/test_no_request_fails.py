"""Clients that follow discovery and keep their connections open lose no request to a roll-out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nannypb.v1 import service_pb2 as pb
from tests.nanny.callers import Callers
from tests.nanny.cloud import LOCATIONS, SERVICE, cloud_of
from tests.support.etcd import SharedEtcd
from tests.support.sample_instances import eventually

ROLL_OUTS = 10
REQUESTS = 100_000
NAMES = [f"{location}-{number}" for location in LOCATIONS for number in range(2)]


@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_none_of_100_000_requests_fails_during_ten_roll_outs(tmp_path: Path, etcd: SharedEtcd) -> None:
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 2) as (cloud, reader):
        await cloud.create(maxUnavailable="2", minReadyS=1, progressDeadlineS=120)
        both = [await cloud.add_server(title, NAMES) for title in ("v1", "v2")]
        await cloud.target(both[0])
        await cloud.until(both[0], pb.CURRENT_STATE_ACTIVE)
        await reader.until_seen(len(NAMES))
        reader.floor = len(NAMES) - 2
        assert cloud.gateway is not None
        callers = Callers(cloud.gateway.grpc, SERVICE, pause_s=0.005)
        calling = asyncio.create_task(callers.run())
        try:
            for number in range(1, ROLL_OUTS + 1):
                reader.during = f"roll-out {number}"
                await cloud.target(both[number % 2])
                await cloud.until(both[number % 2], pb.CURRENT_STATE_ACTIVE, timeout_s=120.0)
            while callers.answers.total() < REQUESTS:
                assert not calling.done()
                await asyncio.sleep(0.1)
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
        print(
            f"\n{callers.answers.total()} requests, {callers.connections} connections, {len(callers.failures)} failed"
        )
        assert not callers.failures, (len(callers.failures), callers.failures[:5])
        assert set(callers.answers) == {"v1", "v2"}
        assert not reader.below, reader.below[:5]


@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
@pytest.mark.parametrize("many", [9, pytest.param(60, marks=[pytest.mark.night, pytest.mark.timeout(1800)])])
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_scaling_up_and_down_under_load_restarts_nobody_and_loses_no_request(
    tmp_path: Path, etcd: SharedEtcd, many: int
) -> None:
    names = [f"{location}-{number}" for location in LOCATIONS for number in range(many // len(LOCATIONS))]
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 2) as (cloud, reader):
        for name in sorted(set(names) - set(NAMES)):
            await cloud.add_agent(name.split("-")[0], name)
        await cloud.create(maxUnavailable="2", minReadyS=1, progressDeadlineS=120)
        few = await cloud.add_server("v1", NAMES)
        await cloud.target(few)
        await cloud.until(few, pb.CURRENT_STATE_ACTIVE)
        await reader.until_seen(len(NAMES))
        before = {name: cloud.agents[name].processes() for name in NAMES}
        assert all(before.values())
        reader.floor = len(NAMES)
        assert cloud.gateway is not None
        callers = Callers(cloud.gateway.grpc, SERVICE, pause_s=0.005)
        calling = asyncio.create_task(callers.run())
        try:
            large = await cloud.add_server("v1", names)
            reader.during = "up"
            await cloud.target(large)
            await cloud.until(large, pb.CURRENT_STATE_ACTIVE, timeout_s=600.0)
            await reader.until_seen(len(names))
            reader.during = "down"
            await cloud.target(few)
            await cloud.until(few, pb.CURRENT_STATE_ACTIVE, timeout_s=600.0)
            await cloud.until(large, pb.CURRENT_STATE_PREPARED, timeout_s=600.0)
            assert not calling.done()
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
        print(f"\n{callers.answers.total()} requests, {len(callers.failures)} failed")
        assert not callers.failures, (len(callers.failures), callers.failures[:5])
        assert max(reader.seen) == len(names)
        assert callers.answers.total() > 100
        assert {name: cloud.agents[name].processes() for name in NAMES} == before
        assert not reader.below, reader.below[:5]


@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
@pytest.mark.long
@pytest.mark.timeout(900)
async def test_scaling_in_the_middle_of_a_roll_out_keeps_the_floor_and_loses_no_request(
    tmp_path: Path, etcd: SharedEtcd
) -> None:
    """Of the instances that every snapshot names, one is away at a time, whatever is ordered meanwhile."""
    many, few = [*NAMES, *(f"{location}-2" for location in LOCATIONS)], NAMES[:4]
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 3) as (cloud, reader):
        await cloud.create(maxUnavailable="1", minReadyS=1, progressDeadlineS=120)
        first = await cloud.add_server("v1", NAMES)
        await cloud.target(first)
        await cloud.until(first, pb.CURRENT_STATE_ACTIVE)
        await reader.until_seen(len(NAMES))
        snapshot, least = first, len(NAMES)
        assert cloud.gateway is not None
        callers = Callers(cloud.gateway.grpc, SERVICE, pause_s=0.005)
        calling = asyncio.create_task(callers.run())
        try:
            await eventually(lambda: callers.answers["v1"], what="the callers call")
            for names in (NAMES, many, few):
                least = min(least, len(names))
                reader.during, reader.floor = f"v2 on {len(names)}", least - 1
                snapshot = await cloud.add_server("v2", names)
                await cloud.target(snapshot)
                await cloud.batches(snapshot, 1)
            await cloud.until(snapshot, pb.CURRENT_STATE_ACTIVE, timeout_s=300.0)
            assert not calling.done()
        finally:
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
        print(f"\n{callers.answers.total()} requests, {len(callers.failures)} failed")
        assert not callers.failures, (len(callers.failures), callers.failures[:5])
        assert set(callers.answers) == {"v1", "v2"}
        assert not reader.below, reader.below[:5]
