"""Which watchers get which changes; a slow reader costs nobody but itself."""

from __future__ import annotations

import asyncio

from hq.memory.entry import Entry, Event
from hq.memory.fanout import Fanout
from hq.memory.history import VersionEvents, WatchedEvent
from hq.memory.query import Query
from hq.memory.watcher import Alarm, Backlog, Watcher
from hqpb.v1 import service_pb2 as pb
from tests.support.cache_entries import Feed, spec_value
from tests.support.virtual_time import in_virtual_time

ALL = Query(pb.InstanceFilter())
OF_S = Query(pb.InstanceFilter(service_id=["s", "s-3"]))
OF_T = Query(pb.InstanceFilter(service_id=["t"]))
MANY = 1 << 30


class Changes:
    """Makes the next change of one instance."""

    def __init__(self) -> None:
        self._feed = Feed()

    def __call__(self, service: str | None, text: str = "") -> VersionEvents:
        ((before, after),) = self._feed(spec=spec_value("a", service, text=text) if service else None)
        return VersionEvents(self._feed.cache.version, [self._event(before, after)])

    def _event(self, before: Entry | None, after: Entry | None) -> WatchedEvent:
        return WatchedEvent(Event(self._feed.cache.version, before, after))


def kinds(watcher: Watcher) -> list[str]:
    messages = [pb.WatchInstancesResponse.FromString(b"".join(d.events)) for d in watcher.take(MANY)]
    return [str(event.WhichOneof("change")) for message in messages for event in message.events]


def test_a_watcher_gets_changes_that_pass_its_filter_and_those_that_leave_it() -> None:
    fanout, change = Fanout(MANY), Changes()
    everything, of_s, of_t = (fanout.subscribe(query) for query in (ALL, OF_S, OF_T))
    for service in ("s", "s", "t", None):
        fanout.publish(change(service))
    assert kinds(everything) == ["put", "put", "put", "delete"]
    assert kinds(of_s) == ["put", "put", "left"]
    assert kinds(of_t) == ["put", "delete"]


def test_a_change_is_encoded_once_however_many_watch() -> None:
    fanout, change = Fanout(MANY), Changes()
    watchers = [fanout.subscribe(query) for query in (ALL, OF_S) for _ in range(100)]
    fanout.publish(change("s"))
    assert len({id(watcher.take(MANY)[0].events[0]) for watcher in watchers}) == 1


def test_a_new_watcher_gets_only_later_changes() -> None:
    fanout, change = Fanout(MANY), Changes()
    fanout.publish(change("s"))
    watcher = fanout.subscribe(ALL)
    assert fanout.version == 1
    fanout.publish(change("s"))
    assert [delivery.version for delivery in watcher.take(MANY)] == [2]


def test_a_watcher_that_left_gets_nothing_and_leaves_nothing_behind() -> None:
    fanout, change = Fanout(MANY), Changes()
    watchers = [(query, fanout.subscribe(query)) for query in (ALL, OF_S, OF_S, OF_T)]
    for query, watcher in watchers:
        fanout.unsubscribe(query, watcher)
    fanout.publish(change("s"))
    assert all(not watcher.take(MANY) for _, watcher in watchers)
    assert (len(fanout), fanout._feeds, fanout._standing, fanout._general) == (0, {}, ({}, {}, {}, {}), set())


def test_a_slow_reader_is_cut_off_and_holds_nothing_while_others_go_on() -> None:
    fanout, change = Fanout(16 * 5_000), Changes()
    slow, quick = fanout.subscribe(ALL, iter(([],) * 3)), fanout.subscribe(ALL)
    received = 0
    for _ in range(20):
        fanout.publish(change("s", text="x" * 1_000))
        received += len(quick.take(MANY))
    assert received == 20
    assert "is behind by" in slow.lost
    assert not quick.lost
    assert (slow._pending, slow.unread_bytes, list(slow.snapshot), fanout.backlog.size_bytes) == ([], 0, [], 0)


def test_a_version_larger_than_the_buffer_is_delivered_to_a_reader_that_keeps_up() -> None:
    fanout, change = Fanout(16 * 500), Changes()
    watcher = fanout.subscribe(ALL)
    fanout.publish(change("s", text="x" * 10_000))
    assert not watcher.lost
    assert len(watcher.take(MANY)) == 1


def test_a_portion_ends_at_its_size_and_a_difference_stands_alone() -> None:
    fanout, change = Fanout(MANY), Changes()
    watcher = fanout.subscribe(ALL)
    for collapsed in (False, False, False, True, False):
        fanout.publish(change("s", text="x" * 1_000)._replace(collapsed=collapsed))
    taken = []
    while portion := watcher.take(1_500):
        taken.append([delivery.version for delivery in portion])
    assert taken == [[1, 2], [3], [4], [5]]
    assert (watcher.unread_bytes, fanout.backlog.size_bytes) == (0, 0)


