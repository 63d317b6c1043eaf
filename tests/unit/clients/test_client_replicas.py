"""Which replica a client asks."""

from __future__ import annotations

import random

import pytest

from hqclient.pool import Replicas


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
def replicas(clock: StandingClock) -> Replicas:
    return Replicas(["a", "b", "c"], clock, random.Random(1), first_backoff_s=1.0, max_backoff_s=8.0)


def test_a_client_stays_with_one_replica(replicas: Replicas) -> None:
    assert len({replicas.pick().address for _ in range(10)}) == 1


def test_many_clients_spread_over_the_replicas(clock: StandingClock) -> None:
    firsts = [Replicas(["a", "b", "c"], clock, random.Random(n)).pick().address for n in range(300)]
    assert all(60 < firsts.count(address) < 140 for address in "abc")


def test_a_failed_replica_is_set_aside_and_preferred_again_when_it_recovers(replicas: Replicas) -> None:
    first = replicas.pick()
    replicas.record_failure(first)
    assert replicas.pick() is not first
    replicas.record_success(first)
    assert replicas.pick() is first


def test_when_all_replicas_failed_the_one_probed_soonest_is_picked(replicas: Replicas, clock: StandingClock) -> None:
    for replica in replicas.all:
        replicas.record_failure(replica)
        clock.now_s += 0.4
    soonest = min(replicas.all, key=lambda r: r.probe_at)
    assert replicas.pick() is soonest


def test_a_replica_already_tried_is_avoided_while_another_is_left(replicas: Replicas) -> None:
    a, b, c = (r.address for r in replicas.all)
    assert replicas.pick({a}).address == b
    assert replicas.pick({a, b}).address == c
    assert replicas.pick({a, b, c}).address == a


def test_the_time_aside_grows_with_jitter_up_to_a_limit(replicas: Replicas, clock: StandingClock) -> None:
    replica = replicas.pick()
    waits = []
    for _ in range(7):
        replicas.record_failure(replica)
        waits.append(replica.probe_at - clock.now())
        clock.now_s = replica.probe_at
    for wait_s, limit_s in zip(waits, [1, 2, 4, 8, 8, 8, 8], strict=True):
        assert limit_s / 2 <= wait_s <= limit_s
    assert len(set(waits[3:])) > 1


def test_calls_that_fail_together_are_one_failure(replicas: Replicas) -> None:
    replica = replicas.pick()
    for _ in range(100):
        replicas.record_failure(replica)
    assert replica.failures == 1


def test_a_replica_is_due_for_a_probe_when_its_time_has_come(replicas: Replicas, clock: StandingClock) -> None:
    replica = replicas.pick()
    assert replicas.next_probe_in_s() is None
    replicas.record_failure(replica)
    wait_s = replicas.next_probe_in_s()
    assert wait_s is not None
    assert replicas.due() == []
    clock.now_s += wait_s
    assert replicas.due() == [replica]
    assert replicas.next_probe_in_s() == 0.0


def test_replicas_set_aside_are_not_worth_asking_while_a_healthy_one_is_there(replicas: Replicas) -> None:
    a, b, c = replicas.all
    replicas.record_failure(c)
    assert replicas.has_more_than({a.address})
    assert not replicas.has_more_than({a.address, b.address})
    replicas.record_failure(a)
    replicas.record_failure(b)
    assert replicas.has_more_than({a.address, b.address})


def test_one_address_given_twice_is_one_replica(clock: StandingClock) -> None:
    assert len(Replicas(["a", "a"], clock, random.Random(1))) == 1


def test_a_client_without_addresses_is_refused(clock: StandingClock) -> None:
    with pytest.raises(ValueError, match="at least one replica"):
        Replicas([], clock, random.Random(1))
