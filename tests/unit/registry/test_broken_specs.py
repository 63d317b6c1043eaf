"""A spoiled spec record can be replaced by its deployer, who is told how."""

from __future__ import annotations

import pytest

from hq import keys as k
from hq.errors import AlreadyExists, VersionConflict
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotFound, NotLoaded
from store.port import Write
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.writes import create, shown, soon, update


async def spoil(registry: Registry, instance_id: str) -> None:
    await registry.replica.store.commit((), [Write((), ((k.HqKeys().spec(instance_id), b"\xff\xff"),))], 1)
    await registry.replica.fence.wait_for_fence()


async def test_applying_the_instance_as_shown_replaces_an_unreadable_record() -> None:
    async with running() as registry:
        before = await create(registry, instance("a"))
        await spoil(registry, "a")
        (applied,) = await registry.apply.apply([instance("a")], "", soon(), validate_only=False)
        assert (applied.error, applied.outcome) == (None, pb.APPLY_OUTCOME_UPDATED)
        assert registry.admin.quarantine() == []
        assert shown(registry, "a").meta.uid == before.meta.uid


async def test_an_update_with_the_shown_version_of_an_unreadable_record_says_to_leave_it_out() -> None:
    async with running() as registry:
        before = await create(registry, instance("a"))
        await spoil(registry, "a")
        with pytest.raises(VersionConflict, match=r"cannot be decoded .* write without a version"):
            await update(registry, instance("a", text="new"), None, Precondition(before.meta.version))


async def test_applying_over_an_unreadable_record_says_to_delete_it_first() -> None:
    async with running() as registry:
        await spoil(registry, "a")
        (refused,) = await registry.apply.apply([instance("a")], "", soon(), validate_only=False)
        assert isinstance(refused.error, AlreadyExists)
        assert "delete the instance first" in str(refused.error)


async def test_deleting_a_missing_revision_from_an_unreadable_record_is_not_found() -> None:
    async with running() as registry:
        await create(registry, instance("a"))
        await spoil(registry, "a")
        with pytest.raises(NotFound):
            await registry.writes.delete_revision("a", "r9", Precondition(), soon())
        assert len(registry.admin.quarantine()) == 1


async def test_the_quarantine_is_not_shown_before_the_store_is_read() -> None:
    async with running() as registry:
        await spoil(registry, "a")
        registry.replica.events.reset()
        with pytest.raises(NotLoaded):
            registry.admin.quarantine()
