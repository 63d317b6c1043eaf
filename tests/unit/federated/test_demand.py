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


def test_one_that_nobody_asks_for_any_more_is_idle() -> None:
    demand = Demand(Bounds())
    assert asked_often(demand)
    demand.record_request(KEY, "", 50.0)
    assert demand.idle(100.0) == []
    assert demand.idle(111.0) == [KEY]


def test_no_more_begin_in_a_second_than_may() -> None:
    demand = Demand(Bounds(new_per_s=2))
    assert [asked_often(demand, key) for key in (b"a", b"b", b"c")] == [True, True, False]
    assert asked_often(demand, b"c", at=1.5)


def test_one_identity_has_a_fifth_and_all_have_a_bound() -> None:
    demand = Demand(Bounds(most=10, new_per_s=100))
    assert [asked_often(demand, bytes([n]), "ada") for n in range(3)] == [True, True, False]
    assert [asked_often(demand, bytes([100 + n]), f"eve-{n}") for n in range(9)] == [True] * 8 + [False]


def test_one_that_cannot_be_followed_is_not_tried_again_for_a_while() -> None:
    demand = Demand(Bounds())
    asked_often(demand)
    demand.bar(KEY, 0.0)
    assert not asked_often(demand, at=299.0)
    assert asked_often(demand, at=301.0)


def test_what_is_remembered_of_questions_is_bounded() -> None:
    demand = Demand(Bounds())
    for number in range(20_000):
        demand.record_request(str(number).encode(), "", 0.0)
    assert len(demand._asked) == 10_000
