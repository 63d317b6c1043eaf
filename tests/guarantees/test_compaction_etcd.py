"""Somebody else compacts etcd, at a moment that is as bad as can be."""

from __future__ import annotations

from hq.keys import HqKeys
from store.etcd import EtcdConfig, EtcdStore
from store.port import Write
from tests.support.etcd import OwnEtcd
from tests.support.in_process_replica import running
from tests.support.sample_instances import eventually, instance
from tests.support.store_link import Link

NAMES = HqKeys()


async def test_deletions_compacted_during_a_cut_are_applied_within_5_s_of_reconnecting(
    own_etcd: OwnEtcd,
) -> None:
    etcd = await own_etcd()
    direct = EtcdStore(EtcdConfig((etcd.endpoint,)))
    link = Link(EtcdStore(EtcdConfig((etcd.endpoint,))))
    async with running(link) as registry:
        replica = registry.replica
        await registry.writes.create(instance("i-1"), "", registry.deadline(None), validate_only=False)
        assert replica.cache.get("i-1") is not None
        applied = await replica.fence.wait_for_fence()
        opened = replica.follower.restarts
        link.cut()
        gone = Write((), deletes=(NAMES.spec("i-1"), NAMES.status("i-1")))
        deleted = (await direct.commit((), (gone,), 5.0)).revision
        assert deleted == applied + 1, "something else came in between: the deletion is not where etcd loses it"
        await direct.commit((), (Write((), ((NAMES.of("ops", "unrelated"), b""),)),), 5.0)
        await direct.compact(deleted)
        link.mend()
        await eventually(lambda: replica.follower.restarts > opened, 30.0, "the watch has ended")
        await eventually(replica.follower.following.is_set, 30.0, "the watch is open again")
        await eventually(lambda: replica.cache.get("i-1") is None, 5.0, "it is gone")  # 0.2 s, where nothing stalls
    await link.close()
    await direct.close()
