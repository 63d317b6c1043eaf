"""Memory is compared with the store: lost changes are found and mended, and nothing else is touched."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import proof
from store.port import Commit, Compacted, Compare, KeyChange, MemberStatus, Record, StorePage, Write
from tests.support.faulty_store import FaultyStore, faulty
from tests.support.mirrored_store import OPS, below_prefix, caught_up, delete, put
from tests.support.store_parts import Parts
from tests.support.virtual_time import in_virtual_time, run_virtually

# A pass over a small store takes a minute, and so does the time between two counts.
SOON_S = 150.0


def lose_deletion(parts: Parts) -> bytes:
    """Put a key into memory that the store does not have."""
    key = OPS + b"ghost"
    parts.records[key] = Record(key, b"x", 3, 3)
    parts.follower.key_count += 1
    return key


def lose_put(parts: Parts) -> bytes:
    """Remove a key of the store from memory."""
    key = OPS + b"a"
    del parts.records[key]
    parts.follower.key_count -= 1
    return key


def lose_update(parts: Parts) -> bytes:
    """Put an older value of a key into memory."""
    key = OPS + b"b"
    parts.records[key] = parts.records[key]._replace(value=b"old", modified=2)
    return key


def swap(parts: Parts) -> bytes:
    """Lose a deletion and a creation: the number of keys is right."""
    lose_put(parts)
    return lose_deletion(parts)


@pytest.mark.parametrize("lose", [lose_deletion, lose_put, lose_update, swap])
@pytest.mark.parametrize("is_busy", [False, True], ids=["idle", "busy"])
def test_lost_changes_are_found_and_mended(lose: object, is_busy: bool) -> None:
    async def story() -> None:
        store = faulty()
        for name in ("a", "b", "c"):
            await put(store, name)
        async with Parts(store, proves=True) as parts:
            lose(parts)  # type: ignore[operator]
            busy = asyncio.create_task(keep_writing(store)) if is_busy else None
            await asyncio.sleep(SOON_S)
            if busy:
                busy.cancel()
            await caught_up(parts)
            assert parts.proof.mended == (2 if lose is swap else 1)
            assert parts.listings == 1, "a mend does not list anew"

    run_virtually(story)


def noticed(parts: Parts) -> float:
    """When the last foreign compaction was noticed; 0: never."""
    return parts.proof.foreign_compaction_at or 0.0


async def keep_writing(store: FaultyStore) -> None:
    n = 0
    while True:
        await put(store, f"busy-{n % 20}")
        await asyncio.sleep(0.3)
        await delete(store, f"busy-{(n + 10) % 20}")
        n += 1


@given(
    seed=st.integers(0, 2**32),
    cut_chance=st.sampled_from([0.0, 0.1]),
    delay_s=st.sampled_from([0.0, 0.5]),
    stranger=st.sampled_from(["nobody", "of a sound etcd", "of an etcd that leaves out deletions"]),
)
def test_the_mirror_ends_up_equal_to_the_store_whoever_compacts(
    seed: int, cut_chance: float, delay_s: float, stranger: str
) -> None:
    async def history() -> None:
        rng = random.Random(seed)
        store = faulty()
        store._rng, store.cut_chance, store.delay_s = rng, cut_chance, delay_s
        async with Parts(store, proves=True) as parts:
            at = 0
            for _ in range(rng.randrange(5, 60)):
                name = f"{rng.randrange(8)}"
                at = await (put if rng.random() < 0.6 else delete)(store, name)
                if stranger != "nobody" and at > store.store._compacted and rng.random() < 0.2:
                    await (store.store if "sound" in stranger else store).compact(at)
                await asyncio.sleep(rng.choice((0.0, 0.1, 5.0)))
            store.cut_chance = 0.0
            await asyncio.sleep(SOON_S * 2)
            await caught_up(parts)
            if "leaves out" not in stranger:
                assert parts.proof.mended == 0, "nothing was lost"

    run_virtually(history)


@pytest.mark.long
@in_virtual_time
async def test_keys_that_change_during_the_comparison_are_no_difference() -> None:
    store = faulty()
    store.delay_s = 0.5
    async with Parts(store, proves=True) as parts:
        busy = asyncio.create_task(keep_writing(store))
        await asyncio.sleep(1_000)
        busy.cancel()
        assert parts.proof.mended == 0
        assert parts.proof.compared_at is not None
        assert parts.proof.counted_at is not None


@in_virtual_time
async def test_foreign_compaction_is_noticed_once_per_compaction_of_our_own() -> None:
    store = faulty()
    async with Parts(store, proves=True) as parts:
        await parts.compactor.once()
        await caught_up(parts)
        await parts.compactor.once()
        await asyncio.sleep(100)
        assert not noticed(parts)
        await store.compact(await put(store, "a"))
        await asyncio.sleep(100)
        first = noticed(parts)
        assert first
        await asyncio.sleep(300)
        assert noticed(parts) == first
        await caught_up(parts)
        with suppress(Compacted):  # beyond what is to be given up now
            await parts.compactor.once()
        await caught_up(parts)
        await parts.compactor.once()
        await asyncio.sleep(100)
        await store.compact(await put(store, "a"))
        await asyncio.sleep(100)
        assert noticed(parts) > first


@in_virtual_time
async def test_a_store_that_was_full_or_away_is_compared_afterwards() -> None:
    store = faulty()
    await put(store, "a")
    async with Parts(store, proves=True) as parts:
        lose_put(parts)
        store.full = True
        await asyncio.sleep(SOON_S)
        assert parts.records.keys() != below_prefix(store).keys()
        store.full = False
        store.go_away()
        await asyncio.sleep(SOON_S)
        store.away = False
        await asyncio.sleep(SOON_S)
        await caught_up(parts)


@in_virtual_time
async def test_a_mend_takes_effect_in_order_at_its_mark() -> None:
    store = faulty()
    await put(store, "a")
    async with Parts(store, proves=True) as parts:
        ghost = lose_deletion(parts)
        mended_at: list[int] = []
        mend = parts.mend

        def noting(changes: list[KeyChange], revision: int) -> None:
            mended_at.append(revision)
            assert [change.key for change in changes] == [ghost]
            mend(changes, revision)

        parts.mend = noting  # type: ignore[method-assign]
        await asyncio.sleep(SOON_S)
        (at,) = mended_at
        assert parts.records[parts.key_names.of("mended", "one")].modified == at


@in_virtual_time
async def test_a_mend_that_does_not_help_is_not_repeated_endlessly() -> None:
    store = faulty()
    await put(store, "a")
    async with Parts(store, proves=True) as parts:
        lose_put(parts)
        mends: list[int] = []
        parts.mend = lambda changes, revision: mends.append(revision)  # type: ignore[method-assign]
        await asyncio.sleep(3_600)
        assert len(mends) == 1


async def lose_history(parts: Parts) -> None:
    """Delete the key so that the follower learns of it only by a listing."""
    store, listings = parts.store, parts.follower.listings
    assert isinstance(store, FaultyStore)
    parts.follower.following.clear()
    store.store.disconnect()
    await store.store.compact(await delete(store, "a"))
    while parts.follower.listings == listings or not parts.follower.following.is_set():
        await asyncio.sleep(0.1)


@in_virtual_time
async def test_a_slice_read_before_a_listing_is_not_compared(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()
    await put(store, "a")
    async with Parts(store, proves=True) as parts:
        page, slices = store.page, list[int]()

        async def then_lose_history(*args: object, keys_only: bool = False, **more: object) -> StorePage:
            read = await page(*args, keys_only=keys_only, **more)  # type: ignore[arg-type]
            if keys_only and not slices:
                slices.append(len(read.records))
                await lose_history(parts)
            return read

        store.page = then_lose_history  # type: ignore[method-assign]
        await asyncio.sleep(SOON_S)
        assert slices
        assert "comparing all" not in caplog.text
        assert parts.proof.compared_at is not None
        await caught_up(parts)


@in_virtual_time
async def test_a_mend_does_not_bring_back_a_key_that_a_listing_removed_meanwhile() -> None:
    store = faulty()
    await put(store, "a")
    async with Parts(store, proves=True) as parts:
        lose_put(parts)
        commit, mark = store.commit, parts.key_names.of("mended", "one")

        async def after_losing_history(guards: Sequence[Compare], writes: Sequence[Write], timeout_s: float) -> Commit:
            if any(key == mark for write in writes for key, _ in write.puts) and OPS + b"a" in below_prefix(store):
                await lose_history(parts)
            return await commit(guards, writes, timeout_s)

        store.commit = after_losing_history  # type: ignore[method-assign]
        await asyncio.sleep(SOON_S)
        assert OPS + b"a" not in below_prefix(store)
        assert parts.proof.mended == 0
        await caught_up(parts)


@pytest.mark.long
@in_virtual_time
async def test_the_slices_of_a_million_instances_are_all_read_within_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many slices as three million keys have, with two keys in each."""
    monkeypatch.setattr(proof, "SLICE_KEYS", 2)
    store = faulty()
    store.delay_s = 0.05
    for number in range(3_000):
        await put(store, f"{number:05}")
    async with Parts(store, proves=True) as parts:
        began = parts.clock.now()
        while parts.proof.compared_at is None:
            await asyncio.sleep(10)
        assert 2_400 <= parts.proof.compared_at - began <= 3_600, "no faster either: it shall cost nothing"


