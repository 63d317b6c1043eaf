"""The way to HQ: by the host agent, and directly only after half a timeout without it."""

from __future__ import annotations

import random
from typing import cast

import pytest

from hqclient.client import Client
from instancectl.route import DEFAULT_TIMEOUT_S, HqRoute


class Agent:
    def __init__(self) -> None:
        self.seconds = 0.0

    def away_s(self) -> float:
        return self.seconds


DIRECT = cast("Client", Agent())


def route(agent: Agent, seed: int = 1) -> HqRoute:
    return HqRoute(cast("Client", agent), DIRECT, random.Random(seed), "/run/agent.sock")


def test_after_half_a_timeout_without_the_host_agent_calls_go_directly_until_it_is_back() -> None:
    agent = Agent()
    way = route(agent)
    for seconds, is_direct in ((0.0, False), (0.49 * DEFAULT_TIMEOUT_S, False), (0.61 * DEFAULT_TIMEOUT_S, True)):
        agent.seconds = seconds
        assert (way.client is DIRECT) is is_direct
    assert "directly" in way.describe()
    agent.seconds = 0.0
    assert way.client is not DIRECT
    assert "connected" in way.describe()


def test_the_timeout_that_hq_gave_is_used() -> None:
    agent = Agent()
    way = route(agent)
    way.set_timeout(10.0)
    way.set_timeout(0.0)
    agent.seconds = 6.1
    assert way.client is DIRECT


def test_supervisors_that_lose_their_host_agent_together_turn_to_hq_one_by_one() -> None:
    agent = Agent()
    ways = [route(agent, seed) for seed in range(100)]
    agent.seconds = 0.55 * DEFAULT_TIMEOUT_S
    gone = sum(way.client is DIRECT for way in ways)
    assert 20 < gone < 80


def test_the_watch_never_goes_directly_in_place_of_the_host_agent() -> None:
    agent = Agent()
    way = route(agent)
    agent.seconds = 10 * DEFAULT_TIMEOUT_S
    assert way.watched is not DIRECT


def test_without_a_host_agent_everything_goes_directly_the_watch_too() -> None:
    way = HqRoute(None, DIRECT, random.Random(1))
    assert way.client is way.watched is DIRECT


def test_without_replicas_the_host_agent_is_waited_for() -> None:
    agent = Agent()
    way = HqRoute(cast("Client", agent), None, random.Random(1))
    agent.seconds = 10 * DEFAULT_TIMEOUT_S
    assert way.client is cast("Client", agent)
    assert "away" in way.describe()


def test_a_route_without_host_agent_and_replicas_is_refused() -> None:
    with pytest.raises(ValueError, match="no route to HQ"):
        HqRoute(None, None, random.Random(1))
