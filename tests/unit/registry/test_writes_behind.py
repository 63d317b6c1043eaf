"""Writes at a replica that is behind: no answer is given from outdated memory."""

from __future__ import annotations

import asyncio

from hqpb.v1 import instance_pb2 as model
from tests.support.sample_instances import instance
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time
from tests.support.writes import ANY, create, shown, soon, update


@in_virtual_time
async def test_a_replica_that_is_behind_never_answers_unchanged_from_memory() -> None:
    """Another replica acknowledged a change: applying the state before it is a change again, not "unchanged"."""
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        await create(here.registry, instance("a", text="1"))
        await there.registry.replica.fence.wait_for_fence()
        here.link.hold_watch()
        await update(there.registry, instance("a", text="2"))
        again = asyncio.ensure_future(update(here.registry, instance("a", text="1")))
        await asyncio.sleep(1)
        assert not again.done()
        here.link.release_watch()
        assert (await again).meta.annotations["text"] == "1"
        await there.registry.replica.fence.wait_for_fence()
        assert shown(there.registry, "a").meta.annotations["text"] == "1"


@in_virtual_time
async def test_a_replica_that_is_behind_creates_what_was_deleted_elsewhere() -> None:
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        first = await create(here.registry, instance("a"))
        await there.registry.replica.fence.wait_for_fence()
        here.link.hold_watch()
        await there.registry.writes.delete("a", ANY, soon())
        creating = asyncio.ensure_future(create(here.registry, instance("a")))
        await asyncio.sleep(1)
        here.link.release_watch()
        assert (await creating).meta.uid != first.meta.uid


@in_virtual_time
async def test_a_replica_that_is_behind_deletes_a_revision_that_it_has_not_seen_yet() -> None:
    async with Simulation() as simulation:
        here, there = await simulation.start_replica(), await simulation.start_replica()
        await create(here.registry, instance("a"))
        await there.registry.replica.fence.wait_for_fence()
        here.link.hold_watch()
        new = model.InstanceRevision(id="r9")
        await there.registry.writes.put_revision("a", new, ANY, soon(), clear_secrets=False, validate_only=False)
        deleting = asyncio.ensure_future(here.registry.writes.delete_revision("a", "r9", ANY, soon()))
        await asyncio.sleep(1)
        here.link.release_watch()
        assert [revision.id for revision in (await deleting).spec().revision] == ["r1"]
