"""Calls under way while the store gets a new epoch or a backup is restored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hq import keys as k
from hq.errors import EpochChanged
from hq.registry.preconditions import Precondition
from hq.registry.registry import Registry
from hq.replica import Replica
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotLoaded
from store.memory import MemoryStore
from store.port import Write
from tests.support.sample_instances import instance
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time
from tests.support.writes import ANY, create, shown, soon, update

NAMES = k.HqKeys()
Call = Callable[[Registry], Awaitable[object]]


def epoch_after(replica: Replica) -> tuple[bytes, bytes]:
    """The record of a new epoch."""
    new = storage_pb2.EpochRecord(epoch="new", predecessor=[replica.epoch.current])
    return NAMES.epoch, new.SerializeToString()


async def begin_to_restore(store: MemoryStore, replica: Replica) -> None:
    """Begin like `hq restore --replace`; instance "a" is gone until it is put back."""
    await store.commit((), [Write((), ((NAMES.restore, b"mark"), epoch_after(replica)))], 1)
    await store.commit((), [Write((), (), (NAMES.spec("a"), NAMES.status("a")))], 1)


async def noticed(replica: Replica) -> None:
    """Return after the follower saw the new epoch and before it forgets everything."""
    while replica.follower.following.is_set():
        await asyncio.sleep(0)
    assert replica.loading.loaded.is_set()


def report_of(instance_id: str) -> pb.ReportStatusRequest:
    status = model.RevisionStatus(id="r1", incarnation=1, sequence=1)
    return pb.ReportStatusRequest(instance_id=instance_id, node="node-1", uid=1, revision=status)


CALLS: dict[str, Call] = {
    "update": lambda registry: update(registry, instance("b")),
    "delete": lambda registry: registry.writes.delete("b", ANY, soon()),
    "begin to report": lambda registry: registry.reports.begin("b", "r1", "node-1", soon()),
    "begin to report another revision": lambda registry: registry.reports.begin("a", "r2", "node-1", soon()),
    "report": lambda registry: registry.reports.report(report_of("b"), soon()),
    "fetch": lambda registry: registry.revisions.get("b", "", "node-1"),
    "fetch another revision": lambda registry: registry.revisions.get("a", "r2", "node-1"),
    "get": lambda registry: registry.reads.get("b", pb.ReadOptions(), None),
    "resume a node": lambda registry: registry.admin.resume("node-1", soon()),
}


@pytest.mark.parametrize("what", CALLS)
def test_nothing_is_reported_missing_while_a_backup_is_half_put_back(what: str) -> None:
    @in_virtual_time
    async def play() -> None:
        async with Simulation() as simulation:
            registry = (await simulation.start_replica()).registry
            await create(registry, instance("a"))
            await asyncio.sleep(10)
            await begin_to_restore(simulation.store, registry.replica)
            await noticed(registry.replica)
            with pytest.raises(NotLoaded, match="restore"):
                await CALLS[what](registry)

    play()


@in_virtual_time
async def test_nothing_is_deleted_while_a_backup_is_being_put_back() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(registry, instance("a"))
        put = Write((), ((NAMES.restore, b"mark"), epoch_after(registry.replica)))
        await simulation.store.commit((), [put], 1)
        await asyncio.sleep(5)
        with pytest.raises(NotLoaded, match="restore"):
            await registry.writes.delete("a", ANY, soon())
        assert (await simulation.store.get(NAMES.spec("a")))[0] is not None


@in_virtual_time
async def test_a_version_of_one_history_is_never_taken_for_one_of_the_next() -> None:
    """Before the replica sees a version that its caller has read, the store is restored and grows to it."""
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        await create(registry, instance("a", text="before"))
        await asyncio.sleep(10)
        replica = registry.replica
        spec, _ = await simulation.store.get(NAMES.spec("a"))
        assert spec is not None
        commit = await simulation.store.commit(
            (), [Write((), (epoch_after(replica), (NAMES.spec("a"), spec.value)))], 1
        )
        demanded = Precondition(commit.revision, replica.epoch.current)
        await noticed(replica)
        with pytest.raises((EpochChanged, NotLoaded)):
            await update(registry, instance("a", text="after"), demanded=demanded)
        await replica.loading.loaded.wait()
        assert shown(registry, "a").meta.annotations["text"] == "before"


@in_virtual_time
async def test_a_replica_whose_fence_fails_during_loading_ends_with_the_error() -> None:
    """It must not ask the dead fence for ever, nor block the loop."""
    simulation = Simulation()
    running = await simulation.start_replica()

    async def die() -> None:
        raise RuntimeError("the fence died")

    running.registry.replica.fence._serve = die  # type: ignore[method-assign]
    running.registry.replica.events.reset()
    with pytest.raises(ExceptionGroup):
        await running.task
