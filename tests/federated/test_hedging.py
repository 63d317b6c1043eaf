"""Replicas of one location that are slow or away."""

from __future__ import annotations

import asyncio
import time

import pytest

from hqpb.v1 import service_pb2 as pb
from tests.federated.answers import errors
from tests.federated.conftest import RunningGateway, StartGateway, StartLocations
from tests.federated.fake_location import FakeLocation
from tests.support.sample_instances import eventually

EVERYTHING = pb.FindInstancesRequest(field_mask={"paths": ["meta"]})  # never from memory
SLOW_S = 30.0
QUICK_S = 10.0  # far from both: what an answer takes if the slow replica is not waited for, and this process stalls


async def ask_often(gateway: RunningGateway, times: int) -> float:
    """The longest time that one of many answers took, in seconds."""
    longest = 0.0
    for _ in range(times):
        began = time.monotonic()
        answer = await gateway.stub.FindInstances(EVERYTHING)
        assert not any(errors(answer.sources).values())
        longest = max(longest, time.monotonic() - began)
    return longest


def preferred(gateway: RunningGateway, location: FakeLocation) -> int:
    """Which replica the gateway asks first."""
    first = gateway.gateway.locations.by_name[location.name].race.replicas.all[0].address
    return location.addresses.index(first)


async def test_one_slow_replica_does_not_make_answers_slow(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east", replicas=2)
    gateway = await start_gateway(locations, "60s")
    longest_s: list[float] = []
    while not longest_s or (longest_s[-1] >= 0.5 and len(longest_s) < 3):  # again: one may meet a stall of the machine
        for replica in east.replicas:
            replica.delay_s = 0.0
        await ask_often(gateway, 50)
        slow = east.replicas[preferred(gateway, east)]
        slow.delay_s, before = SLOW_S, slow.calls["FindInstances"]
        longest_s.append(await ask_often(gateway, 100))
        assert slow.calls["FindInstances"] - before <= 1, "the next calls need not find it out again"
    assert longest_s[-1] < 0.5, longest_s
    stats = gateway.gateway.locations.by_name["east"].race.stats
    assert stats.hedges <= 1 + stats.calls / 10


async def test_many_calls_at_once_survive_a_replica_that_becomes_slow(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east", replicas=2)
    gateway = await start_gateway(locations, "60s")
    await ask_often(gateway, 50)
    east.replicas[preferred(gateway, east)].delay_s = SLOW_S
    assert max(await asyncio.gather(*(ask_often(gateway, 2) for _ in range(30)))) < QUICK_S
    stats = gateway.gateway.locations.by_name["east"].race.stats
    assert stats.hedges <= 1 + stats.calls / 10


async def test_a_stopped_replica_is_replaced_by_another(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east", replicas=2)
    gateway = await start_gateway(locations, "60s")
    doomed = east.replicas[preferred(gateway, east)]
    await doomed.stop()
    await ask_often(gateway, 20)
    await doomed.restart()
    replicas = gateway.gateway.locations.by_name["east"].race.replicas
    await eventually(lambda: not any(r.is_set_aside for r in replicas.all), what="it is healthy again")
    before = doomed.calls["FindInstances"]
    await ask_often(gateway, 5)
    assert doomed.calls["FindInstances"] > before


async def test_a_slow_replica_is_left_alone_even_when_no_second_question_may_be_asked(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east", replicas=2)
    gateway = await start_gateway(locations, "60s")
    race = gateway.gateway.locations.by_name["east"].race
    while race.budget.spend():
        pass
    east.replicas[preferred(gateway, east)].delay_s = SLOW_S
    assert await ask_often(gateway, 5) < QUICK_S
    assert (race.stats.hedges, race.stats.failovers) == (0, 1)


@pytest.mark.long
async def test_where_all_replicas_are_slow_their_load_is_not_doubled(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east", replicas=2)
    gateway = await start_gateway(locations, "60s")
    await ask_often(gateway, 30)
    for replica in east.replicas:
        replica.delay_s = 0.6
    await asyncio.gather(*(ask_often(gateway, 3) for _ in range(20)))
    stats = gateway.gateway.locations.by_name["east"].race.stats
    assert stats.hedges <= 1 + stats.calls / 10
    assert stats.failovers <= 20  # the first round of calls, at most
