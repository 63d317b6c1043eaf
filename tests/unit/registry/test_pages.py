"""Lists over a replica: pages, their tokens, and counts."""

from __future__ import annotations

import base64
import json
import tracemalloc
from collections import Counter

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hq.errors import EpochChanged
from hq.memory.query import Query
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import InvalidRequest
from tests.support.loop_turns import counted_turns
from tests.support.reference_instances import Truth
from tests.support.stepped_replica import PLAIN, loaded
from tests.support.store_histories import Step, World, filters, spec_of, steps

some = settings(suppress_health_check=list(HealthCheck))
histories = st.lists(steps(spoiled=False), max_size=12)
ALL = pb.InstanceFilter()


def many(world: World, count: int, text: str = "") -> None:
    """Create the instances i-000, i-001, ..., in few transactions."""
    for start in range(0, count, 50):
        puts: dict[bytes, bytes | None] = {}
        for number in range(start, min(start + 50, count)):
            instance_id = f"i-{number:03d}"
            world.uids[instance_id] = number + 1
            labels = {"text": text} if text else {}
            puts[world.keys.spec(instance_id)] = spec_of(world, instance_id, f"s-{number % 3}", "n", labels, 1)
        world.change(puts)


@some
@given(histories, filters(), st.integers(1, 4))
async def test_all_pages_together_hold_each_match_once_and_in_order(
    history: list[Step], wanted: pb.InstanceFilter, page_size: int
) -> None:
    world, truth = World(), Truth()
    for step in history:
        truth.tell(world.step(step))
    still = loaded(world)
    found: list[model.Instance] = []
    token = ""
    while True:
        page = await still.find(wanted, page_size, token)
        assert len(page.instances) <= page_size
        found += page.instances
        token = page.next_page_token
        if not token:
            break
        assert len(page.instances) == page_size
    assert found == truth.matching(wanted)


@some
@given(histories, st.lists(steps(spoiled=False), max_size=8), filters(), st.integers(1, 3))
async def test_an_instance_that_stays_is_on_one_page_while_others_change(
    history: list[Step], meanwhile: list[Step], wanted: pb.InstanceFilter, page_size: int
) -> None:
    world, truth = World(), Truth()
    for step in history:
        truth.tell(world.step(step))
    still = loaded(world)
    states = [truth.matching(wanted)]
    found: list[str] = []
    token = ""
    while True:
        page = await still.find(wanted, page_size, token)
        found += [instance.meta.id for instance in page.instances]
        token = page.next_page_token
        if not token:
            break
        if meanwhile:
            batch = world.step(meanwhile.pop(0))
            truth.tell(batch)
            still.apply(batch)
            states.append(truth.matching(wanted))
    ids = [{instance.meta.id for instance in state} for state in states]
    assert found == sorted(set(found))
    assert set.intersection(*ids) <= set(found) <= set.union(*ids)


async def test_a_page_ends_where_it_would_get_too_large() -> None:
    world = World()
    many(world, 100, text="x" * 1_000)
    still = loaded(world, page_bytes=10_000)
    everything = still.replica.cache._indexes._all
    everything._blocks = [(entry,) for block in everything.lend() for entry in block]
    first = await still.find(ALL)
    assert 5 <= len(first.instances) <= 9
    assert sum(instance.ByteSize() for instance in first.instances) <= 10_000
    rest = await still.find(ALL, 0, first.next_page_token)
    assert rest.instances[0].meta.id == f"i-{len(first.instances):03d}"


async def test_an_instance_that_is_larger_than_a_page_has_one_for_itself() -> None:
    world = World()
    many(world, 3, text="x" * 1_000)
    still = loaded(world, page_bytes=10)
    ids, token = [], ""
    while True:
        page = await still.find(ALL, 0, token)
        ids.append([instance.meta.id for instance in page.instances])
        token = page.next_page_token
        if not token:
            break
    assert ids == [["i-000"], ["i-001"], ["i-002"]]


async def test_a_last_page_that_is_just_full_has_no_token() -> None:
    world = World()
    many(world, 4)
    page = await loaded(world).find(ALL, 4)
    assert (len(page.instances), page.next_page_token) == (4, "")


async def test_a_list_of_several_services_is_in_order_of_ids() -> None:
    world = World()
    many(world, 999)
    still = loaded(world)
    wanted = pb.InstanceFilter(service_id=["s-2", "s-0", "nothing"])
    found = [instance.meta.id for instance in (await still.find(wanted)).instances]
    assert found == [f"i-{number:03d}" for number in range(999) if number % 3 != 1]


async def test_an_instance_must_have_all_labels_of_a_filter() -> None:
    world = World()
    labelled = {"a": {"x": "1"}, "b": {"y": "2"}, "c": {"x": "1", "y": "2"}, "d": {"x": "1", "y": "3"}, "e": {"x": "1"}}
    for instance_id, labels in labelled.items():
        world.uids[instance_id] = world.next()
        world.change({world.keys.spec(instance_id): spec_of(world, instance_id, "s", "n", labels, 1)})
    still = loaded(world)
    for wanted, expected in (({"x": "1"}, "acde"), ({"y": "2"}, "bc"), ({"x": "1", "y": "2"}, "c"), ({"x": "2"}, "")):
        answer = await still.find(pb.InstanceFilter(labels=wanted))
        assert "".join(instance.meta.id for instance in answer.instances) == expected


