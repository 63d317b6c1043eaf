"""Contents of snapshots: no service can fill the store with them, and contents without a snapshot are deleted."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from control.records import MAX_RECORD_BYTES
from nanny.actions.contents import Contents
from nanny.actions.unused import UnusedContents
from nanny.api.orders import NannyOrders
from nanny.automaton.states import Target
from nanny.records import kinds
from nanny.records.history import KEPT
from nanny.records.stored_snapshots import MAX_CHUNKS
from nanny.snapshots.content import text_of
from nannypb.v1 import records_pb2
from nannypb.v1 import service_pb2 as pb
from serving.calls.methods import Call
from serving.errors import NotFound, Overloaded
from tests.nanny.orders import SERVICE, Dictionary, Ordered, refused
from tests.support.sample_instances import eventually

BIG = MAX_CHUNKS // 4


def add_big(web: Ordered, snapshot: str) -> None:
    for number in range(BIG):
        web.change.put(kinds.CHUNK, kinds.of_chunk(SERVICE, snapshot, number), records_pb2.ChunkRecord(data=b"x"))
    made = pb.Snapshot(id=snapshot, service_id=SERVICE)
    web.send(snapshot=records_pb2.SnapshotRecord(snapshot=made, chunks=BIG))


def chunks_of(web: Ordered) -> int:
    return sum(kind == kinds.CHUNK.name for kind, _ in web.change.kept)


def test_the_oldest_contents_that_nothing_refers_to_make_room() -> None:
    web = Ordered()
    for snapshot in "abcdef":
        add_big(web, snapshot)
    assert chunks_of(web) == MAX_CHUNKS
    assert list(web.record.known) == ["c", "d", "e", "f"]


def test_contents_in_use_are_kept_and_more_of_them_than_fit_are_refused() -> None:
    web = Ordered()
    for snapshot in "abcd":
        add_big(web, snapshot)
        web.target(snapshot, Target.PREPARED)
    assert "take too much of the store" in refused(lambda: add_big(web, "e"))
    assert list(web.record.known) == ["a", "b", "c", "d"]


class Store(Dictionary):
    """A controller over records that change at once."""

    def records(self, kind: Any) -> dict[str, Any]:
        return {name: found for (of, name), found in self.kept.items() if of == kind.name}

    def change(self) -> Store:
        return self

    creation = change

    async def commit(self) -> None:
        pass


async def test_a_content_without_a_snapshot_is_deleted_once_it_was_found_twice() -> None:
    store = Store()
    for name in ("web/kept/0000", *(f"web/refused/{number:04d}" for number in range(120))):
        store.put(kinds.CHUNK, name, records_pb2.ChunkRecord())
    store.put(kinds.SNAPSHOT, "web/kept", records_pb2.SnapshotRecord(chunks=1))
    unused = UnusedContents(cast("Any", store))
    await unused.run("")
    assert len(store.records(kinds.CHUNK)) == 121
    store.put(kinds.CHUNK, "web/new/0000", records_pb2.ChunkRecord())
    await unused.run("")
    assert sorted(store.records(kinds.CHUNK)) == ["web/kept/0000", "web/new/0000"]


async def test_snapshots_that_are_refused_again_and_again_store_no_more_than_a_service_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each snapshot left its content behind: an uploader of one service could fill the store of all."""
    store = Store()
    store.put(kinds.SERVICE, SERVICE, records_pb2.ServiceRecord(head="other"))
    contents = Contents(cast("Any", {}), cast("Any", {}), ["ams"])
    monkeypatch.setattr("nanny.api.orders.MAX_CHUNKS", 2)

    async def submit(*_: Any, **__: Any) -> None:
        raise AssertionError("HEAD is other")

    orders = NannyOrders(cast("Any", store), cast("Any", SimpleNamespace(submit=submit)), contents, ["ams"])
    for number in range(5):
        content = f"{{service: web, instances: [{{id: web-{number}}}], revisions: [{{id: v1}}]}}"
        request = pb.CreateSnapshotRequest(service_id=SERVICE, content=content.encode(), parent="nope")
        with pytest.raises(AssertionError if number < 4 else Overloaded):
            await orders.add_snapshot(request, Call())
    assert len(store.records(kinds.CHUNK)) == 4


