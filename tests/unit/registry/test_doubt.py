"""Whether what a store holds is believed."""

from __future__ import annotations

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
    believed,
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
def test_what_speaks_against_an_epoch(
    now: InstanceCounts, before: InstanceCounts, strangers: int, expected: service_pb2.EpochTrust
) -> None:
    one = standing(now, before, strangers)
    assert one.trust == expected
    assert bool(one.doubt()) is (expected == DOUBTED)
    assert standing(now, before, strangers, confirmed=True).trust == CONFIRMED
    assert one._replace(restored=True).trust == CONFIRMED


def test_that_most_is_back_is_to_be_written_down_once() -> None:
    assert standing(MANY, MANY).is_recovered
    assert not standing(NOBODY, MANY).is_recovered
    assert not standing(MANY, MANY, confirmed=True).is_recovered
    assert not standing(MANY).is_recovered


def test_a_second_loss_under_doubt_is_compared_with_what_was_before_the_first() -> None:
    assert standing(InstanceCounts(3, 3), MANY).remembered_holdings() == MANY
    assert standing(InstanceCounts(3, 3), MANY, confirmed=True).remembered_holdings() == InstanceCounts(3, 3)


def test_an_agent_that_hears_once_that_its_instance_is_gone_is_no_stranger() -> None:
    strangers = UnknownInstances(persistent_s=90, forgotten_s=600)
    strangers.record_report("n1", "deleted", 0)
    for now in (0, 180, 360):
        strangers.record_report("n1", "lost", now)
    assert strangers.going_on(360) == {"n1": 1}
    assert strangers.going_on(960) == {"n1": 1}
    assert strangers.going_on(961) == {}
    strangers.record_report("n1", "lost", 1000)
    assert strangers.going_on(1000) == {}


def test_strangers_take_no_memory_without_an_end() -> None:
    strangers = UnknownInstances(persistent_s=0, forgotten_s=600)
    strangers.record_report("n0", "lost", 0)
    for n in range(110_000):
        strangers.record_report("n1", f"i-{n}", 0)
    assert strangers.going_on(0) == {"n0": 1, "n1": 10_000}, "one node pushes out nobody else's"
    for n in range(100_010):
        strangers.record_report(f"n{n % 100}", f"i-{n}", 1)
    assert sum(strangers.going_on(1).values()) == 100_000
    strangers.clear()
    assert strangers.going_on(0) == {}


@pytest.mark.parametrize(
    ("strangers", "nodes", "expected"),
    [
        ({}, 5, 0),
        ({"n1": 90}, 0, 90),  # the store is empty
        ({"n1": 90}, 1, 90),  # there is no other node
        ({"n1": 90}, 2, 0),  # it may have made them up
        ({"n1": 90, "n2": 3}, 2, 6),
        ({"n1": 30, "n2": 30, "n3": 20}, 3, 80),
    ],
)
def test_what_one_agent_says_alone_makes_no_doubt(strangers: dict[str, int], nodes: int, expected: int) -> None:
    assert believed(strangers, nodes) == expected


def test_a_lost_store_is_not_believed_as_soon_as_a_second_node_is_there() -> None:
    """It was: 98 of 100 instances were still missing, and discovery took the list of two."""
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
