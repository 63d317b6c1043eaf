"""A change reaches all the feeds that it concerns, and looks at few others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hq.memory.cache import Cache
from hq.memory.entry import Event
from hq.memory.fanout import Fanout, deliveries, encode
from hq.memory.history import VersionEvents as Told
from hq.memory.history import WatchedEvent
from hq.memory.query import Query
from hq.memory.record import Traits
from hq.memory.watcher import Delivery, Watcher
from hqpb.v1 import service_pb2 as pb
from tests.support.cache_entries import entry
from tests.support.store_histories import Step, World, filters, steps

MANY = 1 << 30
WATCHES, CHANGES = 4_000, 100


class Seen:
    """A watch, and what it should get: its filter asked about every event."""

    def __init__(self, fanout: Fanout, wanted: pb.InstanceFilter) -> None:
        self.query = Query(wanted)
        self.watcher: Watcher = fanout.subscribe(self.query)
        self._steps: list[Told] = []

    def note(self, step: Told) -> None:
        self._steps.append(step)

    def check(self) -> None:
        """Check that the watch gets just that, and gets the same if it resumes later."""
        asked = [(s.version, [e for event in s.events if (e := encode(self.query, event))]) for s in self._steps]
        expected = [(version, events, False) for version, events in asked if events]
        assert not self.watcher.lost
        assert told(self.watcher.take(MANY)) == expected
        assert told(deliveries(self.query, self._steps)) == expected


def told(found: Sequence[Delivery]) -> list[tuple[int, list[bytes], bool]]:
    return [(delivery.version, [*delivery.events], delivery.collapsed) for delivery in found]


def versions(cache: Cache, world: World, step: Step) -> list[Told]:
    batch = world.step(step)
    events = cache.apply(batch)
    return [Told(batch.revision, [WatchedEvent(event) for event in events])] if events else []


acts = st.lists(steps() | filters() | st.integers(0, 5), max_size=40)


@settings(suppress_health_check=list(HealthCheck))
@given(st.lists(filters(), max_size=8), acts)
def test_indexed_fanout_equals_matching_every_event_against_every_feed(
    wanted: list[pb.InstanceFilter], plan: list[Step | pb.InstanceFilter | int]
) -> None:
    world, fanout = World(), Fanout(MANY)
    cache = Cache(world.keys)
    watching = [Seen(fanout, each) for each in wanted]
    for act in plan:
        if isinstance(act, pb.InstanceFilter):
            watching.append(Seen(fanout, act))
        elif isinstance(act, int):
            if act < len(watching):
                leaver = watching.pop(act)
                leaver.check()
                fanout.unsubscribe(leaver.query, leaver.watcher)
        else:
            for step in versions(cache, world, act):
                fanout.publish(step)
                for each in watching:
                    each.note(step)
    for each in watching:
        each.check()
        fanout.unsubscribe(each.query, each.watcher)
    assert (len(fanout), fanout._standing, fanout._general) == (0, ({}, {}, {}, {}), set())
    assert fanout.backlog.size_bytes == 0


class Asked:
    """Counts how often a filter is asked about an instance."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count, matches = 0, Query.matches

        def counting(query: Query, traits: Traits) -> bool:
            self.count += 1
            return matches(query, traits)

        patch.setattr(Query, "matches", counting)


def filled(wanted: Iterable[pb.InstanceFilter]) -> tuple[Fanout, list[Watcher]]:
    fanout = Fanout(MANY)
    return fanout, [fanout.subscribe(Query(each)) for each in wanted]


def commit() -> Told:
    """A hundred instances, each of its own service and with two revisions, move from one node to the next."""
    return Told(1, [WatchedEvent(_moved(number)) for number in range(CHANGES)])


def _moved(number: int) -> Event:
    before, after = entry(f"i-{number}"), entry(f"i-{number}", text="moved")
    revisions = (f"r-{number}", f"r-{number}-1")
    for each, node in ((before, f"n-{number}"), (after, f"n-{number + 1}")):
        each.traits = each.traits._replace(service=f"s-{number}", node=node, revisions=revisions)
    return Event(1, before, after)


@pytest.mark.parametrize(
    ("field", "prefix", "most_each", "heard_by"),
    [
        ("instance_id", "i", 1, CHANGES),
        ("service_id", "s", 1, CHANGES),
        ("revision_id", "r", 1, CHANGES),
        ("node_name", "n", 3, CHANGES + 1),  # where it is: once. Where it was: of what is, and of what was
    ],
)
def test_a_change_asks_only_the_filters_that_name_what_changed(
    monkeypatch: pytest.MonkeyPatch, field: str, prefix: str, most_each: int, heard_by: int
) -> None:
    fanout, watchers = filled(pb.InstanceFilter(**{field: [f"{prefix}-{n}"]}) for n in range(WATCHES))  # type: ignore[arg-type]
    asked = Asked(monkeypatch)
    fanout.publish(commit())
    assert asked.count <= most_each * CHANGES
    assert sum(1 for watcher in watchers if watcher.take(MANY)) == heard_by


def test_a_filter_of_several_fields_is_indexed_by_the_most_selective(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of supervisors of one service, or on one node, are not asked about each other's instances."""
    wanted = (
        pb.InstanceFilter(instance_id=[f"i-{n}"], node_name=["n-1"], service_id=["s-1"], revision_id=["r-1"])
        for n in range(WATCHES)
    )
    fanout, watchers = filled(wanted)
    asked = Asked(monkeypatch)
    fanout.publish(commit())
    assert asked.count <= 2 * CHANGES
    assert [bool(watcher.take(MANY)) for watcher in watchers[:3]] == [False, True, False]


def test_a_filter_with_many_values_gets_each_event_once() -> None:
    fanout, (watcher,) = filled([pb.InstanceFilter(node_name=[f"n-{n}" for n in range(CHANGES + 1)])])
    fanout.publish(commit())
    (delivery,) = watcher.take(MANY)
    assert len(delivery.events) == CHANGES
