"""Upgrades: two versions of HQ over one etcd, what a newer one wrote, and a storage format that is too new."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from hq.keys import HqKeys
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from store.etcd import EtcdConfig, EtcdStore
from store.port import Write
from tests.support.arbitrary_messages import varint
from tests.support.etcd import VERSIONS, SharedEtcd
from tests.support.other_version import FIELD_NUMBER, make_other_version
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import Agent, eventually, instance
from tests.support.watch_follower import Watching

pytestmark = [pytest.mark.parametrize("etcd_binary", VERSIONS[:2], indirect=True), pytest.mark.timeout(180)]


def zone(word: str) -> bytes:
    """The field that this version does not know, encoded."""
    return varint(FIELD_NUMBER << 3 | 2) + varint(len(word)) + word.encode()


@pytest.fixture
async def store(etcd: SharedEtcd) -> AsyncIterator[EtcdStore]:
    """What lies in etcd, without HQ."""
    opened = EtcdStore(EtcdConfig((etcd.endpoint,)))
    yield opened
    await opened.close()


@pytest.mark.long
async def test_fields_of_a_newer_version_survive_every_edit_of_this_one(
    replicas: Replicas, etcd: SharedEtcd, store: EtcdStore
) -> None:
    replica, keys = await replicas.start([etcd.endpoint], etcd.prefix), HqKeys(etcd.prefix)
    async with replica.stub() as stub:
        made = instance("a", revisions=("r1", "r2"))
        made.meta.MergeFromString(zone("client-meta"))
        made.spec.revision[0].MergeFromString(zone("client-revision"))
        await stub.CreateInstance(pb.CreateInstanceRequest(instance=made))
        first, second = Agent(stub, "a"), Agent(stub, "a", "r2")
        await first.begin()
        await first.report()
        await second.begin()
        written = await put_newer_fields(store, keys)

        async def is_there() -> bool:
            read = await stub.GetInstance(pb.GetInstanceRequest(id="a"))
            return bool(read.instance.meta.version >= written)

        await eventually(is_there, what="what the newer version wrote")
        # Every edit that there is: of meta, of spec, of one revision, of the status of one revision.
        await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=instance("a", revisions=("r1", "r2"), text="new")))
        extra = model.InstanceRevision(id="r3")
        await stub.PutRevision(pb.PutRevisionRequest(instance_id="a", revision=extra))
        await stub.DeleteRevision(pb.DeleteRevisionRequest(instance_id="a", revision_id="r3"))
        await second.report(message="news")
        request = second.request(message="more news")
        request.revision.MergeFromString(zone("agent-status"))
        await stub.ReportStatus(request)
        shown = (await stub.GetInstance(pb.GetInstanceRequest(id="a"))).instance.SerializeToString()
        await refused_beside_the_parts(stub)
    held = b"".join([value async for value in values_of(store, keys)])
    for word in ("client-meta", "client-revision", "meta", "spec", "status", "r1-status", "agent-status"):
        if word == "client-revision":
            continue  # UpdateInstance replaced the revisions as a whole, as it says
        assert zone(word) in held, word
        assert zone(word) in shown, word


async def refused_beside_the_parts(stub: service_stubs.InstanceServiceStub) -> None:
    """An instance is three parts: what lies beside them has no record, and is refused in words, not lost."""
    beside = instance("beside")
    beside.MergeFromString(zone("beside"))
    creating = stub.CreateInstance(pb.CreateInstanceRequest(instance=beside))
    updating = stub.UpdateInstance(pb.UpdateInstanceRequest(instance=beside))
    for call in (creating, updating):
        with pytest.raises(grpc.aio.AioRpcError, match="fields besides meta, spec and status are unknown") as refused:
            await call
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    [result] = (await stub.ApplyInstances(pb.ApplyInstancesRequest(instance=[beside]))).result
    assert "fields besides meta, spec and status are unknown" in result.error.message


async def put_newer_fields(store: EtcdStore, keys: HqKeys) -> int:
    """What a newer version might have written, into each message of the two records; return the version."""
    spec_record, _ = await store.get(keys.spec("a"))
    status_record, _ = await store.get(keys.status("a"))
    assert spec_record is not None
    assert status_record is not None
    spec = storage_pb2.SpecRecord.FromString(spec_record.value)
    spec.meta += zone("meta")
    spec.spec += zone("spec")
    status = storage_pb2.StatusRecord.FromString(status_record.value)
    inner = model.InstanceStatus.FromString(status.status)
    assert inner.revision[0].id == "r1"
    inner.revision[0].MergeFromString(zone("r1-status"))
    status.status = inner.SerializeToString() + zone("status")
    puts = ((keys.spec("a"), spec.SerializeToString()), (keys.status("a"), status.SerializeToString()))
    return (await store.commit((), (Write((), puts),), 5.0)).revision


async def values_of(store: EtcdStore, keys: HqKeys) -> AsyncIterator[bytes]:
    for key in (keys.spec("a"), keys.status("a")):
        record, _ = await store.get(key)
        assert record is not None
        yield record.value


@pytest.mark.long
async def test_two_versions_side_by_side_see_each_others_writes_and_watches_move_between_them(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path
) -> None:
    tree = make_other_version(tmp_path / "newer", storage_format=2, oldest_reader=1)
    older = await replicas.start([etcd.endpoint], etcd.prefix)
    newer = ReplicaProcess([etcd.endpoint], etcd.prefix, tmp_path / "newer.log", root=tree)
    try:
        await newer.start()
        # A name of the newer version alone: so it is the other one indeed.
        revision = {"id": "r1", "target": "REVISION_TARGET_READY"}
        spec = {"nodeName": "node-1", "revision": [revision]}
        made = {"meta": {"id": "a", "serviceId": "svc", "zone": "z1"}, "spec": spec}
        assert (await newer.post("CreateInstance", {"instance": made}))[0] == 200
        assert (await older.post("CreateInstance", {"instance": {"meta": {"id": "b", "zone": "z"}}}))[0] == 400
        async with older.stub() as old, newer.stub() as new:
            watch = Watching(old.WatchInstances(pb.WatchInstancesRequest()))
            await eventually(lambda: watch.holds({"a"}), what="what the newer one created, at the older one")
            await edit_in_turn(old, new)
            await watch.end()
            resumed = Watching(new.WatchInstances(pb.WatchInstancesRequest(resume_token=watch.token)))
            await old.CreateInstance(pb.CreateInstanceRequest(instance=instance("b")))
            await eventually(lambda: "b" in resumed.known, what="a watch of the older one, resumed at the newer one")
            assert pb.WATCH_KIND_RESYNC not in resumed.kinds()
            assert pb.WATCH_KIND_SNAPSHOT not in resumed.kinds()
            await resumed.end()
        status, read = await newer.post("GetInstance", {"id": "a", "read": {"consistency": 1}})
        assert status == 200
        assert read["instance"]["meta"]["zone"] == "z1"
        assert read["instance"]["meta"]["annotations"] == {"text": "older"}
        assert read["instance"]["status"]["revision"][0]["ready"]["message"] == "last"
    finally:
        await newer.kill()


async def edit_in_turn(old: object, new: object) -> None:
    """One version's writes are made from the other's, and one agent reports to both."""
    version = 0
    for stub, text in ((new, "newer"), (old, "older")):
        change = instance("a", text=text)
        change.meta.version = version
        answer = await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=change))  # type: ignore[attr-defined]
        version = answer.instance.meta.version
    agent = Agent(old, "a")
    await agent.begin()
    for stub, message in ((new, "first"), (old, "second"), (new, "second"), (old, "last")):
        agent.stub = stub
        await agent.report(message=message)


async def raise_the_format(etcd: SharedEtcd, directory: Path) -> None:
    """Let a newer version start, which makes the storage format too new for this one, and leave."""
    tree = make_other_version(directory / "newer", storage_format=2, oldest_reader=2)
    newer = ReplicaProcess([etcd.endpoint], etcd.prefix, directory / "newer.log", root=tree)
    try:
        await newer.start()
    finally:
        await newer.kill()


async def assert_ends_in_words(replica: ReplicaProcess) -> None:
    assert await replica.ended() == 1
    assert "needs a reader of format 2 or newer" in replica.log_text()
    assert "upgrade this process" in replica.log_text()
    assert "Traceback" not in replica.log_text()


@pytest.mark.long
async def test_a_storage_format_that_is_too_new_is_refused_in_words(etcd: SharedEtcd, tmp_path: Path) -> None:
    await raise_the_format(etcd, tmp_path)
    late = ReplicaProcess([etcd.endpoint], etcd.prefix, tmp_path / "late.log")
    try:
        with suppress(AssertionError):  # it may have ended before it was seen to listen
            await late.start(until_ready=False)
        await assert_ends_in_words(late)
    finally:
        await late.kill()


@pytest.mark.long
async def test_a_replica_ends_in_words_when_a_newer_one_makes_the_storage_format_too_new_for_it(
    replicas: Replicas, etcd: SharedEtcd, tmp_path: Path
) -> None:
    running = await replicas.start([etcd.endpoint], etcd.prefix)
    await raise_the_format(etcd, tmp_path)
    await assert_ends_in_words(running)
