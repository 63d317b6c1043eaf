"""Saving and restoring over the store in memory: nothing is lost, nothing is mixed, everything can be run again."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest

from hq.backup.archive import BackupReader, verify_backups
from hq.backup.restore import Disturbed, NotEmpty, Restore
from hq.backup.save import ForeignRecords, NothingToSave, save_to
from hqpb.storage.v1 import storage_pb2
from serving.clock import ManualClock
from store.memory import MemoryStore
from store.port import Commit, Compacted, Compare, StorePage, Unavailable, UnknownOutcome, Write
from tests.support.backups import KEYS, PLACE, filled, kept, nothing, put, restored, saved, state


class Breaking(MemoryStore):
    """Counts transactions: at those in `unknown_at` the answer is lost, from `dies_at` on nothing is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown_at: set[int] = set()
        self.dies_at = 1_000_000
        self.transactions = 0

    async def commit(self, guards: tuple[Compare, ...], writes: tuple[Write, ...], timeout_s: float) -> Commit:  # type: ignore[override]
        self.transactions += 1
        if self.transactions >= self.dies_at:
            raise Unavailable("the restore was broken off here")
        done = await super().commit(guards, writes, timeout_s)
        if self.transactions in self.unknown_at:
            raise UnknownOutcome("the answer was lost")
        return done


async def test_a_restore_brings_back_the_saved_records_and_no_replica_state() -> None:
    store = await filled()
    before = await state(store)
    empty = MemoryStore()
    await restored(empty, await saved(store))
    after = await state(empty)
    assert kept(after) == kept(before)
    assert set(after) - set(kept(after)) == {b"epoch", b"format"}


async def test_each_restore_begins_a_new_epoch_that_names_all_earlier_ones() -> None:
    file = await saved(await filled())
    target = await filled(0, epoch="of the lost store")
    await restored(target, file, replace=True)
    first = storage_pb2.EpochRecord.FromString((await state(target))[b"epoch"])
    assert {"older", "old", "of the lost store"} <= set(first.predecessor)
    await restored(target, file, replace=True, seed=2)
    second = storage_pb2.EpochRecord.FromString((await state(target))[b"epoch"])
    assert first.epoch in second.predecessor
    assert second.epoch != first.epoch


async def test_a_backup_shows_one_version_whatever_is_written_meanwhile() -> None:
    class Busy(MemoryStore):
        async def page(
            self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False
        ) -> StorePage:
            await put(self, KEYS.spec("i-9999"), b"late")
            await put(self, KEYS.spec("i-0000"), b"late")
            return await super().page(start, end, revision=revision, limit=limit, keys_only=keys_only)

    store = await filled(1_000)
    busy = Busy()
    busy.__dict__.update(store.__dict__)
    before = kept(await state(store))
    file = await saved(busy)
    assert {record.key: record.value for record in BackupReader(file)} == before


async def test_a_restore_into_a_store_with_records_is_refused_and_changes_nothing() -> None:
    file = await saved(await filled())
    target = await filled(3)
    before = await state(target)
    with pytest.raises(NotEmpty, match=r"holds 8 records already: .* delete them with --replace"):
        await restored(target, file)
    assert await state(target) == before


async def test_replace_takes_away_what_the_backup_does_not_have() -> None:
    store = await filled(3)
    file = await saved(store)
    target = await filled(300)
    await put(target, KEYS.suspension("node-1"), b"of another time")
    await restored(target, file, replace=True)
    assert kept(await state(target)) == kept(await state(store))


async def test_a_restore_that_was_broken_off_can_be_run_again_wherever_it_ended() -> None:
    store = await filled()
    file, wanted = await saved(store), kept(await state(store))
    target = Breaking()
    await restored(target, file)
    transactions = target.transactions
    for dies_at in range(2, transactions + 1):
        target = Breaking()
        target.dies_at = dies_at
        with pytest.raises(Unavailable):
            await restored(target, file)
        assert b"restore" in await state(target)
        target.dies_at = 1_000_000
        await restored(target, file)
        after = await state(target)
        assert kept(after) == wanted
        assert b"restore" not in after


async def test_a_restore_survives_the_loss_of_any_answer() -> None:
    store = await filled(120)
    file, wanted = await saved(store), kept(await state(store))
    for lost in range(1, 7):
        target = Breaking()
        target.unknown_at = {lost}
        await restored(target, file)
        after = await state(target)
        assert kept(after) == wanted
        assert b"restore" not in after


