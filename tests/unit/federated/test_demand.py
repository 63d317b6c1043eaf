"""Which filters are followed."""

from __future__ import annotations

from federated.followed.demand import Bounds, Demand

KEY = b"web"


def asked_often(demand: Demand, key: bytes = KEY, identity: str = "", at: float = 0.0) -> bool:
    return any(demand.record_request(key, identity, at) for _ in range(5))


def test_a_filter_is_followed_when_it_is_asked_for_five_times_within_ten_seconds() -> None:
    demand = Demand(Bounds())
    assert [demand.record_request(KEY, "", float(second)) for second in range(0, 20, 3)] == [False] * 7
    assert [demand.record_request(KEY, "", 100.0 + second) for second in range(5)] == [False] * 4 + [True]


def test_a_filter_not_asked_for_in_a_minute_is_idle() -> None:
    demand = Demand(Bounds())
    assert asked_often(demand)
    demand.record_request(KEY, "", 50.0)
    assert demand.idle(100.0) == []
    assert demand.idle(111.0) == [KEY]


def test_the_number_of_new_filters_in_a_second_is_limited() -> None:
    demand = Demand(Bounds(new_per_s=2))
    assert [asked_often(demand, key) for key in (b"a", b"b", b"c")] == [True, True, False]
    assert asked_often(demand, b"c", at=1.5)


def test_one_identity_may_hold_a_fifth_of_the_limit_of_all() -> None:
    demand = Demand(Bounds(most=10, new_per_s=100))
    assert [asked_often(demand, bytes([n]), "ada") for n in range(3)] == [True, True, False]
    assert [asked_often(demand, bytes([100 + n]), f"eve-{n}") for n in range(9)] == [True] * 8 + [False]


def test_a_filter_that_could_not_be_followed_is_barred_for_a_while() -> None:
    demand = Demand(Bounds())
    asked_often(demand)
    demand.bar(KEY, 0.0)
    assert not asked_often(demand, at=299.0)
    assert asked_often(demand, at=301.0)


def test_a_bounded_number_of_filters_is_remembered() -> None:
    demand = Demand(Bounds())
    for number in range(20_000):
        demand.record_request(str(number).encode(), "", 0.0)
    assert len(demand._asked) == 10_000