async def test_a_reader_wakes_for_events_a_loss_a_shutdown_or_its_alarm() -> None:
    fanout, change, late = Fanout(MANY), Changes(), Alarm(3_600)
    watcher = fanout.subscribe(ALL)

    async def woken_by(act: object) -> bool:
        waiting = asyncio.create_task(watcher.wait(late))
        await asyncio.sleep(0)
        assert not waiting.done()
        act()  # type: ignore[operator]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return waiting.done()

    assert await woken_by(lambda: fanout.publish(change("s")))
    await watcher.wait(late)  # something is there: no waiting at all
    watcher.take(MANY)
    assert await woken_by(fanout.close)
    await watcher.wait(Alarm(0))
    assert await woken_by(lambda: fanout.lose_all("gone"))
    await watcher.wait(late)
    assert (watcher.lost, fanout.closing.is_set(), fanout.generation) == ("gone", True, 1)


async def test_an_alarm_wakes_its_waiters_in_order_and_stops_without_any() -> None:
    alarm, woken = Alarm(0.05), list[int]()
    watchers = [Watcher(Backlog(), MANY, iter(())) for _ in range(3)]

    async def wait(number: int) -> None:
        await watchers[number].wait(alarm)
        woken.append(number)

    waiting = [asyncio.create_task(wait(number)) for number in range(3)]
    await asyncio.sleep(0)
    watchers[1].wake()
    await asyncio.gather(*waiting)
    assert woken == [1, 0, 2]
    assert alarm._timer is None
    watchers[0].lose("gone")
    await asyncio.wait_for(watchers[0].wait(alarm), 1)
    assert alarm._timer is None


@in_virtual_time
async def test_all_waiters_of_an_alarm_wake_together_whenever_they_began() -> None:
    loop, woken = asyncio.get_running_loop(), list[tuple[int, float]]()
    alarms = [Alarm(5.0), Alarm(5.0, 0.5)]

    async def wait(number: int) -> None:
        await Watcher(Backlog(), MANY, iter(())).wait(alarms[number])
        woken.append((number, round(loop.time() - began_at, 3)))

    await asyncio.sleep(5.0 - loop.time() % 5.0)
    began_at = loop.time()
    waiting = list[asyncio.Task[None]]()
    for number in (0, 1, 0, 1):
        waiting.append(asyncio.create_task(wait(number)))
        await asyncio.sleep(0.1)
    await asyncio.gather(*waiting)
    assert woken == [(1, 2.5), (1, 2.5), (0, 5.0), (0, 5.0)]


@in_virtual_time
async def test_a_reader_that_can_wait_is_woken_at_the_next_alarm_unless_more_arrives() -> None:
    fanout, change, told = Fanout(MANY), Changes(), list[int]()
    watchers = [fanout.subscribe(ALL) for _ in range(2)]

    def tell(asleep: list[Watcher]) -> list[Watcher]:
        if watchers[0] in asleep:
            told.append(fanout.version)
        return [one for one in asleep if one is watchers[1] or fanout.version == 2]

    alarm = Alarm(5.0, tell=tell)
    waiting = [asyncio.create_task(watcher.wait(alarm)) for watcher in watchers]
    await asyncio.sleep(12.0)
    assert ([one.done() for one in waiting], told) == ([False, True], [0, 0])
    for _ in range(2):
        fanout.publish(change("s"))
        await waiting[0]
        watchers[0].take(MANY)
        waiting[0] = asyncio.create_task(watchers[0].wait(alarm))
        await asyncio.sleep(6.0)
    assert ([one.done() for one in waiting], told) == ([True, True], [0, 0, 1, 2])
    assert alarm._timer is None


async def test_a_reader_not_yet_awake_for_events_is_not_told_that_nothing_was_missed() -> None:
    fanout, told = Fanout(MANY), list[Watcher]()

    def tell(asleep: list[Watcher]) -> list[Watcher]:
        told.extend(asleep)
        return []

    watcher, alarm = fanout.subscribe(ALL), Alarm(3_600, tell=tell)
    waiting = asyncio.create_task(watcher.wait(alarm))
    await asyncio.sleep(0)
    alarm._ring(asyncio.get_running_loop())
    assert told == [watcher]
    fanout.publish(Changes()("s"))
    alarm._ring(asyncio.get_running_loop())
    await waiting
    assert told == [watcher]