async def test_an_interrupted_restore_is_not_continued_with_another_backup() -> None:
    one, other = await saved(await filled(200)), await saved(await filled(3))
    target = Breaking()
    target.dies_at = 3
    with pytest.raises(Unavailable):
        await restored(target, one)
    target.dies_at = 1_000_000
    with pytest.raises(NotEmpty, match="a restore of another file was interrupted here"):
        await restored(target, other)
    await restored(target, other, replace=True)
    assert len(kept(await state(target))) == 8


async def test_of_two_restores_at_once_the_first_one_ends_when_the_second_begins() -> None:
    file = await saved(await filled())
    other = await saved(await filled(3))
    target = MemoryStore()
    file.seek(0)
    [summary] = verify_backups(file)
    one = Restore(target, KEYS, summary, random.Random(1))
    await one._begin(replace=False)
    await restored(target, other, replace=True)
    with pytest.raises(Disturbed):
        await one._commit(Write((), ((KEYS.spec("of-the-first"), b"late"),)))
    assert len(kept(await state(target))) == 8


async def test_a_store_without_hq_is_not_saved() -> None:
    with pytest.raises(NothingToSave, match=r"no data of HQ below /hq/v1/"):
        await saved(MemoryStore())


async def test_a_store_amid_a_restore_is_not_saved() -> None:
    store = await filled()
    await put(store, KEYS.restore, b"a mark")
    with pytest.raises(NothingToSave, match="a restore is in progress"):
        await saved(store)


class Compacting(MemoryStore):
    """Compacts its history between two pages, `times` times."""

    times = 2

    async def page(self, start: bytes, end: bytes, *, revision: int, limit: int, keys_only: bool = False) -> StorePage:
        if self.times and start != KEYS.prefix:
            self.times -= 1
            raise Compacted(revision)
        return await super().page(start, end, revision=revision, limit=limit, keys_only=keys_only)


async def test_a_backup_overtaken_by_compaction_begins_again(tmp_path: Path) -> None:
    store = Compacting()
    store.__dict__.update((await filled(600)).__dict__)
    await save_to(tmp_path / "backup", store, [PLACE], ManualClock(), nothing)
    with (tmp_path / "backup").open("rb") as file:
        assert verify_backups(file)[0].records["spec"] == 600


async def test_only_the_owner_may_read_a_backup_and_a_failed_one_leaves_no_trace(tmp_path: Path) -> None:
    store = Compacting()
    store.__dict__.update((await filled(600)).__dict__)
    store.times = 100
    (tmp_path / "backup").write_bytes(b"yesterday's")
    with pytest.raises(Compacted):
        await save_to(tmp_path / "backup", store, [PLACE], ManualClock(), nothing, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["backup"]
    assert (tmp_path / "backup").read_bytes() == b"yesterday's"
    store.times = 0
    await save_to(tmp_path / "backup", store, [PLACE], ManualClock(), nothing, force=True)
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o600


async def test_an_existing_file_is_kept_even_if_it_appeared_during_the_backup(tmp_path: Path) -> None:
    path = tmp_path / "backup"

    def other(_: int) -> None:
        path.write_bytes(b"another one's")

    for told in (other, nothing):
        with pytest.raises(FileExistsError, match="exists: choose another name, or give --force to replace it"):
            await save_to(path, await filled(3), [PLACE], ManualClock(), told)
        assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("backup", b"another one's")]


async def test_leftovers_of_a_killed_backup_do_not_stop_the_next_one(tmp_path: Path) -> None:
    """In a container every process may have the same process ID."""
    (tmp_path / f".backup.{os.getpid()}.part").write_bytes(b"half of one")
    await save_to(tmp_path / "backup", await filled(3), [PLACE], ManualClock(), nothing)
    with (tmp_path / "backup").open("rb") as file:
        assert verify_backups(file)[0].records["spec"] == 3


async def test_records_of_another_program_are_neither_saved_nor_replaced(tmp_path: Path) -> None:
    backup = await saved(await filled())
    nanny = MemoryStore()
    await put(nanny, KEYS.epoch, storage_pb2.EpochRecord(epoch="nanny's").SerializeToString())
    for kind in ("acting", "service/web"):
        await put(nanny, KEYS.of(kind), b"x")
    before = await state(nanny)
    with pytest.raises(ForeignRecords, match=r"'acting', which is not HQ's: give the prefix"):
        await save_to(tmp_path / "file", nanny, [PLACE], ManualClock(), nothing)
    with pytest.raises(ForeignRecords):
        await restored(nanny, backup, replace=True)
    assert await state(nanny) == before
    assert not list(tmp_path.iterdir())
