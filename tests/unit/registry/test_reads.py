"""Reads over a replica: how fresh an answer is, what it says of that, and what may be demanded."""

from __future__ import annotations

import asyncio

import pytest

from hq.errors import BehindVersion, EpochChanged
from hq.memory.query import Query
from hqpb.v1 import service_pb2 as pb
from serving.errors import NotFound, NotLoaded
from tests.support.stepped_replica import PLAIN, SteppedReplica, loaded
from tests.support.store_histories import EPOCH, World, spec_of

ALL = pb.InstanceFilter()


async def test_a_read_waits_for_its_version() -> None:
    world = World()
    still = loaded(world)
    world.uids["a"] = 1
    batch = world.change({world.keys.spec("a"): spec_of(world, "a", "s", "n", {}, 1)})
    reading = asyncio.create_task(still.find(ALL, read=pb.ReadOptions(min_version=batch.revision, epoch=EPOCH)))
    await asyncio.sleep(0)
    assert not reading.done()
    still.apply(batch)
    answer = await reading
    assert [instance.meta.id for instance in answer.instances] == ["a"]
    assert answer.sources[0].version >= batch.revision


async def test_a_read_of_a_version_that_does_not_come_fails_with_a_retry_delay() -> None:
    still = loaded(World())
    with pytest.raises(BehindVersion) as told:
        await still.reads.find(Query(ALL), 0, "", pb.ReadOptions(min_version=999), still.clock.now())
    assert told.value.retry_delay_s > 0


async def test_a_read_of_another_epoch_starts_over() -> None:
    with pytest.raises(EpochChanged):
        await loaded(World()).find(ALL, read=pb.ReadOptions(min_version=1, epoch="another"))


async def test_the_demanded_version_is_checked_again_after_a_fence() -> None:
    """The fence for a missing instance takes time, in which the store may have been restored."""
    world = World()
    still = loaded(world)
    world.uids["a"] = 1
    world.change({world.keys.spec("a"): spec_of(world, "a", "s", "n", {}, 1)})

    async def passed() -> int:
        still.list(world.records(), world.version)
        still.replica.cache.epoch = still.replica.epoch.current = "another"
        return 0

    still.replica.fence.wait_for_fence = passed  # type: ignore[method-assign]
    with pytest.raises(EpochChanged):
        await still.reads.get("a", pb.ReadOptions(min_version=1, epoch=EPOCH), None)


async def test_a_replica_about_to_read_a_new_history_answers_only_for_the_old_one() -> None:
    still = loaded(World())
    still.replica.epoch.current = "the-next"
    assert (await still.find(ALL)).sources[0].epoch == EPOCH
    with pytest.raises(NotLoaded):
        await still.find(ALL, read=pb.ReadOptions(min_version=1, epoch="the-next"))
    async for message in still.watch(ALL):
        if message.resume_token:
            break
    resumed = still.watch(ALL, message.resume_token)
    assert (await anext(resumed)).kind == pb.WATCH_KIND_SYNCED
    await resumed.aclose()


async def test_a_strong_read_sees_what_a_fence_brings() -> None:
    world = World()
    still = loaded(world)
    world.uids["a"] = 1
    still.held_back.append(world.change({world.keys.spec("a"): spec_of(world, "a", "s", "n", {}, 1)}))
    assert not (await still.find(ALL)).instances
    strong = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
    assert len((await still.find(ALL, read=strong)).instances) == 1


async def test_not_found_is_answered_only_after_a_fence() -> None:
    world = World()
    still = loaded(world)
    world.uids["a"] = 1
    still.held_back.append(world.change({world.keys.spec("a"): spec_of(world, "a", "s", "n", {}, 1)}))
    entry, source = await still.reads.get("a", PLAIN, None)
    assert entry.traits.id == "a"
    assert source.version == world.version
    for absent in ("a-1", "b", "A"):
        with pytest.raises(NotFound):
            await still.reads.get(absent, PLAIN, None)


async def test_reads_are_refused_before_the_store_is_loaded() -> None:
    still = SteppedReplica()
    with pytest.raises(NotLoaded):
        await still.find(ALL)
    with pytest.raises(NotLoaded):
        await anext(still.watch(ALL))


async def test_an_answer_has_its_own_version_however_soon_it_follows_another() -> None:
    world = World()
    still = loaded(world)
    world.uids["a"] = 1
    for _ in range(3):
        still.apply(world.change({world.keys.spec("a"): spec_of(world, "a", "s", "n", {}, 1)}))
        answer = await still.find(ALL)
        assert answer.sources[0].version == world.version == answer.instances[0].meta.version


async def test_an_answer_bounds_its_staleness_and_says_if_that_is_too_much() -> None:
    still = loaded(World())
    assert (await still.find(ALL)).sources[0].stale
    still.replica.fence.proven_at = still.clock.now()
    still.clock.advance(1.0)
    source = (await still.find(ALL)).sources[0]
    assert not source.stale
    assert 1_000 <= source.staleness.ToMilliseconds() <= 1_010
    still.clock.advance(0.004)
    assert (await still.find(ALL)).sources[0].staleness.ToMilliseconds() >= 1_004
    still.clock.advance(8.0)
    still.replica.fence.error = "the store is away"
    source = (await still.find(ALL)).sources[0]
    assert (source.stale, source.error) == (True, "the store is away")
