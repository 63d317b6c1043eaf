"""Backups of CMS, Nanny and Wall-E: beside HQ on one etcd, and under their running processes."""

from __future__ import annotations

import asyncio

import pytest

from hq.backup.archive import BadBackup, verify_backups
from hq.backup.save import BackupPlace, ForeignRecords
from hq.backup.servers import CMS, HQ, NANNY, SERVERS, BackedUpServer
from hqpb.storage.v1 import storage_pb2
from serving.errors import NotLoaded
from store.keys import Keys
from store.memory import MemoryStore
from store.port import Write
from storepb.v1 import store_pb2
from tests.support.backups import filled, put, restored, saved, state
from tests.support.controllers import Books, Word
from tests.support.virtual_time import run_virtually

PLACES = tuple(BackupPlace(server, Keys(server.prefix)) for server in SERVERS.values())


async def neighbours() -> MemoryStore:
    """HQ, CMS and Nanny on one etcd; no Wall-E."""
    store = await filled(3)
    for server in (CMS, NANNY):
        keys = Keys(server.prefix)
        await put(store, keys.epoch, store_pb2.EpochRecord(epoch=f"{server.name}'s").SerializeToString())
        for kind in (*server.kept, "acting", "fence"):
            await put(store, keys.of(kind, "a"), f"{server.name} {kind}".encode())
    return store


async def states(store: MemoryStore) -> dict[str, dict[bytes, bytes]]:
    return {server.name: await state(store, server.prefix) for server in SERVERS.values()}


@pytest.mark.parametrize("server", [CMS, NANNY], ids=lambda server: server.name)
async def test_a_server_is_restored_and_its_neighbours_stay_untouched(server: BackedUpServer) -> None:
    store = await neighbours()
    before = await states(store)
    file = await saved(store, BackupPlace(server, Keys(server.prefix)))
    await put(store, Keys(server.prefix).of(server.kept[0], "later"), b"after the backup")
    epoch = await restored(store, file, server, replace=True)
    after = await states(store)
    new = storage_pb2.EpochRecord.FromString(after[server.name].pop(b"epoch"))
    assert (new.epoch, f"{server.name}'s" in new.predecessor) == (epoch, True)
    assert after[server.name].pop(b"format")
    del before[server.name][b"epoch"]
    assert after == before


async def test_all_servers_are_saved_at_one_version_and_each_is_restored_alone() -> None:
    store = await neighbours()
    before = await states(store)
    file = await saved(store, *PLACES)
    backups = verify_backups(file)
    assert [one.server for one in backups] == [HQ, CMS, NANNY]
    assert len({one.header.revision for one in backups}) == 1
    empty = MemoryStore()
    await restored(empty, file, CMS)
    after = await states(empty)
    assert {name for name, records in after.items() if records} == {"cms"}
    kept = {key: value for key, value in before["cms"].items() if key.split(b"/")[0].decode() in CMS.kept}
    assert {key: after["cms"][key] for key in kept} == kept
    assert set(after["cms"]) - set(kept) == {b"epoch", b"format"}


async def test_a_backup_is_not_restored_as_that_of_another_server() -> None:
    store = await neighbours()
    file = await saved(store, BackupPlace(NANNY, Keys(NANNY.prefix)))
    for server in (HQ, CMS):
        with pytest.raises(BadBackup, match="but of: nanny"):
            await restored(MemoryStore(), file, server)
    with pytest.raises(ForeignRecords, match=r"/hq/v1/ holds records of kind 'ops', which is not the CMS's"):
        await saved(store, BackupPlace(CMS, Keys(HQ.prefix)))


def test_while_a_restore_is_unfinished_a_controller_serves_and_stores_nothing() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with Books(store) as one:
            await one.acting()
            await one.write("hobbit", "in")
            keys = Keys(one.controller.config.prefix)
            record, _ = await store.get(keys.epoch)
            assert record is not None
            current = store_pb2.EpochRecord.FromString(record.value).epoch
            begun = store_pb2.EpochRecord(epoch="restoring", predecessor=[current]).SerializeToString()
            await store.commit((), (Write((), ((keys.epoch, begun), (keys.restore, b"a mark"))),), 1.0)
            while one.controller.epoch != "restoring":
                await asyncio.sleep(0.1)
            await asyncio.sleep(60.0)
            for refused in (one.controller.check_loaded, one.controller.creation):
                with pytest.raises(NotLoaded, match="complete it with `hq restore`"):
                    refused()
            with pytest.raises(NotLoaded):
                await one.write("hobbit", "a")
            with pytest.raises(NotLoaded):
                await one.controller.open("an operator", "in a hurry")
            await put(store, keys.of("book", "hobbit"), Word(value="restored").SerializeToString())
            done = store_pb2.EpochRecord(epoch="done", predecessor=[current, "restoring"]).SerializeToString()
            await store.commit((), (Write((), ((keys.epoch, done),), (keys.restore,)),), 1.0)
            while one.controller.epoch != "done":
                await asyncio.sleep(0.1)
            await one.controller.loaded.wait()
            assert one.read("hobbit") == ["restored"]
            assert not one.controller.is_open

    run_virtually(main)
