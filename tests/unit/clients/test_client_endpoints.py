"""Which replica a client asks."""

from __future__ import annotations

import random

import pytest

from hqclient.pool import Endpoints


class StandingClock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def now(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.now_s += delay_s


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def endpoints(clock: StandingClock) -> Endpoints:
    return Endpoints(["a", "b", "c"], clock, random.Random(1), first_backoff_s=1.0, max_backoff_s=8.0)


def test_a_client_stays_with_one_replica(endpoints: Endpoints) -> None:
    assert len({endpoints.pick().address for _ in range(10)}) == 1


def test_many_clients_spread_over_the_replicas(clock: StandingClock) -> None:
    firsts = [Endpoints(["a", "b", "c"], clock, random.Random(n)).pick().address for n in range(300)]
    assert all(60 < firsts.count(address) < 140 for address in "abc")


def test_a_failed_replica_is_set_aside_and_preferred_again_when_it_recovers(endpoints: Endpoints) -> None:
    first = endpoints.pick()
    endpoints.failed(first)
    assert endpoints.pick() is not first
    endpoints.succeeded(first)
    assert endpoints.pick() is first


def test_when_all_failed_the_one_probed_soonest_is_the_last_resort(endpoints: Endpoints, clock: StandingClock) -> None:
    for endpoint in endpoints.all:
        endpoints.failed(endpoint)
        clock.now_s += 0.4
    soonest = min(endpoints.all, key=lambda e: e.probe_at)
    assert endpoints.pick() is soonest


def test_a_replica_asked_in_vain_is_avoided_while_there_is_another(endpoints: Endpoints) -> None:
    a, b, c = (e.address for e in endpoints.all)
    assert endpoints.pick({a}).address == b
    assert endpoints.pick({a, b}).address == c
    assert endpoints.pick({a, b, c}).address == a


def test_the_time_aside_grows_with_jitter_up_to_a_limit(endpoints: Endpoints, clock: StandingClock) -> None:
    endpoint = endpoints.pick()
    waits = []
    for _ in range(7):
        endpoints.failed(endpoint)
        waits.append(endpoint.probe_at - clock.now())
        clock.now_s = endpoint.probe_at
    for wait_s, limit_s in zip(waits, [1, 2, 4, 8, 8, 8, 8], strict=True):
        assert limit_s / 2 <= wait_s <= limit_s
    assert len(set(waits[3:])) > 1


def test_calls_that_fail_together_are_one_failure(endpoints: Endpoints) -> None:
    endpoint = endpoints.pick()
    for _ in range(100):
        endpoints.failed(endpoint)
    assert endpoint.failures == 1


def test_a_replica_is_due_for_a_probe_when_its_time_has_come(endpoints: Endpoints, clock: StandingClock) -> None:
    endpoint = endpoints.pick()
    assert endpoints.next_probe_in_s() is None
    endpoints.failed(endpoint)
    wait_s = endpoints.next_probe_in_s()
    assert wait_s is not None
    assert endpoints.due() == []
    clock.now_s += wait_s
    assert endpoints.due() == [endpoint]
    assert endpoints.next_probe_in_s() == 0.0


def test_replicas_set_aside_are_not_worth_asking_while_a_healthy_one_is_there(endpoints: Endpoints) -> None:
    a, b, c = endpoints.all
    endpoints.failed(c)
    assert endpoints.has_more_than({a.address})
    assert not endpoints.has_more_than({a.address, b.address})
    endpoints.failed(a)
    endpoints.failed(b)
    assert endpoints.has_more_than({a.address, b.address})


def test_one_address_given_twice_is_one_replica(clock: StandingClock) -> None:
    assert len(Endpoints(["a", "a"], clock, random.Random(1))) == 1


def test_a_client_without_addresses_is_refused(clock: StandingClock) -> None:
    with pytest.raises(ValueError, match="at least one replica"):
        Endpoints([], clock, random.Random(1))
