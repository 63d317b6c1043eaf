"""Whatever happens in the store, the cache shows what a plain reading of its changes shows."""

from __future__ import annotations

import marshal

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hq import keys as k
from hq.memory.cache import Cache
from hq.memory.entry import RECORD_BYTES
from hq.memory.joined_lists import PLAIN
from hq.memory.query import Query
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.reference_instances import Truth
from tests.support.store_histories import EPOCH, IDS, SERVICES, Step, World, filters, steps

some = settings(suppress_health_check=list(HealthCheck))
histories = st.lists(steps(), max_size=12)


def shown(cache: Cache, wanted: pb.InstanceFilter, after: str = "") -> list[model.Instance]:
    return [entry.instance() for portion in cache.matching(Query(wanted), after) for entry in portion]


def check(cache: Cache, truth: Truth, wanted: list[pb.InstanceFilter]) -> None:
    """Check that every way of reading the cache shows the truth."""
    everything = truth.matching(pb.InstanceFilter())
    assert {entry.traits.id: entry.instance() for entry in cache.entries()} == {i.meta.id: i for i in everything}
    assert len(cache) == len(everything)
    kept = [secrets for i in IDS if (secrets := cache.secrets(i))]
    sizes = [entry.stored_bytes() for entry in cache.entries()] + [RECORD_BYTES + len(one.value) for one in kept]
    assert cache.stored_bytes == sum(sizes)
    for each in (pb.InstanceFilter(), *wanted):
        assert shown(cache, each) == truth.matching(each)
    check_lookups(cache, truth)
    check_listings(cache, truth)
    check_quarantine(cache, truth)


def check_listings(cache: Cache, truth: Truth) -> None:
    for service in SERVICES:
        for readiness in (pb.READINESS_FILTER_UNSPECIFIED, pb.READINESS_FILTER_READY, pb.READINESS_FILTER_NOT_READY):
            wanted = pb.InstanceFilter(service_id=[service], readiness=readiness)
            listing, expected = cache.listing(Query(wanted)), truth.matching(wanted)
            if listing is None:
                assert not expected
                continue
            joined = listing.forms[PLAIN].answer("a source", lambda: b"")
            assert list(pb.FindInstancesResponse.FromString(joined).instances) == expected
            assert [entry.instance() for entry in listing.entries] == expected


def check_lookups(cache: Cache, truth: Truth) -> None:
    state = truth.at(truth.version)
    for instance_id in IDS:
        entry = cache.get(instance_id)
        assert (entry.instance() if entry else None) == state.get(instance_id)
        secrets = cache.secrets(instance_id)
        assert (secrets.value if secrets else None) == truth.secrets.get(instance_id)
        records = truth.records.get(instance_id)
        assert cache.stored_versions(instance_id) == (tuple(records.stands.values()) if records else (0, 0))
    for instance in state.values():
        by_uid = cache.by_uid(instance.meta.uid)
        assert by_uid is not None
        assert by_uid.instance() == instance
    assert cache.nodes() == len({i.spec.node_name for i in state.values() if i.spec.node_name})
    assert cache.version == truth.version
    assert cache.epoch == EPOCH


def check_quarantine(cache: Cache, truth: Truth) -> None:
    bad = {(kind, i, r.stands[kind]) for i, r in truth.records.items() for kind in r.bad}
    assert {(q.kind, q.rest, q.version) for q in cache.quarantine.all()} == bad
    assert set(cache.quarantine.shown_older()) == truth.shown_older()
    assert all(q.served_from_older == (q.rest in truth.shown_older()) for q in cache.quarantine.all())


def lived_through(world: World, history: list[Step]) -> tuple[Cache, Truth]:
    """A cache that followed the whole history, and the truth."""
    cache, truth = Cache(k.HqKeys()), Truth()
    cache.load(world.records())
    cache.advance(world.version)
    truth.version = world.version
    for step in history:
        batch = world.step(step)
        cache.apply(batch)
        truth.tell(batch)
    return cache, truth


@some
@given(histories, st.lists(filters(), max_size=4))
def test_a_cache_that_follows_shows_the_truth_at_every_version(
    history: list[Step], wanted: list[pb.InstanceFilter]
) -> None:
    world, truth, cache = World(), Truth(), Cache(k.HqKeys())
    cache.load(world.records())
    for step in history:
        batch = world.step(step)
        cache.apply(batch)
        truth.tell(batch)
        check(cache, truth, wanted)


