"""The backlog of all watchers together is counted once and bounded; the furthest behind is cut off first."""

from __future__ import annotations

from hq.memory.entry import Event
from hq.memory.fanout import Fanout
from hq.memory.history import VersionEvents, WatchedEvent
from hq.memory.query import Query
from hq.memory.watcher import Watcher
from hqpb.v1 import service_pb2 as pb
from tests.support.cache_entries import entry

MANY = 1 << 30
KB = 1_000


class Site:
    """A fan-out, with watchers of single instances, and changes of these instances."""

    def __init__(self, max_bytes: int) -> None:
        self.fanout = Fanout(max_bytes)

    def watch(self, instance_id: str) -> Watcher:
        return self.fanout.subscribe(Query(pb.InstanceFilter(instance_id=[instance_id])))

    def change(self, instance_id: str, size_bytes: int) -> None:
        after = entry(instance_id, text="x" * size_bytes)
        self.fanout.publish(VersionEvents(self.fanout.version + 1, [WatchedEvent(Event(1, None, after))]))

    @property
    def waiting_bytes(self) -> int:
        return self.fanout.backlog.size_bytes


def test_pending_bytes_are_counted_once_for_all_watchers() -> None:
    site = Site(MANY)
    watchers = [site.watch("a") for _ in range(100)]
    site.change("a", 100 * KB)
    assert 100 * KB < site.waiting_bytes < 103 * KB
    for watcher in watchers[1:]:
        watcher.take(MANY)
    assert 100 * KB < site.waiting_bytes < 101 * KB
    watchers[0].lose("it is over")
    assert site.waiting_bytes == 0


def test_bytes_held_by_a_watcher_are_released_when_it_leaves_or_resyncs() -> None:
    site = Site(MANY)
    query = Query(pb.InstanceFilter(instance_id=["a"]))
    for _ in range(3):
        watcher = site.fanout.subscribe(query)
        site.change("a", 10 * KB)
        site.fanout.unsubscribe(query, watcher)
    site.watch("a")
    site.change("a", 10 * KB)
    site.fanout.lose_all("gone")
    assert site.waiting_bytes == 0


def test_the_backlog_of_many_slightly_late_readers_is_bounded_together() -> None:
    """Each is within its own share: the furthest behind is cut off first, and readers that keep up are not."""
    site = Site(1_600 * KB)
    names = [f"i-{number:02}" for number in range(40)]
    watchers = {name: site.watch(name) for name in names}
    reader = site.watch("i-00")
    most = 0
    for size, name in enumerate(names, 1):
        for _ in range(2):
            site.change(name, size * KB)
            reader.take(MANY)
            most = max(most, site.waiting_bytes)
    assert most <= 1_600 * KB
    lost = [name for name in names if watchers[name].lost]
    assert lost
    assert lost == names[-1 - len(lost) : -1]  # of the very last, one change came just now, and was let through
    assert not reader.lost
    assert "all watches together" in watchers[lost[0]].lost


def test_a_watcher_is_not_cut_off_for_events_it_had_no_time_to_read() -> None:
    site = Site(100 * KB)
    watchers = [site.watch("a"), site.watch("b")]
    site.change("a", 150 * KB)
    assert site.waiting_bytes > 100 * KB
    assert not any(watcher.lost for watcher in watchers)
    site.change("b", 10 * KB)
    assert [bool(watcher.lost) for watcher in watchers] == [True, False]
    assert site.waiting_bytes < 100 * KB


def test_a_snapshot_that_is_older_than_the_history_is_given_up() -> None:
    fanout = Fanout(MANY)
    query = Query(pb.InstanceFilter(instance_id=["a"]))
    fanout.version = 5
    slow, quick = fanout.subscribe(query, iter([[b"event"]])), fanout.subscribe(query, iter([[b"event"]]))
    fanout.version = 6
    later = fanout.subscribe(query, iter([[b"event"]]))
    fanout.on_snapshot_sent(quick)
    fanout.forget(5)
    assert not slow.lost
    fanout.forget(6)
    assert "older than the history" in slow.lost
    assert [*slow.snapshot] == []
    assert not quick.lost
    assert not later.lost
    assert [*later.snapshot] == [[b"event"]]
