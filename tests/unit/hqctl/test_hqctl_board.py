"""What the live table of a watch shows."""

from __future__ import annotations

import grpc
import pytest

from hqcli.terminal import fit_columns, lines
from hqclient.errors import HqApiError
from hqclient.watch_items import Bookmark, Changes, Interrupted, Resync, SnapshotPart, Synced
from hqctl.output.watch_view import Board, WatchLines
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb


def one(instance_id: str, *, ready: bool, cluster: str = "east") -> instance_pb2.Instance:
    meta = instance_pb2.InstanceMeta(id=instance_id, service_id="web", cluster=cluster)
    instance = instance_pb2.Instance(meta=meta)
    instance.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE if ready else instance_pb2.CONDITION_STATUS_FALSE
    return instance


def ids(board: Board, room: int = 10) -> list[str]:
    names, rows, _ = board.table(room, 0.0)
    return [row[names.index("INSTANCE")] for row in rows]


def board_of(*instances: instance_pb2.Instance) -> Board:
    board = Board()
    board.apply_item(SnapshotPart(instances), "12:00:00")
    board.apply_item(Synced("t", ()), "12:00:00")
    return board


def test_not_ready_instances_come_first_and_omitted_ones_are_counted() -> None:
    board = board_of(one("a", ready=True), one("b", ready=False), one("c", ready=True))
    assert ids(board) == ["b", "a", "c"]
    assert board.title() == "2 of 3 instances ready, up to date"
    assert board.table(1, 0.0)[2] == "… 2 more, all ready"


def test_changes_move_rows_and_are_listed() -> None:
    board = board_of(one("a", ready=True), one("b", ready=True))
    events = (
        pb.WatchEvent(put=one("b", ready=False)),
        pb.WatchEvent(delete=pb.InstanceRef(id="a", cluster="east")),
    )
    board.apply_item(Changes(events, "t2", ()), "12:00:01")
    assert ids(board) == ["b"]
    assert [(clock, kind) for clock, kind, _ in board.changes] == [("12:00:01", "put"), ("12:00:01", "gone")]


def test_a_resync_of_one_cluster_forgets_only_its_instances() -> None:
    board = board_of(one("a", ready=True), one("a", ready=True, cluster="west"))
    board.apply_item(Resync("too slow", "west"), "12:00:01")
    assert ids(board) == ["a"]
    board.apply_item(Resync("too slow"), "12:00:02")
    assert ids(board) == []


def test_a_broken_connection_is_shown_until_the_next_message() -> None:
    board = board_of(one("a", ready=True))
    board.apply_item(Interrupted(HqApiError(grpc.StatusCode.UNAVAILABLE, "cut"), 1.0), "12:00:01")
    assert "NO CONNECTION" in board.title()
    board.apply_item(Bookmark("t3", ()), "12:00:02")
    assert board.title().endswith("up to date")


def test_a_table_never_wraps_whatever_the_room() -> None:
    names = ("INSTANCE", "SERVICE", "ENDPOINTS", "VERSION")
    rows = [["i" * 30, "s" * 30, "e" * 60, "12"]]
    for room in (20, 40, 60, 80, 200):
        shown = lines(names, rows, fit_columns(names, rows, room), room=room)
        assert all(len(line) <= room for line in shown), room
    assert lines(names, rows)[1].endswith("  12")


def test_a_column_too_narrow_to_be_of_use_is_left_out_for_the_others() -> None:
    names = ("INSTANCE", "NODE", "READY", "REVISION", "HEARTBEAT")
    rows = [["i" * 36, "n" * 35, "yes", "r" * 21, "12s"]]
    shown = lines(names, rows, fit_columns(names, rows, 76), room=76)
    assert shown[0].split() == ["INSTANCE", "NODE", "READY", "HEARTBEAT"]
    assert shown[1].split() == ["i" * 36, "n" * 19 + "…", "yes", "12s"]
    assert fit_columns(names, rows, 200) == [36, 35, 5, 21, 9]


def test_readiness_stays_where_other_columns_make_room() -> None:
    names = ("INSTANCE", "SERVICE", "NODE", "READY", "REVISION", "HEARTBEAT")
    rows = [["shop-frontend-1", "shop", "node-1.rack-7.example", "no:HeartbeatTimeout", "release-2026-11-1", "11m33s"]]
    assert lines(names, rows, fit_columns(names, rows, 50), room=50)[0].split() == [
        *("INSTANCE", "SERVICE", "READY", "HEARTBEAT")
    ]


def test_the_column_that_names_a_row_is_cut_and_never_left_out() -> None:
    names = ("REVISION", "TARGET", "INSTALLED", "READY", "CONTAINER", "STATE")
    rows = [["release-2026-11-1", "READY", "yes", "yes", "web", "running"]]
    assert lines(names, rows, fit_columns(names, rows, 40), room=40)[1].startswith("release-2…  READY")


@pytest.mark.parametrize("room", [32, 40])
def test_an_event_names_its_instance_however_narrow_the_terminal_is(room: int) -> None:
    names = ("TIME", "WHAT", "INSTANCE", "REVISION", "NODE", "WHY")
    rows = [["2026-11-21T02:07:45Z", "recovery", "shop-frontend-1", "r1", "node-a", "reported again"]]
    shown = lines(names, rows, fit_columns(names, rows, room), room=room)[1]
    assert shown.split()[:2] == ["recovery", "shop-frontend-1"]
    assert len(shown) <= room


def test_lines_of_a_gateway_name_the_cluster_and_keep_instances_of_one_id_apart() -> None:
    told, east, west = WatchLines(snapshot=True), pb.Source(cluster="east"), pb.Source(cluster="west")
    items = (
        Bookmark("", (east, west)),
        SnapshotPart((one("a", ready=True),)),
        Synced("t1", (east,)),
        SnapshotPart((one("a", ready=False, cluster="west"),)),
        Synced("t2", (west,)),
        Changes((pb.WatchEvent(put=one("a", ready=True, cluster="west")),), "t3", (west,)),
        Resync("too slow", "west"),
        Changes((pb.WatchEvent(delete=pb.InstanceRef(id="a", cluster="east")),), "t4", (east,)),
    )
    lines_of_all = [(kind, *text.split("  ")[0:1]) for item in items for kind, text in told.of(item)]
    assert [(kind, text.split("; ")[0]) for kind, text in lines_of_all] == [
        ("is", "east/a"),
        ("synced", "1 there in east"),
        ("is", "west/a"),
        ("synced", "1 there in west"),
        ("put", "west/a"),
        ("resync", "too slow"),
        ("gone", "east/a"),
    ]


def test_a_change_of_readiness_is_shown_with_the_state_before() -> None:
    told = WatchLines(snapshot=False)
    assert list(told.of(SnapshotPart((one("a", ready=True),)))) == []
    ((_, text),) = told.of(Changes((pb.WatchEvent(put=one("a", ready=False)),), "t", ()))
    assert "yes>no" in text
