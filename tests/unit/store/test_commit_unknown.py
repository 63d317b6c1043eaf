"""Group commit: transactions without an answer, and memory that is read anew meanwhile."""

from __future__ import annotations

import asyncio

import pytest

from store.commit import Conflict
from store.port import Unavailable, UnknownOutcome, Write
from tests.support.faulty_store import Fate, faulty
from tests.support.store_parts import Parts, stored
from tests.support.virtual_time import in_virtual_time


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
async def test_a_conflict_whose_answer_was_lost_is_reported_as_a_conflict() -> None:
    store = faulty()
    async with Parts(store) as parts:
        at = await parts.write("a")
        store.plan(Fate.UNANSWERED, touching=parts.spec("a"))
        with pytest.raises(Conflict):
            await parts.write("a", parts.at("a", at - 1))


@in_virtual_time
async def test_writes_that_use_up_the_last_space_get_their_true_outcomes() -> None:
    store = faulty()
    async with Parts(store) as parts:
        at = await parts.write("a")
        store.plan(Fate.LAST, touching=parts.spec(""))
        writes = (parts.write("a", parts.at("a", at)), parts.write("b"), parts.write("c", parts.at("c", at)))
        a, b, c = await asyncio.gather(*writes, return_exceptions=True)
        records = [await stored(store, parts.spec(name)) for name in ("a", "b")]
        assert [record and record.modified for record in records] == [a, b]
        assert isinstance(c, Conflict)


@in_virtual_time
async def test_a_write_into_a_full_store_that_cannot_be_asked_is_settled() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.write("a")
        store.plan(Fate.LAST, touching=parts.spec("b"))
        store.unreadable = 1
        version = await parts.write("b")
        record = await stored(store, parts.spec("b"))
        assert record is not None
        assert record.modified == version
        assert parts.committer.unknown == 1


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
async def test_a_change_of_the_session_may_be_lost_unanswered_or_late() -> None:
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


@in_virtual_time
async def test_a_session_changed_by_heartbeats_fails_no_write() -> None:
    store = faulty()
    async with Parts(store) as parts:
        await parts.write("warm")
        store.delay_s = 0.3
        writes = [asyncio.create_task(parts.write(f"{n}", parts.at(f"{n}", 0))) for n in range(50)]
        await asyncio.sleep(0.01)
        for _ in range(5):
            await parts.session.change()
        for n, version in enumerate(await asyncio.gather(*writes)):
            record = await stored(store, parts.spec(f"{n}"))
            assert record is not None
            assert record.modified == version


@in_virtual_time
async def test_writes_hidden_by_a_collapsed_batch_are_unknown_and_visible_ones_are_answered() -> None:
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
        assert [type(answer) for answer in answers[1:]] == [UnknownOutcome, UnknownOutcome]


@in_virtual_time
async def test_an_epoch_replaced_meanwhile_leaves_sent_writes_unknown_and_fails_waiting_ones() -> None:
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
        await other.epoch.on_history_changed()
        answers = await asyncio.gather(seen, waiting, return_exceptions=True)
        assert isinstance(answers[0], int)
        assert isinstance(answers[1], Unavailable)
        assert parts.epoch.current == other.epoch.current
        assert await parts.write("c") > 0


@in_virtual_time
async def test_a_write_based_on_old_memory_is_never_sent_into_a_new_epoch() -> None:
    store = faulty()
    async with Parts(store) as parts, Parts(store, "two", seed=2) as other:
        at = await parts.write("a")
        parts.session.doubt()
        store.delay_s = 1.0
        write = asyncio.create_task(parts.write("a", parts.at("a", at), timeout_s=60))
        await other.epoch.on_history_changed()
        with pytest.raises(Unavailable):
            await write
        record = await stored(store, parts.spec("a"))
        assert record is not None
        assert record.modified == at


@in_virtual_time
async def test_a_write_hidden_behind_a_new_listing_stays_unknown() -> None:
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
        with pytest.raises(UnknownOutcome):
            await write
        assert await stored(store, parts.spec("a")) is not None
        assert parts.listings == 2
        assert await parts.write("b") > 0