@some
@given(histories, st.lists(filters(), max_size=4), st.data())
def test_a_cache_filled_by_a_listing_equals_one_that_followed(
    history: list[Step], wanted: list[pb.InstanceFilter], data: st.DataObject
) -> None:
    world = World()
    _, truth = lived_through(world, history)
    cache, records = Cache(k.HqKeys()), world.records()
    page = data.draw(st.integers(1, 5))
    for start in range(0, len(records), page):
        cache.load(records[start : start + page])
    cache.advance(world.version)
    for instance_id in IDS:  # what a listing shows of rubbish is the rubbish: the good state before it is gone
        spoiled = cache.quarantine.get(k.SPEC, instance_id) or cache.quarantine.get(k.STATUS, instance_id)
        if not spoiled:
            entry = cache.get(instance_id)
            assert (entry.instance() if entry else None) == truth.at(truth.version).get(instance_id)
    if not cache.quarantine.all():
        check(cache, truth, wanted)


@some
@given(histories, histories, st.lists(filters(), max_size=4))
def test_a_difference_over_many_versions_leads_to_the_same_state_as_each_in_turn(
    before: list[Step], missed: list[Step], wanted: list[pb.InstanceFilter]
) -> None:
    world = World()
    cache, truth = lived_through(world, before)
    old = {entry.traits.id: entry for entry in cache.entries()}
    since = world.version
    for step in missed:
        truth.tell(world.step(step))
    difference = world.difference(set(cache.keys()) | {world.keys.epoch}, since)
    events = cache.apply(difference, collapsed=True)
    if not cache.quarantine.all() and not truth.shown_older():
        check(cache, truth, wanted)
    assert {event.version for event in events} <= {world.version}
    ids = [event.traits.id for event in events]
    assert len(set(ids)) == len(ids)
    now = {entry.traits.id: entry for entry in cache.entries()}
    changed = {i for i in old.keys() | now.keys() if old.get(i) is not now.get(i)}
    assert set(ids) == changed
    assert all((e.before, e.after) == (old.get(e.traits.id), now.get(e.traits.id)) for e in events)


@some
@given(histories)
def test_events_are_exactly_the_visible_changes(history: list[Step]) -> None:
    world, truth, cache = World(), Truth(), Cache(k.HqKeys())
    for step in history:
        before = truth.version
        batch = world.step(step)
        events = cache.apply(batch)
        truth.tell(batch)
        changed = truth.events(pb.InstanceFilter(), before, truth.version)
        told = [(e.version, e.traits.id, "put" if e.after else "delete") for e in events]
        assert sorted(told) == sorted(tuple(event) for event in changed)


@some
@given(histories, st.lists(filters(), max_size=4), st.sampled_from(("", *IDS, "a-1.a", "zz")))
def test_a_list_continues_after_an_id(history: list[Step], wanted: list[pb.InstanceFilter], after: str) -> None:
    cache, truth = lived_through(World(), history)
    for each in wanted:
        assert shown(cache, each, after) == [i for i in truth.matching(each) if i.meta.id > after]


@some
@given(histories, histories, filters())
def test_a_snapshot_given_to_a_reader_does_not_change(
    history: list[Step], later: list[Step], wanted: pb.InstanceFilter
) -> None:
    world = World()
    cache, truth = lived_through(world, history)
    portions = cache.matching(Query(wanted))
    for step in later:
        cache.apply(world.step(step))
    assert [entry.instance() for portion in portions for entry in portion] == truth.matching(wanted)


@some
@given(histories, histories, st.lists(filters(), max_size=4))
def test_a_cache_restored_from_another_one_shows_the_same_and_follows_on(
    history: list[Step], later: list[Step], wanted: list[pb.InstanceFilter]
) -> None:
    world = World()
    before, truth = lived_through(world, history)
    assume(before.is_whole())
    cache = Cache(world.keys)
    for portion in before.matching(Query(pb.InstanceFilter())):
        cache.recall(marshal.loads(marshal.dumps([entry.as_tuple() for entry in portion])))
    cache.stored_bytes = sum(entry.stored_bytes() for entry in before.entries())
    kept = (world.keys.spec(""), world.keys.status(""))
    cache.load([record for record in world.records() if not record.key.startswith(kept)])
    cache.advance(world.version)
    check(cache, truth, wanted)
    for step in later:
        batch = world.step(step)
        cache.apply(batch)
        truth.tell(batch)
        check(cache, truth, wanted)
