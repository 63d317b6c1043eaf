"""A start from a checkpoint equals one that reads everything, or reads everything, in the same epoch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from store.kept import Footing, NotKept
from store.port import Write
from tests.support.faulty_store import FaultyStore, faulty, rewound
from tests.support.mirrored_store import caught_up, delete, put
from tests.support.store_parts import Mirror, Parts
from tests.support.virtual_time import in_virtual_time

REFUSED = "reading everything, not the checkpoint of the last stop: "


class KeptRecords:
    """All orders that an earlier process knew of, kept for a mirror.

    Attributes:
        begun: how often a restore from it began.
        spoiled: whether the restore breaks off in the middle.
    """

    kinds = ("ops",)

    def __init__(self, parts: Parts) -> None:
        footing = parts.follower.footing()
        assert footing is not None
        self.footing: Footing = footing
        self.epoch, self.version = parts.epoch.current, parts.version
        self._records = [record for key, record in parts.records.items() if parts.key_names.name(key).kind == "ops"]
        self.key_count = len(self._records)
        self.sink: Mirror | None = None
        self.begun, self.spoiled = 0, False

    def restore(self) -> Iterator[None]:
        assert self.sink is not None
        self.begun += 1
        for record in self._records:
            self.sink.load([record])
            yield
            if self.spoiled:
                raise NotKept("it is damaged")

    def finish(self) -> None:
        assert self.sink is not None
        assert self.sink.version == self.version


async def stopped(store: FaultyStore, *names: str) -> KeptRecords:
    """Let a process follow these orders and stop; return what it kept."""
    async with Parts(store) as parts:
        for name in names:
            await put(store, name)
        await caught_up(parts)
        return KeptRecords(parts)


def beginning(store: FaultyStore, kept: KeptRecords, replica: str = "two") -> Parts:
    """The next process, with what was kept, before its start."""
    parts = Parts(store, replica, seed=2)
    kept.sink = parts
    parts.follower.kept = kept
    return parts


async def goes_on(store: FaultyStore, kept: KeptRecords, log: pytest.LogCaptureFixture) -> str:
    """Start the next process and check that it shows the store; return why it did not use what was kept."""
    epoch = await store.store.get(b"/hq/v1/epoch")
    log.set_level(logging.INFO, "store.follow")
    async with beginning(store, kept) as parts:
        await caught_up(parts)
        await put(store, "later")
        await caught_up(parts)
        assert (parts.listings, parts.follower.kept) == (1, None)
    assert (await store.store.get(b"/hq/v1/epoch"))[0] == epoch[0]
    said = [line.removeprefix(REFUSED) for line in log.messages if line.startswith(REFUSED)]
    assert bool(said) is not any(line.startswith("read a checkpoint of") for line in log.messages)
    return "".join(said)


@in_virtual_time
async def test_a_start_from_a_checkpoint_applies_all_later_changes(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()
    kept = await stopped(store, "a", "b", "c")
    await put(store, "a", b"changed")
    await delete(store, "b")
    await put(store, "d")
    assert not await goes_on(store, kept, caplog)


@in_virtual_time
async def test_a_start_from_a_checkpoint_works_if_a_deletion_was_applied_last(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()
    async with Parts(store) as parts:
        await put(store, "a")
        await caught_up(parts)
        gone = await delete(store, "a")
        while parts.version < gone:
            await asyncio.sleep(0.01)
        kept = KeptRecords(parts)
    assert kept.footing.gone == (b"/hq/v1/ops/a", gone)
    assert not await goes_on(store, kept, caplog)


@in_virtual_time
async def test_a_checkpoint_is_too_old_if_its_version_was_compacted(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()
    kept = await stopped(store, "a", "b")
    await delete(store, "b")
    await store.store.compact(await put(store, "c"))
    assert "it is too old" in await goes_on(store, kept, caplog)


@in_virtual_time
async def test_a_checkpoint_of_another_epoch_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()
    kept = await stopped(store, "a")
    async with Parts(store, "other") as other:
        store.go_away()
        await asyncio.sleep(1)
        store.store = rewound(store.store, store.store._revision - 1)
        store.away = False
        await caught_up(other)
    assert "it is of epoch" in await goes_on(store, kept, caplog)


@in_virtual_time
async def test_a_checkpoint_newer_than_the_store_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    """No epoch begins, as no running process knows what the store held before, and a doubt must not get lost."""
    store = faulty()
    before = await put(store, "a")
    kept = await stopped(store, "b")
    store.store = rewound(store.store, max(before, kept.footing.modified - 1))
    assert "it has not reached version" in await goes_on(store, kept, caplog)


@in_virtual_time
async def test_a_checkpoint_is_not_used_if_the_store_was_set_back_and_has_outgrown_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = faulty()
    kept = await stopped(store, "a", "b")
    store.store = rewound(store.store, kept.footing.modified - 1)
    for number in range(20):
        await put(store, f"other-{number}")
    assert "it shows something else at version" in await goes_on(store, kept, caplog)


@in_virtual_time
async def test_a_checkpoint_is_not_used_if_its_version_has_another_value(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()
    kept = await stopped(store, "a")
    store.store = rewound(store.store, kept.footing.modified - 1)
    await store.store.commit((), (Write((), ((kept.footing.key, b"another"),)),), 1)
    assert store.store._revision == kept.footing.modified
    assert "it shows something else at version" in await goes_on(store, kept, caplog)


@in_virtual_time
async def test_a_damaged_checkpoint_leaves_nothing_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    store = faulty()
    kept = await stopped(store, "a", "b", "c")
    kept.spoiled = True
    await delete(store, "a")
    assert await goes_on(store, kept, caplog) == "it is damaged"


@in_virtual_time
async def test_history_compacted_before_the_watch_begins_makes_a_start_read_everything() -> None:
    """Neither a difference nor another history: nothing has yet proven that the kept records are the store's."""
    store = faulty()
    kept = await stopped(store, "a", "b")
    await delete(store, "b")
    epoch = (await store.store.get(b"/hq/v1/epoch"))[0]
    parts = beginning(store, kept)
    watch = store.watch

    def compacted_first(start: bytes, end: bytes, *, after: int) -> object:
        store.watch = watch  # type: ignore[method-assign]
        store.store._log = [batch for batch in store.store._log if batch.revision > after + 2]
        store.store._compacted = after + 2
        return watch(start, end, after=after)

    await put(store, "c")
    await put(store, "d")
    await put(store, "e")
    store.watch = compacted_first  # type: ignore[method-assign, assignment]
    async with parts:
        await caught_up(parts)
        assert parts.listings == 2
    assert (await store.store.get(b"/hq/v1/epoch"))[0] == epoch


@in_virtual_time
async def test_the_proof_of_a_checkpoint_is_retried_while_the_store_is_unreachable(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = faulty()
    kept = await stopped(store, "a")
    store.unreadable = 7
    assert not await goes_on(store, kept, caplog)
    assert not store.unreadable
