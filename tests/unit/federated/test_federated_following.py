"""How often a gateway asks a location whose watches end again and again. In virtual time."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, cast

import grpc
import pytest

from federated.calls.one_location import LocationFollower, Portion
from federated.clock import FederatedSystemClock
from federated.locations.channel import Dialer
from federated.locations.config import LocationConfig
from federated.locations.location import Location
from federated.locations.location_health import LocationHealth
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from tests.support.virtual_time import VirtualClock, in_virtual_time

if TYPE_CHECKING:
    from federated.locations.locations import Locations

BOOKMARK = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, resume_token="t").SerializeToString()


class Clock(VirtualClock):
    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


class NoLocations:
    def get(self, _name: str) -> None: ...


def follower() -> LocationFollower:
    locations = cast("Locations", NoLocations())
    return LocationFollower("east", locations, pb.InstanceFilter(), "", Clock(), random.Random(1))


async def pause_after_a_stream_of(seconds: float, of: LocationFollower) -> float:
    of.request()
    await asyncio.sleep(seconds)
    of.on_message(BOOKMARK)
    of.on_stream_failure(HqApiError(grpc.StatusCode.UNAVAILABLE, "it went away"))
    ended = asyncio.get_running_loop().time()
    await of.pause()
    return asyncio.get_running_loop().time() - ended


@in_virtual_time
async def test_streams_that_end_soon_are_reopened_with_growing_pauses_even_if_each_brings_news() -> None:
    east = follower()
    pauses = [await pause_after_a_stream_of(0.01, east) for _ in range(10)]
    assert pauses[0] < 0.11
    assert all(0.99 < pause < 2.01 for pause in pauses[-5:])


@in_virtual_time
async def test_a_stream_that_lasted_is_opened_again_at_once() -> None:
    east = follower()
    for _ in range(10):
        await pause_after_a_stream_of(0.01, east)
    assert await pause_after_a_stream_of(60, east) < 0.11


class OneLocation:
    """A location that has its health, and nothing else."""

    def __init__(self) -> None:
        self.health = LocationHealth("east", 2.0, Clock())

    def get(self, _name: str) -> OneLocation:
        return self


def told(portions: list[Portion]) -> list[str]:
    return [pb.WatchInstancesResponse.FromString(p.bodies[0]).sources[0].error for p in portions]


def following(location: OneLocation) -> LocationFollower:
    return LocationFollower("east", cast("Locations", location), pb.InstanceFilter(), "", Clock(), random.Random(1))


OF_EAST = pb.WatchInstancesResponse(kind=pb.WATCH_KIND_BOOKMARK, sources=[pb.Source(cluster="east", replica="r")])


@in_virtual_time
async def test_a_watch_reports_a_silent_location_at_once_and_once() -> None:
    east = following(location := OneLocation())
    await asyncio.sleep(1)
    assert east.silence() == []
    location.health.record_unreachable("no replica answered a probe")
    assert told(east.silence()) == ["no replica answered a probe; resuming automatically"]
    assert east.silence() == []
    east.on_message(OF_EAST.SerializeToString())
    # Its probes fail, but its stream lives.
    assert east.silence() == []


async def test_only_the_log_names_the_addresses_of_a_location(caplog: pytest.LogCaptureFixture) -> None:
    asked = "127.0.0.1:1"
    east = Location(LocationConfig("east", (asked,)), FederatedSystemClock(), random.Random(1), Dialer(), 0)
    await east.probes.probe()
    await east.close()
    assert east.health.error == "no replica answered a probe within 2 s"
    assert f"{east.health.error} (check `replicas` in --config: {asked})" in caplog.text


@in_virtual_time
async def test_a_stream_without_bookmarks_is_silent_whatever_the_probes_say() -> None:
    east = following(OneLocation())
    await asyncio.sleep(5.5)
    assert east.silence() == []
    await asyncio.sleep(east.look_in_s())
    assert "not even a bookmark" in told(east.silence())[0]
    assert east.silence() == []
