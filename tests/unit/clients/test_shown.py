"""What a watch has shown, and when it has shown everything."""

from __future__ import annotations

from hqclient.watch_items import Bookmark, Changes, Resync, Shown, SnapshotPart, Synced
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


def of(*clusters: str) -> tuple[pb.Source, ...]:
    return tuple(pb.Source(cluster=cluster, replica="r") for cluster in clusters)


def one(cluster: str, instance_id: str) -> instance_pb2.Instance:
    return instance_pb2.Instance(meta=instance_pb2.InstanceMeta(cluster=cluster, id=instance_id))


def of_a_gateway() -> Shown:
    """A gateway that has shown web-1 of east and of west, and is whole."""
    shown = Shown()
    for item in (
        Bookmark("", of("east", "west")),
        SnapshotPart((one("east", "web-1"),)),
        Synced("t1", of("east")),
        SnapshotPart((one("west", "web-1"),)),
        Synced("t2", of("west")),
    ):
        assert not shown.is_whole
        shown.apply_item(item)
    assert shown.is_whole
    return shown


def test_a_replica_has_shown_all_once_it_is_synced() -> None:
    shown = Shown()
    shown.apply_item(SnapshotPart((one("east", "web-1"),)))
    assert (shown.is_whole, shown.missing) == (False, ["east"])
    shown.apply_item(Synced("t1", of("east")))
    assert (shown.is_whole, shown.missing) == (True, [])


def test_a_gateway_has_shown_all_once_every_location_is_synced() -> None:
    assert set(of_a_gateway().instances) == {("east", "web-1"), ("west", "web-1")}


def test_a_resync_of_one_location_voids_that_one_until_it_is_synced() -> None:
    shown = of_a_gateway()
    shown.apply_item(Resync("too slow", "west"))
    assert (set(shown.instances), shown.missing, shown.is_whole) == ({("east", "web-1")}, ["west"], False)
    shown.apply_item(Synced("t3", of("west")))
    assert shown.is_whole


def test_a_resync_of_everything_forgets_everything() -> None:
    shown = of_a_gateway()
    shown.apply_item(Resync("another history"))
    assert (shown.instances, shown.is_whole) == ({}, False)


def test_changes_concern_the_instance_of_their_own_location() -> None:
    shown = of_a_gateway()
    gone, left = pb.InstanceRef(cluster="east", id="web-1"), pb.InstanceRef(cluster="west", id="web-1")
    shown.apply_item(Changes((pb.WatchEvent(delete=gone), pb.WatchEvent(put=one("east", "web-2"))), "t3", of("east")))
    assert set(shown.instances) == {("west", "web-1"), ("east", "web-2")}
    shown.apply_item(Changes((pb.WatchEvent(left=left),), "t4", of("west")))
    assert set(shown.instances) == {("east", "web-2")}


def test_a_list_of_a_gateway_lacks_the_locations_that_did_not_answer() -> None:
    shown = Shown()
    silent = pb.Source(cluster="west", error="no replica accepts connections")
    shown.add_page(pb.FindInstancesResponse(instances=[one("east", "web-1")], sources=[*of("east"), silent]))
    assert (set(shown.instances), shown.missing, shown.is_whole) == ({("east", "web-1")}, ["west"], False)
