"""Group commit: who shares a transaction, and who is told what."""

from __future__ import annotations

import asyncio
import random

import pytest

from hq.errors import DeadlineExceeded, OutcomeUnknown, Overloaded, ShuttingDown, StoreFull, StoreUnavailable, TooLarge
from hq.store.commit import Conflict, Guarded
from hq.store.memory import MemoryStore
from hq.store.port import Compare, Unavailable, Write
from tests.support.faulty_store import Fate, FaultyStore
from tests.support.parts import Parts, stored
from tests.support.virtual_time import in_virtual_time


def faulty() -> FaultyStore:
    return FaultyStore(MemoryStore(), random.Random(1))


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
async def test_a_write_is_answered_with_the_version_at_which_it_stands() -> None:
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
async def test_a_poisoned_write_costs_itself_only() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.poisonous = lambda write: any(b"poison" in value for _, value in write.puts)
        answers = await asyncio.gather(
            *(parts.write(f"{n}", text=b"poison" if n == 7 else b"") for n in range(20)), return_exceptions=True
        )
        assert isinstance(answers.pop(7), TooLarge)
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
async def test_a_guard_of_ones_own_that_does_not_hold_fails_those_who_gave_it_only() -> None:
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
        assert isinstance(put, StoreFull)
        assert isinstance(gone, int)
        assert await stored(store, parts.spec("a")) is None
        assert await parts.delete("b") > gone
        store.full = False
        assert await parts.write("c") > 0


@in_virtual_time
async def test_too_many_waiting_writes_are_refused() -> None:
    store = faulty()
    async with Parts(store, queue_limit=10) as parts:
        await parts.write("a")
        store.delay_s = 5
        waiting = [asyncio.create_task(parts.write(f"{n}", timeout_s=60)) for n in range(40)]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert any(isinstance(answer, Overloaded) for answer in answers)
        assert sum(isinstance(answer, int) for answer in answers) >= 10


# --- deadlines and callers that go away ---------------------------------------------------------------------------


@in_virtual_time
async def test_a_deadline_before_the_write_was_sent_means_that_nothing_is_ever_stored() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.SILENT, touching=parts.spec("first"))
        first = asyncio.create_task(parts.write("first"))
        await asyncio.sleep(0.1)
        with pytest.raises(DeadlineExceeded):
            await parts.write("a", timeout_s=1)
        await first
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_a_deadline_while_the_session_is_settled_means_that_nothing_is_ever_stored() -> None:
    store = faulty()
    async with Parts(store) as parts:
        parts.session.doubt()
        store.delay_s = 1.9
        with pytest.raises(DeadlineExceeded):
            await parts.write("a", timeout_s=0.1)
        store.delay_s = 0
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_a_deadline_after_the_write_was_sent_leaves_the_outcome_unknown() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.SILENT, touching=parts.spec("a"))
        with pytest.raises(OutcomeUnknown):
            await parts.write("a", timeout_s=1)
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None, "a write whose caller was told 'unknown' is not sent again"


@in_virtual_time
async def test_a_deadline_that_has_passed_already_stores_nothing() -> None:
    store = faulty()
    async with Parts(store) as parts:
        with pytest.raises(DeadlineExceeded):
            await parts.write("a", timeout_s=-1)
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_the_write_of_a_caller_that_went_away_while_waiting_is_not_sent() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.delay_s = 1
        first = asyncio.create_task(parts.write("first"))
        await asyncio.sleep(0.1)
        gone = asyncio.create_task(parts.write("a"))
        await asyncio.sleep(0.1)
        gone.cancel()
        await first
        await parts.write("b")
        assert await stored(store, parts.spec("a")) is None


@in_virtual_time
async def test_a_replica_that_goes_away_says_of_each_write_whether_it_was_sent() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.SILENT, touching=parts.spec("sent"))
        sent = asyncio.create_task(parts.write("sent"))
        await asyncio.sleep(0.1)
        waiting = asyncio.create_task(parts.write("waiting"))
        await asyncio.sleep(0.1)
        await parts.stop()
        answers = await asyncio.gather(sent, waiting, return_exceptions=True)
        assert [type(answer) for answer in answers] == [OutcomeUnknown, ShuttingDown]
        with pytest.raises(ShuttingDown):
            await parts.write("later")


# --- unknown outcomes -----------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_write_whose_answer_was_lost_is_answered_with_its_version() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.UNANSWERED, touching=parts.spec("a"))
        version = await parts.write("a")
        record = await stored(store, parts.spec("a"))
        assert record is not None
        assert (record.created, record.modified) == (version, version)


@in_virtual_time
async def test_a_write_that_was_lost_on_its_way_is_sent_again() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.LOST, Fate.LOST, touching=parts.spec("a"))
        version = await parts.write("a", parts.at("a", 0))
        record = await stored(store, parts.spec("a"))
        assert record is not None
        assert record.modified == version


@in_virtual_time
async def test_a_late_write_never_takes_place_after_the_session_changed() -> None:
    store = faulty()
    async with Parts(store) as parts:
        store.plan(Fate.LATE, touching=parts.spec("a"))
        first = await parts.write("a", text=b"1")
        second = await parts.write("a", text=b"2")
        await store.arrived()
        record = await stored(store, parts.spec("a"))
        assert record is not None
        assert (record.created, record.modified) == (first, second)


