"""Watches of the port `Store`: in memory and on etcd."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from store.port import Compacted, Disconnected, KeyChange, Write
from tests.support.stores import Place, batches, end_of


async def test_a_watch_replays_from_the_revision_behind_its_start(place: Place) -> None:
    first = await place.put("a", b"1")
    second = await place.put("a", b"2")
    third = await place.delete("a")
    expected = [KeyChange(place.key("a"), b"2", first, second), KeyChange(place.key("a"), None, 0, third)]
    assert await place.changes(first, third) == expected


async def test_a_watch_tells_what_happens_after_it_was_opened(place: Place) -> None:
    head = await place.head()
    async with place.watch(head) as stream:
        at = await place.put("a", b"1")
        assert [b.changes for b in await batches(stream, at)] == [[KeyChange(place.key("a"), b"1", at, at)]]


async def test_a_watch_sees_nothing_outside_its_range(place: Place) -> None:
    head = await place.head()
    outside = Place(place.store, place.start[:-1] + b"0")
    await outside.put("a")
    at = await place.put("a")
    await outside.put("b")
    assert [change.key for change in await place.changes(head, at)] == [place.key("a")]


async def test_a_watch_is_complete_and_ordered_and_tells_each_revision_once(place: Place) -> None:
    head = await place.head()
    async with place.watch(head) as stream:
        reading = asyncio.create_task(batches(stream, head + 200))
        for n in range(200):
            await place.put(f"{n % 7}", b"%d" % n)
        read = await reading
    assert all(one.revision < other.revision for one, other in pairwise(read))
    assert [c.revision for b in read for c in b.changes] == list(range(head + 1, head + 201))
    assert all(before.revision < c.revision <= b.revision for before, b in pairwise(read) for c in b.changes)


async def test_a_batch_holds_whole_revisions(place: Place) -> None:
    head = await place.head()
    written = {}
    for n in range(30):
        commit = await place.commit(*(Write((), ((place.key(f"{k}"), b"%d" % n),)) for k in range(5)))
        written[commit.revision] = 5
    async with place.watch(head) as stream:
        for batch in await batches(stream, max(written)):
            for revision in {c.revision for c in batch.changes}:
                assert sum(c.revision == revision for c in batch.changes) == written.pop(revision)
    assert written == {}


async def test_the_deletion_of_a_key_that_is_not_there_is_no_event(place: Place) -> None:
    head = await place.head()
    await place.delete("none")
    at = await place.put("a")
    assert [c.key for c in await place.changes(head, at)] == [place.key("a")]


async def test_a_key_deleted_and_created_anew_tells_its_creation(place: Place) -> None:
    await place.put("a")
    gone = await place.delete("a")
    again = await place.put("a", b"2")
    assert await place.changes(gone, again) == [KeyChange(place.key("a"), b"2", again, again)]


async def test_a_watch_from_the_future_tells_nothing_of_the_revisions_before(place: Place) -> None:
    head = await place.head()
    async with place.watch(head + 2) as stream:
        at = [await place.put("a") for _ in range(3)][-1]
        assert [c.revision for b in await batches(stream, at) for c in b.changes] == [head + 3]


async def test_a_watch_from_compacted_history_ends_with_the_first_revision_that_is_left(place: Place) -> None:
    first = await place.put("a")
    await place.put("a")
    head = await place.put("a")
    await place.store.compact(head)
    with pytest.raises(Compacted) as gone:
        async with place.watch(first) as stream:
            await end_of(stream)
    assert gone.value.revision == head


async def test_a_watch_after_the_compacted_revision_goes_on(place: Place) -> None:
    compacted = await place.put("a")
    head = await place.put("a")
    await place.store.compact(compacted)
    assert [c.revision for c in await place.changes(compacted, head)] == [head]


async def test_a_deletion_at_the_compacted_revision_is_never_missed(place: Place) -> None:
    known = await place.put("a")
    deleted = await place.delete("a")
    head = await place.put("b")
    await place.store.compact(deleted)
    with pytest.raises(Compacted):
        async with place.watch(known) as stream:
            await end_of(stream)
    assert [c.revision for c in await place.changes(deleted, head)] == [head]


async def test_a_deletion_after_the_compacted_revision_is_told(place: Place) -> None:
    compacted = await place.put("a")
    deleted = await place.delete("a")
    await place.put("b")
    await place.store.compact(compacted)
    assert (await place.changes(compacted, deleted))[0] == KeyChange(place.key("a"), None, 0, deleted)


async def test_an_open_watch_outlives_a_compaction(place: Place) -> None:
    head = await place.head()
    async with place.watch(head) as stream:
        first = await place.put("a")
        await batches(stream, first)
        last = await place.put("a")
        await place.store.compact(last)
        at = await place.put("a")
        assert [c.revision for b in await batches(stream, at) for c in b.changes] == [last, at]


async def test_two_watches_tell_the_same(place: Place) -> None:
    head = await place.head()
    async with place.watch(head) as one, place.watch(head) as other:
        at = [await place.put(f"{n}") for n in range(10)][-1]
        told = [[c for b in await batches(stream, at) for c in b.changes] for stream in (one, other)]
    assert told[0] == told[1]
    assert len(told[0]) == 10


async def test_closing_the_store_ends_its_watches(place: Place) -> None:
    async with place.watch(await place.head()) as stream:
        ending = asyncio.create_task(end_of(stream))
        await asyncio.sleep(0)
        await place.store.close()
        with pytest.raises(Disconnected):
            await ending
    with pytest.raises(Disconnected):
        async with place.watch(1):
            pass


async def test_a_watch_can_be_abandoned_while_it_waits(place: Place) -> None:
    async with place.watch(await place.head()) as stream:
        waiting = asyncio.create_task(end_of(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await place.put("a")  # the store goes on
