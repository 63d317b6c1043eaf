"""A spoiled record of secret descriptors affects only its own instance, and is named."""

from __future__ import annotations

import pytest

from hq import keys as k
from hq.registry.registry import Registry
from hqpb.v1 import service_pb2 as pb
from serving.errors import StoreUnavailable
from store.port import Write
from tests.support.in_process_replica import running
from tests.support.sample_instances import instance
from tests.support.writes import ANY, create, soon

SECRETS = k.HqKeys().secrets("a")


async def spoil(registry: Registry) -> None:
    await create(registry, instance("a"))
    await registry.replica.store.commit((), [Write((), ((SECRETS, b"\xff\xff"),))], 1)
    await registry.replica.fence.wait_for_fence()


async def test_a_spoiled_record_does_not_stop_the_other_items_of_a_batch() -> None:
    async with running() as registry:
        await spoil(registry)
        items = [instance("a", text="new"), instance("b")]
        spoiled, good = await registry.apply.apply(items, "", soon(), validate_only=False)
        assert isinstance(spoiled.error, StoreUnavailable)
        assert good.outcome == pb.APPLY_OUTCOME_CREATED


async def test_the_agent_is_told_to_retry_and_an_operator_where_to_look() -> None:
    async with running() as registry:
        await spoil(registry)
        with pytest.raises(StoreUnavailable, match="hqctl quarantine"):
            await registry.revisions.get("a", "", "node-1")
        assert [record.key for record in registry.admin.quarantine()] == ["secrets/a"]


async def test_an_instance_with_a_spoiled_record_can_be_deleted_completely() -> None:
    async with running() as registry:
        await spoil(registry)
        await registry.writes.delete("a", ANY, soon())
        assert (await registry.replica.store.get(SECRETS))[0] is None
        assert registry.admin.quarantine() == []
