"""Which endpoint a caller gets."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hqclient.discovery.endpoint import Endpoint, KnownInstance
from hqclient.discovery.endpoint_list import EndpointList
from hqclient.discovery.picking import (
    Chooser,
    Ejections,
    EjectionSettings,
    EndpointUse,
    LeastUsed,
    Picker,
    Random,
    Rank,
    RoundRobin,
    near,
)
from hqclient.discovery.roster import Delta


class SetClock:
    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    async def sleep(self, delay_s: float) -> None:
        raise AssertionError("nothing waits here")


def instance(id_: str, *, node: str = "n", uid: int = 1, weight: int = 100, **labels: str) -> KnownInstance:
    return KnownInstance("c", id_, uid, "web", node, "host", {"http": 80}, labels, ("r1",), weight=weight)


def chooser(
    *instances: KnownInstance,
    picker: Picker | None = None,
    prefer: Rank | None = None,
    clock: SetClock | None = None,
    settings: EjectionSettings | None = None,
) -> tuple[Chooser, EndpointList]:
    listing = EndpointList("web", "http")
    listing.show(Delta({i.key: (None, i) for i in instances}))
    rng = random.Random(1)
    ejections = Ejections(clock or SetClock(), rng, settings or EjectionSettings())
    return Chooser(listing, picker or RoundRobin(rng), prefer, ejections), listing


def picked(choose: Chooser, times: int) -> list[str]:
    found = [choose.pick() for _ in range(times)]
    return [e.instance_id for e in found if e is not None]


def named(listing: EndpointList, id_: str) -> Endpoint:
    return next(e for e in listing.endpoints if e.instance_id == id_)


def test_an_empty_list_gives_no_endpoint() -> None:
    assert chooser()[0].pick() is None


def test_round_robin_takes_everyone_in_turn() -> None:
    choose, _ = chooser(*map(instance, "abc"))
    assert Counter(picked(choose, 9)) == {"a": 3, "b": 3, "c": 3}
    assert len(set(picked(choose, 3))) == 3


def test_round_robin_goes_on_where_it_was_when_endpoints_come_and_go() -> None:
    choose, listing = chooser(*map(instance, "acd"))
    while picked(choose, 1) != ["a"]:
        pass
    listing.show(Delta({("c", "b"): (None, instance("b"))}))
    assert picked(choose, 4) == ["b", "c", "d", "a"]


def test_round_robin_begins_at_random() -> None:
    first = {picked(chooser(*map(instance, "abcd"), picker=RoundRobin(random.Random(i)))[0], 1)[0] for i in range(40)}
    assert first == set("abcd")


def test_random_takes_any() -> None:
    assert set(picked(chooser(*map(instance, "abc"), picker=Random(random.Random(1)))[0], 60)) == set("abc")


def test_the_least_used_is_picked_and_ended_uses_do_not_count() -> None:
    choose, listing = chooser(*map(instance, "abc"), picker=LeastUsed(random.Random(1)))
    uses = []
    for _ in range(6):
        endpoint = choose.pick()
        assert endpoint is not None
        uses.append(EndpointUse(choose, endpoint))
    assert [choose.uses(e) for e in listing.endpoints] == [2, 2, 2]
    done = next(use for use in uses if use.endpoint.instance_id == "b")
    done.done()
    done.done()
    assert picked(choose, 3) == ["b", "b", "b"]


def test_the_least_used_of_many_are_nearly_even() -> None:
    choose, listing = chooser(*(instance(f"i{n}") for n in range(200)), picker=LeastUsed(random.Random(1)))
    for _ in range(2000):
        endpoint = choose.pick()
        assert endpoint is not None
        EndpointUse(choose, endpoint)
    counts = [choose.uses(e) for e in listing.endpoints]
    assert max(counts) - min(counts) <= 4


@pytest.mark.parametrize(
    ("rank", "expected"),
    [
        (near(node="n1"), {"a"}),
        (near(node="elsewhere"), {"a", "b", "c", "d"}),
        (near(labels={"zone": "z2"}), {"b", "c"}),
        (near(labels={"zone": "z2", "rack": "r1"}), {"c"}),
        (near(node="n1", labels={"zone": "z2"}), {"a"}),
        (near(node="elsewhere", labels={"zone": "z2", "rack": "r1"}), {"c"}),
    ],
)
def test_only_the_nearest_are_picked_while_there_are_any(rank: Rank, expected: set[str]) -> None:
    everyone = (
        instance("a", node="n1", zone="z1"),
        instance("b", node="n2", zone="z2"),
        instance("c", node="n2", zone="z2", rack="r1"),
        instance("d", node="n2"),
    )
    assert set(picked(chooser(*everyone, prefer=rank)[0], 12)) == expected


def test_farther_endpoints_serve_when_the_nearest_fails_or_leaves() -> None:
    choose, listing = chooser(instance("a", node="n1"), instance("b", node="n2"), prefer=near(node="n1"))
    assert picked(choose, 2) == ["a", "a"]
    choose.ejections.record_failure(named(listing, "a"))
    assert picked(choose, 2) == ["b", "b"]


def test_an_endpoint_reported_failing_is_passed_over_for_a_while() -> None:
    clock = SetClock()
    choose, listing = chooser(*map(instance, "ab"), clock=clock)
    choose.ejections.record_failure(named(listing, "a"))
    assert set(picked(choose, 6)) == {"b"}
    clock.time += 6.1
    assert set(picked(choose, 6)) == {"a", "b"}


def test_a_failing_endpoint_is_passed_over_longer_each_time_up_to_a_limit() -> None:
    clock = SetClock()
    choose, listing = chooser(*map(instance, "ab"), clock=clock)
    pauses = []
    for _ in range(7):
        choose.ejections.record_failure(named(listing, "a"))
        began = clock.time
        while choose.ejections.ejected_identities(listing.endpoints):
            clock.time += 0.5
        pauses.append(clock.time - began)
    assert pauses == sorted(pauses[:4]) + pauses[4:]
    assert (pauses[0] < 7, max(pauses) <= 72.5, pauses[-1] > 40) == (True, True, True)


def test_a_hundred_failures_at_once_count_as_one() -> None:
    clock = SetClock()
    choose, listing = chooser(*map(instance, "ab"), clock=clock)
    for _ in range(100):
        choose.ejections.record_failure(named(listing, "a"))
    clock.time += 6.1
    assert not choose.ejections.ejected_identities(listing.endpoints)


def test_an_answer_makes_up_for_failures() -> None:
    choose, listing = chooser(*map(instance, "ab"))
    choose.ejections.record_failure(named(listing, "a"))
    choose.ejections.record_success(named(listing, "a"))
    assert not choose.ejections.ejected_identities(listing.endpoints)


def test_a_recreated_instance_is_not_blamed_for_its_predecessor() -> None:
    choose, listing = chooser(*map(instance, "ab"))
    choose.ejections.record_failure(named(listing, "a"))
    listing.show(Delta({("c", "a"): (None, instance("a", uid=2))}))
    assert not choose.ejections.ejected_identities(listing.endpoints)


def test_when_too_many_fail_those_who_failed_longest_ago_are_let_back_in() -> None:
    clock = SetClock()
    choose, listing = chooser(*map(instance, "abcd"), clock=clock, settings=EjectionSettings(first_s=50))
    for id_ in "abcd":
        choose.ejections.record_failure(named(listing, id_))
        clock.time += 21  # more than the jitter of two
    clock.time -= 40
    assert set(picked(choose, 8)) == {"a", "b"}


@settings(deadline=None)
@given(st.integers(0, 12), st.sets(st.integers(0, 11)), st.floats(0.0, 1.0))
def test_at_most_a_share_is_passed_over_and_never_all(count: int, failing: set[int], share: float) -> None:
    _, listing = chooser(*(instance(f"i{n:02}") for n in range(count)))
    ejections = Ejections(SetClock(), random.Random(1), EjectionSettings(max_share=share))
    for n in failing & set(range(count)):
        ejections.record_failure(listing.endpoints[n])
    out = len(ejections.ejected_identities(listing.endpoints))
    assert out <= max(0, count - 1)
    assert out <= max(1, count * share)


pickers: list[Callable[[], Picker]] = [RoundRobin, Random, LeastUsed]


@pytest.mark.parametrize("make", pickers)
def test_every_pick_is_in_the_list(make: Callable[[], Picker]) -> None:
    choose, listing = chooser(*(instance(f"i{n}") for n in range(5)), picker=make())
    assert set(picked(choose, 50)) <= {e.instance_id for e in listing.endpoints}


WEIGHED = st.lists(st.integers(0, 1_000), min_size=1, max_size=12)


def shares(weights: list[int], picker: Picker, times: int) -> list[int]:
    choose, _ = chooser(*(instance(f"i{n:02}", weight=weight) for n, weight in enumerate(weights)), picker=picker)
    counts = Counter(picked(choose, times))
    return [counts[f"i{n:02}"] for n in range(len(weights))]


@pytest.mark.parametrize("picker", [RoundRobin, Random, LeastUsed])
def test_a_canary_of_one_in_a_hundred_gets_one_pick_in_a_hundred(picker: type[Picker]) -> None:
    canary, first, second, resting = shares([1, 49, 50, 0], picker(random.Random(4)), 100_000)  # type: ignore[call-arg]
    assert 700 <= canary <= 1_300
    assert 48_000 <= first <= 50_000
    assert 49_000 <= second <= 51_000
    assert resting == 0


@pytest.mark.long
@given(WEIGHED, st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_turns_by_weight_are_exact(weights: list[int], seed: int) -> None:
    """To two picks: the first one is random, and the last turn may be cut."""
    wanted = [weight or 1 for weight in weights] if not any(weights) else weights
    found = shares(weights, RoundRobin(random.Random(seed)), sum(wanted))
    assert all(abs(count - weight) <= 2 for count, weight in zip(found, wanted, strict=True))


@pytest.mark.parametrize("picker", [RoundRobin, Random, LeastUsed])
def test_without_any_weight_all_endpoints_are_equal(picker: type[Picker]) -> None:
    assert min(shares([0, 0, 0], picker(random.Random(4)), 3_000)) > 900  # type: ignore[call-arg]


def test_clients_that_pick_once_are_together_spread_by_weight() -> None:
    first = [shares([10, 90], RoundRobin(random.Random(seed)), 1) for seed in range(2_000)]
    assert 120 <= sum(light for light, _ in first) <= 400


def test_weight_0_is_not_picked_while_the_only_other_endpoint_fails() -> None:
    choose, listing = chooser(instance("a"), instance("b", weight=0))
    choose.ejections.record_failure(named(listing, "a"))
    assert picked(choose, 3) == ["a"] * 3


def test_a_changed_weight_counts_at_once() -> None:
    choose, listing = chooser(instance("a"), instance("b"))
    picked(choose, 5)
    listing.show(Delta({("c", "b"): (None, instance("b", weight=0))}))
    assert picked(choose, 5) == ["a"] * 5
