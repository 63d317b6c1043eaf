"""Group commit: which writes share a transaction, and what each writer is told."""

from __future__ import annotations

import asyncio

from store.commit import Conflict, Guarded
from store.flight import QueueFull
from store.port import Compare, NoSpace, Rejected, Unavailable
from tests.support.faulty_store import Fate, faulty
from tests.support.store_parts import Parts, stored
from tests.support.virtual_time import in_virtual_time


@in_virtual_time
async def test_64_concurrent_writes_raise_the_revision_by_at_most_8() -> None:
    async with Parts(faulty()) as parts:
        _, before = await parts.store.get(b"x")
        versions = await asyncio.gather(*(parts.write(f"{n}") for n in range(64)))
        assert max(versions) <= before + 8


@in_virtual_time
async def test_writes_that_come_while_one_is_under_way_share_the_next_transaction() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.delay_s = 0.5
        first = asyncio.create_task(parts.write("first"))
        await asyncio.sleep(0.1)
        later = [asyncio.create_task(parts.write(f"{n}")) for n in range(64)]
        await asyncio.gather(first, *later)
        assert len({task.result() for task in later}) == 1


@in_virtual_time
async def test_a_write_is_answered_with_the_version_it_was_stored_at() -> None:
    async with Parts(faulty()) as parts:
        version = await parts.write("a")
        record = await stored(parts.store, parts.spec("a"))
        assert record is not None
        assert record.modified == version


@in_virtual_time
async def test_a_conflict_fails_its_own_writer_only() -> None:
    async with Parts(faulty()) as parts:
        at = await parts.write("a")
        bad, *good = await asyncio.gather(
            parts.write("a", parts.at("a", at - 1)),
            *(parts.write(f"{n}", parts.at(f"{n}", 0)) for n in range(9)),
            return_exceptions=True,
        )
        assert isinstance(bad, Conflict)
        assert bad.modified == {parts.spec("a"): at}
        assert len(set(good)) == 1


@in_virtual_time
async def test_of_two_writers_with_one_version_one_wins() -> None:
    async with Parts(faulty()) as parts:
        at = await parts.write("a")
        both = await asyncio.gather(
            parts.write("a", parts.at("a", at)), parts.write("a", parts.at("a", at)), return_exceptions=True
        )
        assert [type(answer) for answer in both] == [int, Conflict]


@in_virtual_time
async def test_writes_of_one_subject_keep_their_order() -> None:
    async with Parts(faulty()) as parts:
        writes = [parts.write("a" if n % 2 else f"{n}", text=b"%d" % n) for n in range(20)]
        versions = await asyncio.gather(*writes)
        assert sorted(versions[1::2]) == versions[1::2]
        record = await stored(parts.store, parts.spec("a"))
        assert record is not None
        assert record.value.endswith(b"19")


@in_virtual_time
async def test_a_write_that_the_store_rejects_fails_alone() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.poisonous = lambda write: any(b"poison" in value for _, value in write.puts)
        answers = await asyncio.gather(
            *(parts.write(f"{n}", text=b"poison" if n == 7 else b"") for n in range(20)), return_exceptions=True
        )
        assert isinstance(answers.pop(7), Rejected)
        assert all(isinstance(answer, int) for answer in answers)


@in_virtual_time
async def test_a_group_stays_within_the_limits_of_one_transaction() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await asyncio.gather(*(parts.write(f"{n}") for n in range(250)))
        await asyncio.gather(*(parts.write(f"{n}", text=b"x" * 200_000) for n in range(20)))
        for _, writes in store.sent:
            assert len(writes) <= 101
            assert sum(write.size_bytes for write in writes) < 1_200_000


@in_virtual_time
async def test_an_extra_guard_that_does_not_hold_fails_only_the_writers_that_gave_it() -> None:
    async with Parts(faulty()) as parts:
        holds = Compare(b"none", "modified", 0)
        answers = await asyncio.gather(
            parts.write("a"),
            parts.write("b", guards=(Compare(b"none", "modified", 1),)),
            parts.write("c", guards=(holds,)),
            parts.write("d", guards=(holds,)),
            parts.write("e"),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [int, Guarded, int, int, int]
        assert await parts.write("f") > 0


@in_virtual_time
async def test_each_failed_writer_gets_an_error_of_its_own() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.write("a")
        store.away = True
        errors = await asyncio.gather(parts.write("a"), parts.write("b"), return_exceptions=True)
        assert [type(error) for error in errors] == [Unavailable, Unavailable]
        assert errors[0] is not errors[1]


@in_virtual_time
async def test_a_full_store_refuses_puts_and_lets_deletions_through() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await asyncio.gather(parts.write("a"), parts.write("b"))
        store.full = True
        put, gone = await asyncio.gather(parts.write("c"), parts.delete("a"), return_exceptions=True)
        assert isinstance(put, NoSpace)
        assert isinstance(gone, int)
        assert await stored(store, parts.spec("a")) is None
        assert await parts.delete("b") > gone
        store.full = False
        assert await parts.write("c") > 0


@in_virtual_time
async def test_a_store_too_full_for_deletions_is_not_asked_again() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await asyncio.gather(parts.write("a"), parts.write("b"))
        store.plan(Fate.FULL, touching=parts.spec(""))
        answers = await asyncio.gather(parts.delete("a"), parts.delete("b"), return_exceptions=True)
        assert [type(answer) for answer in answers] == [NoSpace, NoSpace]
        assert await stored(store, parts.spec("a")) is not None


@in_virtual_time
async def test_too_many_waiting_writes_are_refused() -> None:
    store = faulty()
    async with Parts(store, queue_limit=10) as parts:
        await parts.write("a")
        store.delay_s = 5
        waiting = [asyncio.create_task(parts.write(f"{n}", timeout_s=60)) for n in range(40)]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert any(isinstance(answer, QueueFull) for answer in answers)
        assert sum(isinstance(answer, int) for answer in answers) >= 10
