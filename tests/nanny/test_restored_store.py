"""A restored store is known by the stamps that its own orders left in HQ, and by nothing that others write there."""

from __future__ import annotations

import pytest

from nanny.records import kinds
from nanny.snapshots.wanted import OWNER, stamp_of
from tests.nanny.virtual_cloud import SERVICE, VirtualCloud, virtual_cloud
from tests.support.virtual_time import in_virtual_time


async def annotate(cloud: VirtualCloud, text: str) -> None:
    """Write the annotation of web-0 by hand, and give Nanny time to look."""
    instance = (await cloud.hq.get("web-0")).instance
    instance.meta.annotations[OWNER] = text
    await cloud.hq.apply([instance])
    await cloud.sleep(120.0)


@pytest.mark.parametrize("text", ["999", "999-0123456789ab", stamp_of("mail", 1, 999), "many"])
@in_virtual_time
async def test_a_hand_made_annotation_never_looks_like_a_restored_store(text: str) -> None:
    async with virtual_cloud(2) as cloud:
        await cloud.create()
        await cloud.activate(await cloud.add("v1"))
        await annotate(cloud, text)
        assert not (await cloud.service()).HasField("paused")
        await cloud.activate(await cloud.add("v2"))


@in_virtual_time
async def test_a_later_order_of_this_service_in_hq_pauses_it_and_says_why() -> None:
    async with virtual_cloud(2) as cloud:
        await cloud.create()
        await cloud.activate(await cloud.add("v1"))
        record = cloud.server.controller.records(kinds.SERVICE)[SERVICE]
        await annotate(cloud, stamp_of(SERVICE, record.created.time.ToMilliseconds(), record.generation + 5))
        assert "store was restored to an older state" in (await cloud.service()).paused.comment