@pytest.mark.parametrize(
    ("took_s", "processes", "pause_s"), [(0.1, 1, 60), (0.1, 3, 60), (0.5, 3, 300), (2, 1, 400), (2, 5, 2_000)]
)
def test_all_processes_together_make_the_store_count_for_half_a_percent_of_the_time(
    took_s: float, processes: int, pause_s: float
) -> None:
    async def story() -> None:
        store = faulty()
        count, counts = store.count, list[float]()

        async def slow(*args: object, **more: object) -> int:
            counts.append(asyncio.get_running_loop().time())
            await asyncio.sleep(took_s)
            return await count(*args, **more)  # type: ignore[arg-type]

        store.count = slow  # type: ignore[method-assign]
        async with Parts(store, proves=True) as parts:
            parts.proof._processes = lambda: processes
            await asyncio.sleep(3 * pause_s)
        # The first may have begun before the number was known. Other work may be due just before, and takes its time.
        between = [later - before for before, later in pairwise(counts[1:])]
        assert between
        assert all(pause_s <= pause <= 1.1 * pause_s + 5 for pause in between)

    run_virtually(story)


@in_virtual_time
async def test_a_start_warns_of_members_whose_version_may_lose_data(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()

    async def members() -> list[MemberStatus]:
        return [MemberStatus(f"etcd-{version}", version) for version in ("3.4.23", "3.6.5", "3.5.1")]

    store.members = members  # type: ignore[method-assign]
    with caplog.at_level(logging.WARNING, "store.proof"):
        async with Parts(store, proves=True):
            await asyncio.sleep(1)
    assert [record.getMessage() for record in caplog.records] == [
        f"etcd-{version}: etcd {version} has faults that can lose or corrupt data: upgrade to {newer} or newer"
        for version, newer in (("3.4.23", "3.4.38"), ("3.5.1", "3.5.23"))
    ]
