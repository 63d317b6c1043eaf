"""The record on disk: its days, its copies, what is deleted, and how it is searched."""

from __future__ import annotations

import shutil
from pathlib import Path

from historypb.v1 import history_pb2 as pb
from hqclient.watch_items import Bookmark, Changes, Resync, SnapshotPart, Synced
from hqpb.v1 import instance_pb2, service_pb2
from recorder.archive import Archive
from recorder.day_file import DAY_MS, Selection
from recorder.decision_tables import LedgerChunk
from recorder.gaps import Gap
from recorder.observed import ObservedLocation, Row

DAY: int = 20_000 * DAY_MS
SOURCES = (service_pb2.Source(cluster="ams", replica="r1"),)


def instance(id_: str, service: str = "web", *, ready: bool = True) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id, made.meta.cluster = id_, service, "ams"
    made.spec.node_name = "n1"
    made.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE if ready else instance_pb2.CONDITION_STATUS_FALSE
    return made


def put(at_ms: int, id_: str, kind: int = pb.EVENT_KIND_CREATED, *, ready: bool = True) -> Row:
    body = instance(id_, ready=ready).SerializeToString()
    return Row(at_ms, kind, "ams", id_, "web", "n1", 1, ready, "", "", body)


def gone(at_ms: int, id_: str) -> Row:
    return Row(at_ms, pb.EVENT_KIND_DELETED, "ams", id_, "web", "n1", 2, False, "", "", b"")


def ids(archive: Archive, when_ms: int, **which: str) -> list[str]:
    return [one.meta.id for one in archive.at(when_ms, Selection(**which)).instances]


def test_each_day_can_be_read_alone(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "record", 30, 1 << 30)
    archive.write(DAY + 10, [put(DAY + 10, "web-1"), put(DAY + 10, "web-2")], [], ["ams"], {})
    archive.write(DAY + DAY_MS + 20, [gone(DAY + DAY_MS + 20, "web-1")], [], ["ams"], {})
    archive.close()
    newest = max((tmp_path / "record").glob("*.sqlite"))
    (tmp_path / "copy").mkdir()
    for each in newest.parent.glob(newest.name + "*"):
        shutil.copy(each, tmp_path / "copy" / each.name)
    alone = Archive(tmp_path / "copy", 30, 1 << 30)
    assert ids(alone, DAY + DAY_MS + 19) == ["web-1", "web-2"]
    assert ids(alone, DAY + DAY_MS + 20) == ["web-2"]
    assert ids(archive, DAY + 15) == ["web-1", "web-2"]
    assert ids(archive, DAY + 15, service="other") == []


def test_an_instance_that_has_moved_away_is_not_on_its_old_node(tmp_path: Path) -> None:
    archive = Archive(tmp_path, 30, 1 << 30)
    moved = put(DAY + 20, "web-1", pb.EVENT_KIND_CHANGED)._replace(node="n2")
    archive.write(DAY + 20, [put(DAY + 10, "web-1"), put(DAY + 10, "web-2"), moved], [], ["ams"], {})
    assert ids(archive, DAY + 15, node="n1") == ["web-1", "web-2"]
    assert (ids(archive, DAY + 25, node="n1"), ids(archive, DAY + 25, node="n2")) == (["web-2"], ["web-1"])
    assert ids(archive, DAY + 25, service="web", instance="web-1", cluster="ams") == ["web-1"]


def test_a_dip_between_two_counts_is_not_lost(tmp_path: Path) -> None:
    archive = Archive(tmp_path, 30, 1 << 30)
    rows = [
        put(DAY + 10, "web-1"),
        put(DAY + 10, "web-2"),
        put(DAY + 1_500, "web-1", pb.EVENT_KIND_NOT_READY, ready=False),
    ]
    archive.write(DAY + 10, rows, [], ["ams"], {})
    archive.write(
        DAY + 1_600, [put(DAY + 1_600, "web-1", pb.EVENT_KIND_READY), gone(DAY + 2_500, "web-2")], [], ["ams"], {}
    )
    times = [DAY + 1_000, DAY + 2_000, DAY + 3_000]
    assert archive.counts(Selection(service="web"), times) == [(2, 2, 2), (2, 2, 1), (1, 1, 1)]
    assert archive.counts(Selection(instance="web-2"), times) == [(1, 1, 1), (1, 1, 1), (0, 0, 0)]


def test_changes_of_one_millisecond_count_in_their_order(tmp_path: Path) -> None:
    archive = Archive(tmp_path, 30, 1 << 30)
    made, reported = put(DAY + 10, "web-1", ready=False), put(DAY + 10, "web-1", pb.EVENT_KIND_READY)
    archive.write(DAY + 10, [made, reported], [], ["ams"], {})
    assert archive.counts(Selection(service="web"), [DAY + 5, DAY + 15]) == [(0, 0, 0), (1, 1, 0)]


