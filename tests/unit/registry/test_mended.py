"""A replica whose memory differed from the store: what it shows afterwards, and what all watches get."""

from __future__ import annotations

import asyncio

from hq.keys import OPS, SECRETS
from hq.memory.query import Query
from hq.registry.registry import Registry
from hq.registry.watch_messages import EVENTS, RESYNC, SNAPSHOT, SYNCED, WatchMessage
from hq.replica import Replica
from hqpb.v1 import service_pb2 as pb
from store.port import Batch, KeyChange, Write
from tests.support.sample_instances import instance
from tests.support.simulation import Simulation
from tests.support.virtual_time import in_virtual_time

SOON_S = 150.0
ALL = Query(pb.InstanceFilter())


async def create(registry: Registry, name: str) -> None:
    now = asyncio.get_running_loop().time()
    await registry.writes.create(instance(name), "", now + 5, validate_only=False)


async def lose_deletion(simulation: Simulation, replica: Replica, name: str) -> None:
    """Delete the instance, and make the replica believe that it still exists."""
    key = replica.key_names.spec(name)
    entry = replica.cache.get(name)
    assert entry is not None
    await simulation.store.commit((), (Write((), deletes=(key,)),), 1.0)
    await asyncio.sleep(1)
    spec, _ = entry.stored_records()
    changed = KeyChange(key, spec.record.SerializeToString(), spec.created, spec.modified)
    replica.cache.apply(Batch(replica.cache.version, [changed]), collapsed=True)
    replica.follower.key_count += 1


class Reading:
    """A watch that is read."""

    def __init__(self, registry: Registry, token: str = "") -> None:
        self.messages: list[WatchMessage] = []
        self.stream = registry.watches.watch(ALL, token)
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self.stream:
            self.messages.append(message)

    def kinds(self) -> list[int]:
        return [message.kind for message in self.messages if message.kind in (SNAPSHOT, SYNCED, EVENTS, RESYNC)]

    def token(self) -> str:
        return next(message.token for message in reversed(self.messages) if message.token)

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.stream.aclose()


@in_virtual_time
async def test_an_instance_that_is_gone_disappears_and_open_watches_are_told_of_it() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        replica = registry.replica
        await create(registry, "a")
        await create(registry, "b")
        await lose_deletion(simulation, replica, "a")
        reading = Reading(registry)
        await asyncio.sleep(1)
        assert replica.cache.get("a") is not None, "the ghost is shown"
        await asyncio.sleep(SOON_S)
        assert replica.cache.get("a") is None
        assert replica.proof.mended == 1
        assert reading.kinds() == [SNAPSHOT, SYNCED, EVENTS], "told as an event, without starting over"
        await reading.close()


@in_virtual_time
async def test_a_watch_that_got_a_ghost_from_another_replica_starts_over() -> None:
    async with Simulation() as simulation:
        wrong = (await simulation.start_replica()).registry
        right = (await simulation.start_replica()).registry
        await create(right, "a")
        await asyncio.sleep(1)
        await lose_deletion(simulation, wrong.replica, "a")
        here = Reading(wrong)
        await asyncio.sleep(10)
        moved, at_home = Reading(right, here.token()), Reading(right)
        await asyncio.sleep(SOON_S)
        assert RESYNC in moved.kinds(), "it had the ghost, and this replica never did"
        assert RESYNC not in at_home.kinds()
        late = Reading(right, here.messages[1].token)
        await asyncio.sleep(1)
        assert RESYNC in late.kinds(), "a token from before the mend"
        for reading in (here, moved, at_home, late):
            await reading.close()


@in_virtual_time
async def test_a_mend_of_memory_changes_no_deadline() -> None:
    async with Simulation() as simulation:
        registry = (await simulation.start_replica()).registry
        replica = registry.replica
        await create(registry, "a")
        await simulation.add_agents(3, 2)
        quiet = simulation.agents[0]
        await asyncio.sleep(400)
        quiet.fall_silent()
        await asyncio.sleep(300)
        await lose_deletion(simulation, replica, "a")
        await asyncio.sleep(SOON_S)
        assert replica.proof.mended == 1
        await asyncio.sleep(310 - SOON_S + simulation.interval_s)
        assert simulation.expiries(quiet)
        assert not simulation.false_expiries()


@in_virtual_time
async def test_a_record_in_quarantine_is_compared_as_it_is_stored() -> None:
    """It is known, though refused, and so is no difference; later changes of it are noticed as of any record."""
    async with Simulation() as simulation:
        replica = (await simulation.start_replica()).registry.replica
        for name in ("a", "b", "c"):
            await create(Registry(replica, simulation.rng), name)
        names = replica.key_names
        broken = [
            names.spec("a"),
            names.status("b"),
            names.of(SECRETS, "c"),
            names.spec("unseen"),
            names.of(OPS, "guard"),
        ]
        for key in broken:
            await simulation.store.commit((), (Write((), ((key, b"\xff\xff"),)),), 1.0)
        await asyncio.sleep(SOON_S)
        assert len(replica.cache.quarantine) == len(broken)
        assert replica.proof.mended == 0
        assert replica.proof.compared_at is not None

        for key in broken:  # as if their ends had not been told
            kind, rest = names.name(key)
            was = next(one for one in replica.cache.quarantine.all() if (one.kind, one.rest) == (kind, rest))
            await simulation.store.commit((), (Write((), deletes=(key,)),), 1.0)
            await asyncio.sleep(1)
            change = KeyChange(key, b"\xff\xff", was.version, was.version)
            replica.events.apply(Batch(replica.cache.version, [change]), collapsed=True)
            replica.follower.key_count += 1
        assert len(replica.cache.quarantine) == len(broken)
        await asyncio.sleep(2 * SOON_S)
        assert replica.proof.mended == len(broken)
        assert not len(replica.cache.quarantine)
