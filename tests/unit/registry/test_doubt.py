"""Whether the contents of a store are believed."""

from __future__ import annotations

from collections import Counter
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from hq.epoch_trust import (
    CONFIRMED,
    DOUBTED,
    UNSPECIFIED,
    EpochEvidence,
    EpochTrust,
    InstanceCounts,
    UnknownInstances,
    credible_total,
    reported_total,
)
from hqpb.storage.v1.storage_pb2 import EpochConfirmation, EpochRecord
from hqpb.v1 import service_pb2

NOBODY = InstanceCounts(0, 0)
MANY = InstanceCounts(2500, 2400)


def standing(
    now: InstanceCounts, before: InstanceCounts = NOBODY, strangers: int = 0, *, confirmed: bool = False
) -> EpochEvidence:
    return EpochEvidence(now, before, strangers, restored=False, confirmed=confirmed)


@pytest.mark.parametrize(
    ("now", "before", "strangers", "expected"),
    [
        (NOBODY, NOBODY, 0, UNSPECIFIED),  # a new installation
        (NOBODY, MANY, 0, DOUBTED),
        (InstanceCounts(1249, 1249), MANY, 0, DOUBTED),
        (InstanceCounts(1250, 1200), MANY, 0, UNSPECIFIED),
        (
            InstanceCounts(2500, 1199),
            MANY,
            0,
            DOUBTED,
        ),  # put back by the deploy system, and most agents are not heard yet
        (NOBODY, InstanceCounts(1, 0), 0, DOUBTED),
        (NOBODY, NOBODY, 3, DOUBTED),
        (NOBODY, NOBODY, 2, UNSPECIFIED),
        (InstanceCounts(100, 100), NOBODY, 100, UNSPECIFIED),
        (InstanceCounts(100, 100), NOBODY, 101, DOUBTED),
    ],
)
def test_an_epoch_with_too_few_instances_or_too_many_strangers_is_doubted(
    now: InstanceCounts, before: InstanceCounts, strangers: int, expected: service_pb2.EpochTrust
) -> None:
    one = standing(now, before, strangers)
    assert one.trust == expected
    assert bool(one.doubt()) is (expected == DOUBTED)
    assert standing(now, before, strangers, confirmed=True).trust == CONFIRMED
    assert one._replace(restored=True).trust == CONFIRMED


def test_a_store_is_recovered_once_it_holds_most_of_the_remembered_instances() -> None:
    assert standing(MANY, MANY).is_recovered
    assert not standing(NOBODY, MANY).is_recovered
    assert not standing(MANY, MANY, confirmed=True).is_recovered
    assert not standing(MANY).is_recovered


def test_a_second_loss_under_doubt_is_compared_with_the_state_before_the_first() -> None:
    assert standing(InstanceCounts(3, 3), MANY).remembered_holdings() == MANY
    assert standing(InstanceCounts(3, 3), MANY, confirmed=True).remembered_holdings() == InstanceCounts(3, 3)


def test_an_agent_that_reports_a_deleted_instance_once_is_no_stranger() -> None:
    strangers = UnknownInstances(persistent_s=90, forgotten_s=600)
    strangers.record_report("n1", "deleted", 0)
    for now in (0, 180, 360):
        strangers.record_report("n1", "lost", now)
    assert strangers.going_on(360) == {1: 1}
    assert strangers.going_on(960) == {1: 1}
    assert strangers.going_on(961) == {}
    strangers.record_report("n1", "lost", 1000)
    assert strangers.going_on(1000) == {}


def test_the_memory_for_strangers_is_bounded() -> None:
    strangers = UnknownInstances(persistent_s=0, forgotten_s=600)
    strangers.record_report("n0", "lost", 0)
    for n in range(110_000):
        strangers.record_report("n1", f"i-{n}", 0)
    assert strangers.going_on(0) == {1: 1, 10_000: 1}, "one node pushes out nobody else's"
    for n in range(100_010):
        strangers.record_report(f"n{n % 100}", f"i-{n}", 1)
    assert reported_total(strangers.going_on(1)) == 100_000
    strangers.clear()
    assert strangers.going_on(0) == {}


@pytest.mark.parametrize(
    ("reporters", "nodes", "expected"),
    [
        ({}, 5, 0),
        ({90: 1}, 0, 90),  # the store is empty
        ({90: 1}, 1, 90),  # there is no other node
        ({90: 1}, 2, 0),  # it may have made them up
        ({90: 1, 3: 1}, 2, 6),
        ({30: 2, 20: 1}, 3, 80),
    ],
)
def test_strangers_of_a_single_node_raise_no_doubt_if_there_are_other_nodes(
    reporters: dict[int, int], nodes: int, expected: int
) -> None:
    assert credible_total(reporters, nodes) == expected


def test_nodes_are_counted_by_how_many_unknown_instances_they_report() -> None:
    strangers, chance = UnknownInstances(persistent_s=10, forgotten_s=50), Random(7)
    heard: dict[tuple[str, str], tuple[int, int]] = {}
    for now in range(400):
        node, instance_id = f"n{chance.randrange(5)}", f"i{chance.randrange(6)}"
        strangers.record_report(node, instance_id, now)
        heard[node, instance_id] = heard.get((node, instance_id), (now, now))[0], now
        heard = {key: times for key, times in heard.items() if now - times[1] <= 50}
        by_node = Counter(node for (node, _), (first, last) in heard.items() if last - first >= 10)
        assert strangers.going_on(now) == Counter(by_node.values())


def test_a_lost_store_is_still_doubted_when_a_second_node_appears() -> None:
    """Otherwise discovery would take a list of two while 98 of 100 instances are still missing."""
    clock, held = SimpleNamespace(now=lambda: 100.0), {"nodes": 0, "instances": 0}
    cache: Any = SimpleNamespace(
        nodes=lambda: held["nodes"], ready=lambda: held["instances"], epoch="e1", epoch_record=EpochRecord(epoch="e1")
    )
    holding = type("Cache", (SimpleNamespace,), {"__len__": lambda _: held["instances"]})(**vars(cache))
    strangers = UnknownInstances(persistent_s=10, forgotten_s=1_000)
    unused: Any = None
    orders: Any = SimpleNamespace(confirmed=EpochConfirmation())
    trust = EpochTrust(holding, orders, strangers, unused, unused, unused, clock)
    for number in range(100):
        for at in (0.0, 50.0):
            strangers.record_report("n1", f"i-{number}", at)
    assert trust.standing().trust is DOUBTED
    held.update(nodes=2, instances=2)
    assert trust.standing().trust is DOUBTED
    held.update(instances=100)
    assert trust.standing().trust is UNSPECIFIED
    holding.epoch = "e2"
    held.update(instances=2)
    assert trust.standing().trust is UNSPECIFIED, "one node says so alone, of a store that others fill, too"
