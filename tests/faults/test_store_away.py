"""The store goes away, is compacted, restored, filled: HQ says what it knows, and recovers by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from store.etcd import EtcdConfig, EtcdStore
from tests.support import etcd_backup, etcd_http
from tests.support.errors import reason_of, retry_delay_s
from tests.support.etcd import VERSIONS, OwnEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.reserved_port import kept_ports
from tests.support.sample_instances import Agent, eventually, instance
from tests.support.watch_follower import Watching

pytestmark = pytest.mark.parametrize("etcd_binary", VERSIONS[:2], indirect=True)
STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)


@asynccontextmanager
async def store_at(endpoint: str) -> AsyncIterator[EtcdStore]:
    store = EtcdStore(EtcdConfig((endpoint,)))
    yield store
    await store.close()


async def source_of(replica: ReplicaProcess) -> pb.Source:
    async with replica.stub() as stub:
        return (await stub.FindInstances(pb.FindInstancesRequest())).sources[0]


async def is_fresh(replica: ReplicaProcess) -> bool:
    try:
        return not (await source_of(replica)).stale
    except grpc.aio.AioRpcError:
        return False


@pytest.mark.long
async def test_with_etcd_away_reads_go_on_and_say_stale_and_writes_say_retry(
    replicas: Replicas, own_etcd: OwnEtcd
) -> None:
    ports = kept_ports()
    etcd = await own_etcd(ports=lambda: ports)
    replica = await replicas.start([etcd.endpoint])
    async with replica.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-1")))
        await etcd.stop()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-2")), timeout=30)
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
        assert retry_delay_s(failed.value) > 0

        async def stale() -> bool:
            found = await stub.FindInstances(pb.FindInstancesRequest())
            assert [i.meta.id for i in found.instances] == ["a-1"]
            return found.sources[0].stale and bool(found.sources[0].error)

        await eventually(stale, what="stale in every answer")
        assert (await replica.get("/readyz"))[0] == 200
        assert (await replica.get("/readyz?fresh=5s"))[0] == 503
        await etcd.start()
        await eventually(lambda: is_fresh(replica), what="fresh again")
        created = await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-2")))
        assert created.instance.meta.id == "a-2"


@pytest.mark.long
async def test_a_replica_that_slept_through_a_compaction_has_the_exact_state_and_tells_its_watchers(
    replicas: Replicas, own_etcd: OwnEtcd
) -> None:
    ports = kept_ports()
    etcd = await own_etcd(ports=lambda: ports)
    sleeper = await replicas.start([etcd.endpoint])
    other = await replicas.start([etcd.endpoint])
    async with sleeper.stub() as asleep, other.stub() as stub:
        for name in ("kept", "changed", "gone"):
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(name)))
        watch = Watching(asleep.WatchInstances(pb.WatchInstancesRequest()))
        await eventually(lambda: watch.holds({"kept", "changed", "gone"}), what="a synced watch")
        sleeper.pause()
        # The watch's connection must break, or etcd would still serve what it has queued for it.
        await etcd.stop()
        await etcd.start()

        async def written() -> bool:
            try:  # the other replica is back once it has connected again
                await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=instance("changed", text="new")))
            except grpc.aio.AioRpcError:
                return False
            return True

        await eventually(written, what="the other replica is back")
        await stub.DeleteInstance(pb.DeleteInstanceRequest(id="gone"))
        last = await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("new")))
        async with store_at(etcd.endpoint) as store:
            await store.compact(last.instance.meta.version)
        sleeper.resume()

        async def same() -> bool:
            try:
                here = await asleep.FindInstances(pb.FindInstancesRequest(read=STRONG))
                there = await stub.FindInstances(pb.FindInstancesRequest(read=STRONG))
            except grpc.aio.AioRpcError:
                return False
            return list(here.instances) == list(there.instances) and len(here.instances) == 3

        await eventually(same, timeout_s=30, what="the same exact state at both replicas")
        await eventually(lambda: watch.holds({"kept", "changed", "new"}), what="the watcher knows the difference")
        assert watch.known["changed"].meta.annotations["text"] == "new"
        assert any(m.collapsed or m.kind == pb.WATCH_KIND_RESYNC for m in watch.messages)
        await watch.end()


@pytest.mark.long
@pytest.mark.parametrize("later_writes", [0, 40], ids=["lower revision", "higher revision"])
async def test_a_store_restored_from_an_older_snapshot_gets_a_new_epoch(
    replicas: Replicas, own_etcd: OwnEtcd, tmp_path: Path, later_writes: int
) -> None:
    ports = kept_ports()
    etcd = await own_etcd(ports=lambda: ports)
    first = await replicas.start([etcd.endpoint])
    second = await replicas.start([etcd.endpoint])
    async with first.stub() as one, second.stub() as two:
        await one.CreateInstance(pb.CreateInstanceRequest(instance=instance("old")))
        etcd_backup.save(etcd, tmp_path / "snapshot")
        await one.CreateInstance(pb.CreateInstanceRequest(instance=instance("lost")))
        watch = Watching(two.WatchInstances(pb.WatchInstancesRequest()))
        await eventually(lambda: watch.holds({"old", "lost"}), what="a synced watch")
        before = await source_of(first)
        first.pause()
        second.pause()
        await etcd.stop()
        etcd_backup.restore(etcd, tmp_path / "snapshot")
        await etcd.start()
        for n in range(later_writes):
            await asyncio.to_thread(etcd_http.put, etcd.endpoint, f"/elsewhere/{n}", "x")
        first.resume()
        second.resume()

        async def moved_on() -> bool:
            try:
                sources = [await source_of(replica) for replica in (first, second)]
            except grpc.aio.AioRpcError:
                return False
            return sources[0].epoch == sources[1].epoch != before.epoch and not any(s.stale for s in sources)

        await eventually(moved_on, timeout_s=30, what="both replicas in one new epoch")
        for stub in (one, two):
            found = await stub.FindInstances(pb.FindInstancesRequest(read=STRONG))
            assert [i.meta.id for i in found.instances] == ["old"]
        await eventually(lambda: watch.holds({"old"}), what="the watcher forgot what was lost")
        assert pb.WATCH_KIND_RESYNC in watch.kinds()
        read = pb.ReadOptions(min_version=before.version, epoch=before.epoch)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await one.GetInstance(pb.GetInstanceRequest(id="old", read=read))
        assert reason_of(refused.value) == "EPOCH_CHANGED"
        await watch.end()


@pytest.mark.long
async def test_with_a_full_store_reads_go_on_expiries_are_held_and_it_recovers_without_a_restart(
    replicas: Replicas, own_etcd: OwnEtcd
) -> None:
    etcd = await own_etcd(quota_bytes=16 << 20)
    replica = await replicas.start([etcd.endpoint], "/hq/v1/", "--liveness-timeout", "3s")
    async with replica.stub() as stub:
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-1")))
        agent = Agent(stub, "a-1")
        await agent.begin()
        await asyncio.to_thread(fill, etcd.endpoint)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-2")))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert reason_of(refused.value) == "STORE_FULL"
        assert (await stub.GetInstance(pb.GetInstanceRequest(id="a-1"))).instance.meta.id == "a-1"
        await asyncio.to_thread(relieve, etcd.endpoint)

        async def writes_again() -> bool:
            try:
                await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("a-2")))
            except grpc.aio.AioRpcError:
                return False
            return True

        await eventually(writes_again, what="writes go on")
        await agent.report()
        assert (await stub.GetInstance(pb.GetInstanceRequest(id="a-1"))).instance.status.ready.status == 1


def fill(endpoint: str) -> None:
    """Put until etcd refuses."""
    try:
        for n in range(400):
            etcd_http.put(endpoint, f"/ballast/{n % 4}", "x" * 700_000)
    except OSError:
        return
    raise AssertionError("etcd was never full")


def relieve(endpoint: str) -> None:
    """What an operator does: compact, defragment, disarm."""
    for key in range(4):
        etcd_http.call(endpoint, "kv/deleterange", {"key": etcd_http.encoded(f"/ballast/{key}")})
    head = int(etcd_http.call(endpoint, "kv/range", {"key": etcd_http.encoded("x")})["header"]["revision"])
    etcd_http.call(endpoint, "kv/compaction", {"revision": str(head), "physical": True})
    etcd_http.call(endpoint, "maintenance/defragment", {})
    alarms = etcd_http.call(endpoint, "maintenance/alarm", {"action": "GET"}).get("alarms", [])
    for alarm in alarms:
        etcd_http.call(endpoint, "maintenance/alarm", {"action": "DEACTIVATE", **alarm})
