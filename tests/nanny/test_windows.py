"""A roll-out meets the calendar of the CMS: real processes, and a window that opens and ends by the clock."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nannypb.v1 import service_pb2 as pb
from tests.cms.cloud import http
from tests.nanny.cloud import LOCATIONS, Cloud, cloud_of
from tests.support.etcd import SharedEtcd
from tests.support.sample_instances import eventually

NAMES = [f"{location}-0" for location in LOCATIONS]
BATCH_S = 40  # two of three do not fit into the minute that the window is open


async def set_window(cloud: Cloud, begin: datetime, end: datetime, overrun: str) -> None:
    assert cloud.cms is not None
    hours = [{"begin": f"{begin:%H:%M}", "end": f"{end:%H:%M}"}]
    windows = {"name": "nights", "service": "web", "hours": hours, "overrun": overrun}
    url = f"http://{cloud.cms.http}/cms.v1.CmsService/PutWindows"
    reply = await asyncio.to_thread(http, "POST", url, json.dumps({"windows": windows}).encode())
    assert reply.status == 200, reply


async def snapshot_of(cloud: Cloud, snapshot: str) -> Any:
    return next(one for one in (await cloud.service()).snapshot if one.snapshot_id == snapshot)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_a_roll_out_waits_for_its_window_begins_when_it_opens_and_outlasts_it_by_the_overrun(
    tmp_path: Path, etcd: SharedEtcd
) -> None:
    async with cloud_of(tmp_path, etcd.endpoint, etcd.prefix, 1, with_cms=True) as (cloud, _):
        await cloud.create(maxUnavailable="1", minReadyS=1, progressDeadlineS=400)
        v1 = await cloud.add("v1", NAMES)
        await cloud.target(v1)
        await cloud.until(v1, pb.CURRENT_STATE_ACTIVE)
        info = (await cloud.service()).info
        info.rollout.min_ready_s = BATCH_S
        await cloud.call("UpdateService", pb.UpdateServiceRequest(service_id="web", info=info))
        opens = (datetime.now(UTC) + timedelta(seconds=110)).replace(second=0, microsecond=0)
        await set_window(cloud, opens, opens + timedelta(minutes=1), "1s")
        v2 = await cloud.add("v2", NAMES)
        await cloud.target(v2)

        async def waits() -> bool:
            return "window nights is closed; work may begin on" in str(await snapshot_of(cloud, v2))

        async def done(count: int) -> bool:
            return bool((await snapshot_of(cloud, v2)).action.batches_done >= count)

        await eventually(waits, 30.0, "it waits, and says for what")
        assert datetime.now(UTC) < opens
        assert f"on {opens:%a %Y-%m-%d at %H:%M} UTC" in str(await snapshot_of(cloud, v2))
        await eventually(lambda: done(1), 240.0, "its first batch, once the window is open")
        assert datetime.now(UTC) > opens + timedelta(seconds=BATCH_S)
        await eventually(waits, 120.0, "it meets the end of its window")
        assert datetime.now(UTC) > opens + timedelta(minutes=1)
        assert not await done(len(NAMES))
        await set_window(cloud, opens, opens + timedelta(minutes=1), "1h")
        await cloud.until(v2, pb.CURRENT_STATE_ACTIVE, timeout_s=240.0)