@in_virtual_time
async def test_a_conflict_under_an_unknown_outcome_is_told_as_a_conflict() -> None:
    store = faulty()
    async with Parts(store) as parts:
        at = await parts.write("a")
        store.plan(Fate.UNANSWERED, touching=parts.spec("a"))
        with pytest.raises(Conflict):
            await parts.write("a", parts.at("a", at - 1))


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.LOST, Fate.LATE])
@in_virtual_time
async def test_a_deletion_of_unknown_outcome_is_settled(fate: Fate) -> None:
    store = faulty()
    async with Parts(store) as parts:
        at = await parts.write("a")
        store.plan(fate, touching=parts.spec("a"))
        version = await parts.delete("a", parts.at("a", at))
        await store.arrived()
        assert await stored(store, parts.spec("a")) is None
        assert (await store.get(parts.spec("a"), revision=version - 1))[0] is not None


@pytest.mark.parametrize("fate", [Fate.UNANSWERED, Fate.LOST, Fate.LATE])
@in_virtual_time
async def test_a_put_without_a_write_id_takes_place_once(fate: Fate) -> None:
    store = faulty()
    async with Parts(store) as parts:
        key = parts.key_names.guard
        store.plan(fate, touching=key)
        deadline = parts.clock.now() + 10
        version = await parts.committer.commit("ops/guard", Write((), ((key, b"order"),)), 0, deadline)
        await store.arrived()
        record = await stored(store, key)
        assert record is not None
        assert (record.created, record.modified) == (version, version)


@in_virtual_time
async def test_the_change_of_the_session_may_itself_be_lost_unanswered_and_late() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.write("warm")
        session = parts.key_names.of("session", parts.replica)
        store.plan(Fate.LATE, Fate.LOST, Fate.UNANSWERED, Fate.LATE, touching=session)
        store.plan(Fate.LATE, touching=parts.spec("a"))
        first = await parts.write("a", timeout_s=60)
        await store.arrived()
        second = await parts.write("a", timeout_s=60)
        record = await stored(store, parts.spec("a"))
        assert record is not None
        assert (record.created, record.modified) == (first, second)


# --- the memory was read anew while a transaction was under way -----------------------------------------------------


@in_virtual_time
async def test_what_a_collapsed_batch_hides_is_unknown_and_what_it_shows_is_answered() -> None:
    store = faulty()
    async with Parts(store) as parts:
        at = await parts.write("gone")
        store.silence()
        await store.store.commit(
            (), (Write((), ((parts.key_names.guard, b"the last that the watch had in hand"),)),), 1
        )
        store.plan(Fate.UNANSWERED, touching=parts.spec("shown"))
        shown = asyncio.create_task(parts.write("shown", timeout_s=60))
        hidden = asyncio.create_task(parts.write("hidden", timeout_s=60))
        deleted = asyncio.create_task(parts.delete("gone", parts.at("gone", at), timeout_s=60))
        await asyncio.sleep(0.5)
        overwrite = Write((), ((parts.spec("hidden"), b"by somebody else"),))
        overwritten = await store.store.commit((), (overwrite,), 1)
        await store.compact(overwritten.revision)
        store.store.disconnect()
        store.speak()
        answers = await asyncio.gather(shown, hidden, deleted, return_exceptions=True)
        assert any(collapsed for _, collapsed in parts.told)
        record = await stored(store, parts.spec("shown"))
        assert record is not None
        assert answers[0] == record.modified
        assert [type(answer) for answer in answers[1:]] == [OutcomeUnknown, OutcomeUnknown]


@in_virtual_time
async def test_an_epoch_replaced_meanwhile_leaves_sent_writes_unknown_and_fails_the_waiting() -> None:
    store = faulty()
    async with Parts(store) as parts, Parts(store, "two", seed=2) as other:
        await parts.write("warm")
        store.plan(Fate.UNANSWERED, touching=parts.spec("seen"))
        store.plan(*[Fate.SILENT] * 3, touching=parts.key_names.of("session", "one"))
        seen = asyncio.create_task(parts.write("seen", timeout_s=60))
        await asyncio.sleep(0.1)
        store.plan(Fate.LOST, touching=parts.spec("b"))
        waiting = asyncio.create_task(parts.write("b", timeout_s=60))
        await asyncio.sleep(0.1)
        await other.epoch.moved()
        answers = await asyncio.gather(seen, waiting, return_exceptions=True)
        assert isinstance(answers[0], int)
        assert isinstance(answers[1], StoreUnavailable)
        assert parts.epoch.current == other.epoch.current
        assert await parts.write("c") > 0


@in_virtual_time
async def test_a_write_made_of_the_old_memory_is_never_sent_into_a_new_epoch() -> None:
    store = faulty()
    async with Parts(store) as parts, Parts(store, "two", seed=2) as other:
        at = await parts.write("a")
        parts.session.doubt()
        store.delay_s = 1.0
        write = asyncio.create_task(parts.write("a", parts.at("a", at), timeout_s=60))
        await other.epoch.moved()
        with pytest.raises(StoreUnavailable):
            await write
        record = await stored(store, parts.spec("a"))
        assert record is not None
        assert record.modified == at


@in_virtual_time
async def test_a_write_that_only_a_new_listing_could_have_shown_stays_unknown() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.write("warm")
        store.silence()
        await store.store.commit(
            (), (Write((), ((parts.key_names.guard, b"the last that the watch had in hand"),)),), 1
        )
        store.plan(Fate.UNANSWERED, touching=parts.spec("a"))
        write = asyncio.create_task(parts.write("a", timeout_s=60))
        await asyncio.sleep(0.5)
        replaced = await store.store.commit((), (Write((), ((parts.key_names.epoch, b""),)),), 1)
        await store.compact(replaced.revision)
        store.store.disconnect()
        store.speak()
        with pytest.raises(OutcomeUnknown):
            await write
        assert await stored(store, parts.spec("a")) is not None
        assert parts.listings == 2
        assert await parts.write("b") > 0