async def test_chunks_of_two_texts_with_the_same_content_are_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that was refused left its chunks; a shorter one took the first of them, which nobody could read."""
    monkeypatch.setattr("nanny.snapshots.content.CHUNK_BYTES", 1_000)
    store, sent = Store(), []
    store.put(kinds.SERVICE, SERVICE, records_pb2.ServiceRecord(head="other"))
    contents = Contents(cast("Any", {}), cast("Any", {}), ["ams"])

    async def submit(_: str, event: records_pb2.ServiceEvent, **__: Any) -> None:
        sent.append(event.snapshot)
        raise AssertionError("HEAD is other")

    orders = NannyOrders(cast("Any", store), cast("Any", SimpleNamespace(submit=submit)), contents, ["ams"])
    long = "# " + "".join(f"{number}," for number in range(2_000)) + "\n"
    text = "{service: web, instances: [{id: web-1}], revisions: [{id: v1}]}"
    for content in (long + text, text):
        with pytest.raises(AssertionError):
            await orders.add_snapshot(pb.CreateSnapshotRequest(service_id=SERVICE, content=content.encode()), Call())
    chunks = store.records(kinds.CHUNK)
    names = [kinds.of_chunk(SERVICE, sent[1].snapshot.id, number) for number in range(sent[1].chunks)]
    assert text_of([chunks[name].data for name in names]).decode() == long + text
    store.kept.pop((kinds.CHUNK.name, names[-1]))
    with pytest.raises(Overloaded, match="another text of snapshot"):
        await orders.add_snapshot(pb.CreateSnapshotRequest(service_id=SERVICE, content=text.encode()), Call())


def test_long_comments_keep_nobody_from_pausing_a_service() -> None:
    web = Ordered().add("a")
    for number in range(KEPT + 10):
        web.send(comment="\U0001f642" * 500, updated=pb.InfoAttributes(description=str(number)))
    web.pause()
    stored = web.change.kept[kinds.HISTORY.name, SERVICE]
    assert stored.ByteSize() < MAX_RECORD_BYTES
    assert stored.entry[-1].what == "actions paused"


async def test_each_content_is_read_once_for_all_callers_and_those_of_a_service_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some megabytes of YAML take a minute: whoever listed the instances of a few such snapshots had all threads."""
    reading, most, ends = Counter[str](), Counter[str](), threading.Event()

    def read(service: str, *_: Any, **__: Any) -> Any:
        reading[service] += 1
        most[service] = max(most[service], reading[service])
        ends.wait(10)
        reading[service] -= 1
        return SimpleNamespace()

    monkeypatch.setattr("nanny.actions.contents.read_content", read)
    snapshots = {f"web/{number}": records_pb2.SnapshotRecord(chunks=1) for number in range(5)}
    snapshots["mail/1"] = records_pb2.SnapshotRecord(chunks=1)
    chunks = {f"{name}/0000": records_pb2.ChunkRecord(data=zlib.compress(b"{}")) for name in snapshots}
    contents = Contents(cast("Any", snapshots), cast("Any", chunks), ["ams"])
    looks = [asyncio.ensure_future(contents.content_of("web", str(number % 5))) for number in range(20)]
    await asyncio.sleep(0)
    other = asyncio.ensure_future(contents.content_of("mail", "1"))
    await eventually(lambda: reading == {"web": 1, "mail": 1}, 5.0, "both to be read")
    looks.pop(0).cancel()
    ends.set()
    await asyncio.gather(other, *looks)
    assert most == {"web": 1, "mail": 1}


async def test_contents_of_one_service_take_no_place_of_others() -> None:
    text = zlib.compress(b"{service: web, instances: [], revisions: [{id: v1}]}")
    snapshots = {f"web/{number}": records_pb2.SnapshotRecord(chunks=1) for number in range(20)}
    snapshots["mail/1"] = records_pb2.SnapshotRecord(chunks=1)
    chunks = {f"{name}/0000": records_pb2.ChunkRecord(data=text) for name in snapshots if name.startswith("web/")}
    chunks["mail/1/0000"] = records_pb2.ChunkRecord(data=zlib.compress(zlib.decompress(text).replace(b"web", b"mail")))
    contents = Contents(cast("Any", snapshots), cast("Any", chunks), ["ams"])
    for service, snapshot in (("mail", "1"), *(("web", str(number)) for number in range(20))):
        await contents.content_of(service, snapshot)
    assert list(contents._kept) == ["mail/1", *(f"web/{number}" for number in range(12, 20))]


async def test_a_damaged_content_is_no_error_of_the_server() -> None:
    snapshots, chunks = {"web/a": records_pb2.SnapshotRecord(chunks=1)}, {"web/a/0000": records_pb2.ChunkRecord()}
    with pytest.raises(NotFound, match="is damaged"):
        await Contents(cast("Any", snapshots), cast("Any", chunks), ["ams"]).content_of("web", "a")
