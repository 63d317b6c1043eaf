"""What a watch shows, message by message."""

from __future__ import annotations

from hqclient.watch_items import Bookmark, Changes, Resync, SnapshotPart, Synced, WatchProgress
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


def put(instance_id: str, version: int = 1) -> pb.WatchEvent:
    instance = instance_pb2.Instance(meta=instance_pb2.InstanceMeta(id=instance_id))
    return pb.WatchEvent(version=version, put=instance)


def message(kind: pb.WatchKind, *events: pb.WatchEvent, token: str = "") -> pb.WatchInstancesResponse:
    return pb.WatchInstancesResponse(kind=kind, events=events, resume_token=token)


def snapshot(*ids: str) -> pb.WatchInstancesResponse:
    return message(pb.WATCH_KIND_SNAPSHOT, *(put(i) for i in ids))


def synced(token: str) -> pb.WatchInstancesResponse:
    return message(pb.WATCH_KIND_SYNCED, token=token)


def events(*changes: pb.WatchEvent, token: str = "") -> pb.WatchInstancesResponse:
    return message(pb.WATCH_KIND_EVENTS, *changes, token=token)


def test_a_snapshot_is_complete_only_when_it_is_synced() -> None:
    progress = WatchProgress()
    (part,) = progress.apply_message(snapshot("a", "b"))
    assert isinstance(part, SnapshotPart)
    assert progress.resume_token == ""
    assert progress.apply_message(synced("t1")) == [Synced("t1", ())]
    assert progress.resume_token == "t1"


def test_a_snapshot_cut_in_the_middle_is_taken_back() -> None:
    progress = WatchProgress()
    progress.apply_message(snapshot("a"))
    (taken_back,) = progress.on_stream_end()
    assert isinstance(taken_back, Resync)
    assert progress.resume_token == ""


def test_a_token_on_a_part_of_a_snapshot_is_not_resumed_from() -> None:
    progress = WatchProgress()
    progress.apply_message(message(pb.WATCH_KIND_SNAPSHOT, put("a"), token="t0"))
    assert progress.resume_token == ""


def test_a_cut_after_the_snapshot_goes_on_silently_from_the_token() -> None:
    progress = WatchProgress()
    progress.apply_message(snapshot("a"))
    progress.apply_message(synced("t1"))
    assert progress.on_stream_end() == []
    assert progress.resume_token == "t1"


def test_a_version_split_over_messages_is_shown_whole() -> None:
    progress = WatchProgress("t1")
    assert progress.apply_message(events(put("a", 7))) == []
    (changes,) = progress.apply_message(events(put("b", 7), token="t7"))
    assert isinstance(changes, Changes)
    assert [event.put.meta.id for event in changes.events] == ["a", "b"]
    assert progress.resume_token == "t7"


def test_half_a_version_before_a_cut_is_not_shown_and_comes_again() -> None:
    progress = WatchProgress("t1")
    progress.apply_message(events(put("a", 7)))
    assert progress.on_stream_end() == []
    assert progress.resume_token == "t1"
    (changes,) = progress.apply_message(events(put("a", 7), token="t7"))
    assert isinstance(changes, Changes)
    assert len(changes.events) == 1


def test_bookmarks_move_the_token() -> None:
    progress = WatchProgress("t1")
    assert progress.apply_message(message(pb.WATCH_KIND_BOOKMARK, token="t9")) == [Bookmark("t9", ())]
    assert progress.resume_token == "t9"


def test_a_resync_voids_the_token_and_is_shown() -> None:
    progress = WatchProgress("t1")
    resync = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_RESYNC, reason="history too short")
    assert progress.apply_message(resync) == [Resync("history too short")]
    assert progress.resume_token == ""


def test_a_location_is_resynced_after_a_cut_even_if_another_one_started_over() -> None:
    progress = WatchProgress()
    for name in ("east", "west"):
        progress.apply_message(
            pb.WatchInstancesResponse(kind=pb.WATCH_KIND_SNAPSHOT, sources=[pb.Source(cluster=name)])
        )
    progress.apply_message(pb.WatchInstancesResponse(kind=pb.WATCH_KIND_RESYNC, sources=[pb.Source(cluster="east")]))
    assert [item.cluster for item in progress.on_stream_end() if isinstance(item, Resync)] == ["west"]


def test_a_token_refused_by_the_server_is_shown_as_a_resync() -> None:
    progress = WatchProgress("t1")
    assert progress.start_over("epoch over") == [Resync("epoch over")]
    assert progress.resume_token == ""
    assert progress.start_over("epoch over") == []


def test_an_unannounced_second_snapshot_never_mixes_with_the_first() -> None:
    progress = WatchProgress("t1")
    resync, part = progress.apply_message(snapshot("a"))
    assert isinstance(resync, Resync)
    assert isinstance(part, SnapshotPart)


def test_a_version_with_a_collapsed_part_is_collapsed() -> None:
    progress = WatchProgress("t1")
    first = events(put("a", 7))
    first.collapsed = True
    progress.apply_message(first)
    (changes,) = progress.apply_message(events(put("b", 7), token="t7"))
    assert isinstance(changes, Changes)
    assert changes.collapsed


def test_kinds_of_a_later_api_are_passed_over() -> None:
    progress = WatchProgress("t1")
    unknown = pb.WatchInstancesResponse()
    unknown.ParseFromString(b"\x08\x63")  # kind = 99
    assert progress.apply_message(unknown) == []