async def test_a_long_scan_gives_the_loop_its_turns() -> None:
    world = World()
    many(world, 999)
    still = loaded(world)
    everything = still.replica.cache._indexes._all
    everything._blocks = [(entry,) for block in everything.lend() for entry in block]  # as if there were a million
    async with counted_turns() as turns:
        page = await still.find(pb.InstanceFilter(readiness=pb.READINESS_FILTER_READY))
    assert not page.instances
    assert turns.count > 200


async def test_a_token_of_another_filter_is_refused() -> None:
    world = World()
    many(world, 9)
    still = loaded(world)
    token = (await still.find(ALL, 2)).next_page_token
    with pytest.raises(InvalidRequest, match="another filter"):
        await still.find(pb.InstanceFilter(service_id=["s-1"]), 2, token)
    with pytest.raises(InvalidRequest):
        await anext(still.watch(ALL, token))


async def test_a_token_of_another_epoch_starts_over() -> None:
    world = World()
    many(world, 9)
    still = loaded(world)
    token = (await still.find(ALL, 2)).next_page_token
    still.replica.cache.epoch = "another"
    with pytest.raises(EpochChanged):
        await still.find(ALL, 2, token)


@some
@given(
    st.text(max_size=30)
    | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode())
    | st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5).map(
        lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode()
    )
)
@example(base64.urlsafe_b64encode(b"[" * 3_000).decode())
@example(base64.urlsafe_b64encode(b'["\\ud800","a",1]').decode())
@example(base64.urlsafe_b64encode(b'{"a":1,"b":2,"c":3}').decode())
@example(base64.urlsafe_b64encode(b'["a","b",true]').decode())
@example(base64.urlsafe_b64encode(b'["a","b",' + b"9" * 5_000 + b"]").decode())
@example("\u00e4" * 8)
@example("x" * 100_000)
async def test_any_text_that_is_no_token_is_refused(word: str) -> None:
    still = loaded(World())
    if word:
        with pytest.raises(InvalidRequest) as refused:
            await still.find(ALL, 0, word)
        str(refused.value).encode()
        with pytest.raises(InvalidRequest):
            await anext(still.watch(ALL, word))


def _reason(one: model.Instance) -> str:
    """Why the instance is not ready, as COUNT_GROUP_REASON gives it."""
    for revision in one.spec.revision:
        if revision.target == model.REVISION_TARGET_READY:
            reports = [r.ready for r in one.status.revision if r.id == revision.id and r.HasField("ready")]
            return (reports[0].reason or "NoRevisionReady") if reports else "NothingReported"
    return "NotWantedReady"


@some
@given(histories, filters())
async def test_counts_are_those_of_the_lists(history: list[Step], wanted: pb.InstanceFilter) -> None:
    world, truth = World(), Truth()
    for step in history:
        truth.tell(world.step(step))
    still = loaded(world)
    for group, keys_of in (
        (pb.COUNT_GROUP_UNSPECIFIED, lambda i: [""]),
        (pb.COUNT_GROUP_SERVICE, lambda i: [i.meta.service_id]),
        (pb.COUNT_GROUP_NODE, lambda i: [i.spec.node_name]),
        (pb.COUNT_GROUP_REVISION, lambda i: [revision.id for revision in i.spec.revision]),
    ):
        counts, _ = await still.reads.count(Query(wanted), group, PLAIN, None)
        keys = [key for instance in truth.matching(wanted) for key in keys_of(instance)]
        named = sorted(set(keys)) or [""] * (group == pb.COUNT_GROUP_UNSPECIFIED)  # nothing is a count, too
        assert [(count.key, count.total) for count in counts] == [(key, keys.count(key)) for key in named]
        if group != pb.COUNT_GROUP_REVISION:
            unready = [i for i in truth.matching(wanted) if i.status.ready.status != model.CONDITION_STATUS_TRUE]
            lacking = [key for instance in unready for key in keys_of(instance)]
            assert [count.total - count.ready for count in counts] == [lacking.count(key) for key in named]
            untold = [key for i in unready if not i.status.ready.status for key in keys_of(i)]
            assert [count.unknown for count in counts] == [untold.count(key) for key in named]
            idle = [key for i in unready if _reason(i) == "NotWantedReady" for key in keys_of(i)]
            assert [count.not_wanted for count in counts] == [idle.count(key) for key in named]
    reasons, _ = await still.reads.count(Query(wanted), pb.COUNT_GROUP_REASON, PLAIN, None)
    told = Counter(_reason(i) for i in truth.matching(wanted) if i.status.ready.status != model.CONDITION_STATUS_TRUE)
    assert {count.key: count.total for count in reasons} == told
    assert all(count.ready == 0 for count in reasons)
    ready, _ = await still.reads.count(Query(wanted), pb.COUNT_GROUP_UNSPECIFIED, PLAIN, None)
    of_ready = pb.InstanceFilter()
    of_ready.CopyFrom(wanted)
    if wanted.readiness != 2:
        of_ready.readiness = pb.READINESS_FILTER_READY
        assert sum(count.ready for count in ready) == len(truth.matching(of_ready))
    untold = [i for i in truth.matching(wanted) if not i.status.ready.status]
    assert sum(count.unknown for count in ready) == len(untold)


async def test_instances_beyond_the_page_take_no_memory() -> None:
    """Otherwise a page of three megabytes would take a gigabyte, for thousands of instances of full size."""
    world = World()
    many(world, 400, text="x" * (64 << 10))
    still = loaded(world, page_bytes=1 << 20)
    tracemalloc.start()
    try:
        page = await still.find(ALL)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0 < len(page.instances) < 20
    assert peak_bytes < 16 << 20
