"""A share of a weight: the whole weight is kept beside it, so that any process can put it back."""

from __future__ import annotations

import pytest

from hqpb.v1.instance_pb2 import Instance
from nanny.snapshots.weights import SHARE, set_share, share_of, weighed_instance


def instance(weight: int | None = None, said: str = "") -> Instance:
    made = Instance()
    if weight is not None:
        made.spec.weight = weight
    if said:
        made.meta.annotations[SHARE] = said
    return made


@pytest.mark.parametrize(
    ("held", "percent", "weight", "said"),
    [
        (instance(), 5, 5, "5% of 100"),
        (instance(40), 5, 2, "5% of 40"),
        (instance(10), 1, 1, "1% of 10"),  # not 0, which would take it out of traffic
        (instance(0), 5, 0, "5% of 0"),
        (instance(40), 0, 0, "0% of 40"),
        (instance(2, "5% of 40"), 20, 8, "20% of 40"),
        (instance(2, "5% of 40"), 100, 40, ""),
        (instance(77, "5% of 40"), 5, 2, "5% of 40"),  # somebody changed it meanwhile
        (instance(77, "nonsense"), 5, 4, "5% of 77"),
    ],
)
def test_an_instance_gets_a_share_and_its_weight_back(held: Instance, percent: int, weight: int, said: str) -> None:
    found = weighed_instance(held, percent)
    assert found is not None
    assert (found.spec.weight, found.meta.annotations.get(SHARE, "")) == (weight, said)
    assert weighed_instance(found, percent) is None


def test_an_instance_without_a_share_is_left_alone() -> None:
    assert weighed_instance(instance(), 100) is None
    assert weighed_instance(instance(40), 100) is None
    assert [share_of(one) for one in (instance(40), instance(2, "5% of 40"))] == [100, 5]


@pytest.mark.parametrize(
    ("described", "held", "weight", "said"),
    [
        (2, instance(2, "5% of 40"), 2, "5% of 40"),  # the description says nothing, so it is as held
        (40, instance(2, "5% of 40"), 2, "5% of 40"),
        (200, instance(2, "5% of 40"), 10, "5% of 200"),
        (200, instance(40), 200, ""),
    ],
)
def test_a_share_is_kept_unless_the_whole_weight_changed(
    described: int, held: Instance, weight: int, said: str
) -> None:
    wanted = instance(described, held.meta.annotations.get(SHARE, ""))
    set_share(wanted, held, None)
    assert (wanted.spec.weight, wanted.meta.annotations.get(SHARE, "")) == (weight, said)