def test_what_programs_print_never_enters_the_record() -> None:
    crashed = instance("web-1", ready=False)
    container = crashed.status.revision.add(id="r1").container.add(name="main", restart_count=1)
    container.last_termination.exit_code, container.last_termination.output = 3, "a line of its output"
    container.state.terminated.exit_code, container.state.terminated.output = 3, "another line"
    location = ObservedLocation("ams", {})
    step = location.apply(Changes((service_pb2.WatchEvent(version=7, put=crashed),), "", SOURCES), DAY)
    assert b"line" not in step.rows[0].body
    kept = instance_pb2.Instance.FromString(step.rows[0].body).status.revision[0].container[0]
    assert kept.last_termination.exit_code == kept.state.terminated.exit_code == 3
    assert crashed.status.revision[0].container[0].last_termination.output  # HQ's own is left alone


def test_before_the_first_day_nothing_is_made_up(tmp_path: Path) -> None:
    archive = Archive(tmp_path, 30, 1 << 30)
    archive.write(DAY + 10, [put(DAY + 10, "web-1")], [], ["ams"], {})
    before = archive.at(DAY - 1, Selection())
    assert not before.instances
    assert before.gap


def test_the_oldest_days_go_first_and_the_newest_stays(tmp_path: Path) -> None:
    archive = Archive(tmp_path, 2, 1 << 30)
    for day in range(4):
        archive.write(DAY + day * DAY_MS, [put(DAY + day * DAY_MS, f"web-{day}")], [], ["ams"], {})
    assert len(archive.prune()) == 2
    assert Archive(tmp_path, 30, 1).prune()
    assert ids(archive, DAY + 3 * DAY_MS) == ["web-0", "web-1", "web-2", "web-3"]


def test_a_gap_over_midnight_is_one_gap(tmp_path: Path) -> None:
    archive = Archive(tmp_path, 30, 1 << 30)
    archive.write(DAY + 10, [put(DAY + 10, "web-1")], [Gap("ams", DAY + 9, None, "away")], [], {})
    archive.write(DAY + DAY_MS + 10, [], [], ["ams"], {"ams": DAY + DAY_MS + 5})
    assert archive.gaps(DAY, DAY + 2 * DAY_MS) == [Gap("ams", DAY + 9, DAY + DAY_MS + 5, "away")]
    during = archive.at(DAY + DAY_MS + 2, Selection())
    assert (during.age_ms, during.gap) == (DAY_MS - 7, "ams: away")


def test_decisions_of_the_cms_at_midnight_are_read_again_with_the_day_before(tmp_path: Path) -> None:
    """They stand first in the new day's file, before the chunk with which that day begins."""
    archive = Archive(tmp_path, 30, 1 << 30)
    said = [(10, True), (20, False), (DAY_MS + 1, False), (DAY_MS + 2, True), (DAY_MS + 3, False)]
    for after_ms, is_start in said:
        archive.write(DAY + after_ms, [], [], [], {}, [], [LedgerChunk(DAY + after_ms, is_start, b"")])
    archive.close()

    def read(since_ms: int) -> list[int]:
        return [one.at_ms - DAY for one in archive.ledger_chunks(DAY + since_ms, DAY + 2 * DAY_MS)]

    assert read(0) == [after_ms for after_ms, _ in said]
    assert read(DAY_MS + 5) == [DAY_MS + 2, DAY_MS + 3]


def test_an_unfinished_file_of_a_day_is_continued_and_doubles_no_event(tmp_path: Path) -> None:
    archive = Archive(tmp_path, 30, 1 << 30)
    archive.write(DAY + 10, [put(DAY + 10, "web-1")], [], ["ams"], {})
    archive.close()
    again = Archive(tmp_path, 30, 1 << 30)
    again.write(DAY + 20, [gone(DAY + 20, "web-1")], [], ["ams"], {})
    assert [row.kind for _, row in again.events(Selection(), 0, DAY + DAY_MS)] == [
        pb.EVENT_KIND_DELETED,
        pb.EVENT_KIND_CREATED,
    ]


def snapshot(location: ObservedLocation, now_ms: int, *instances: instance_pb2.Instance) -> list[Row]:
    location.apply(SnapshotPart(instances), now_ms)
    return location.apply(Synced("token", SOURCES), now_ms).rows


def test_a_snapshot_in_parts_is_compared_when_it_is_complete() -> None:
    location = ObservedLocation("ams", {"web-1": instance("web-1"), "web-2": instance("web-2")})
    assert not location.apply(SnapshotPart((instance("web-2"),)), 5).rows
    rows = location.apply(Synced("token", SOURCES), 6).rows
    assert [(row.instance, row.kind, row.version) for row in rows] == [("web-1", pb.EVENT_KIND_DELETED, 0)]


def test_a_lost_stream_is_a_gap_until_a_bookmark() -> None:
    location = ObservedLocation("ams", {})
    snapshot(location, 1, instance("web-1"))
    assert location.apply(Resync("lagged"), 2).gap == "HQ lost continuity: lagged"
    assert not snapshot(location, 3, instance("web-1"))
    assert location.apply(Bookmark("token", SOURCES), 4).is_current


def test_an_event_says_what_happened() -> None:
    location = ObservedLocation("ams", {})
    snapshot(location, 1, instance("web-1"))
    event = service_pb2.WatchEvent(version=7, put=instance("web-1", ready=False))
    [row] = location.apply(Changes((event,), "token", SOURCES), 2).rows
    assert (row.kind, row.version, row.ready) == (pb.EVENT_KIND_NOT_READY, 7, False)
