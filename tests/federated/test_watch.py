"""One watch over several locations."""

from __future__ import annotations

import random

import grpc
import pytest

from federated.calls.one_location import LocationFollower
from federated.clock import FederatedSystemClock
from federated.encoded import continuation
from hqclient.errors import HqApiError
from hqpb.v1 import service_pb2 as pb
from serving.errors import TooLarge
from tests.federated.answers import refused
from tests.federated.conftest import StartGateway, StartLocations, StartPair, running_gateway
from tests.federated.fake_location import FakeLocation
from tests.federated.federated_process import write_config
from tests.federated.watcher import Watcher
from tests.support.sample_instances import eventually


def state(locations: list[FakeLocation]) -> dict[str, dict[str, int]]:
    return {one.name: {i.meta.id: i.meta.version for i in one.instances.values()} for one in locations}


def holds(watcher: Watcher, locations: list[FakeLocation]) -> bool:
    known = {one.name: watcher.known.get(one.name, {}) for one in locations}
    return watcher.synced >= {one.name for one in locations} and known == state(locations)


async def test_each_location_is_synced_by_itself_and_changes_follow(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a", west="a")
    watcher = Watcher(gateway.stub)
    await eventually(lambda: holds(watcher, [east, west]))
    assert watcher.kinds["east"][:2] == watcher.kinds["west"][:2] == ["SNAPSHOT", "SYNCED"]
    east.put("b")
    west.remove("a")
    await eventually(lambda: holds(watcher, [east, west]))
    await watcher.end()
    await eventually(lambda: not gateway.gateway.watches.open, what="the watch is closed")


async def test_a_watch_goes_on_at_another_gateway_with_its_token(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a")
    async with running_gateway(gateway.config) as doomed:
        first = Watcher(doomed.stub)
        await eventually(lambda: holds(first, [east, west]))
    await eventually(lambda: first.error)
    await first.end()
    east.put("b")
    west.put("c")
    second = Watcher(gateway.stub, first.token, first)
    await eventually(lambda: holds(second, [east, west]))
    assert second.kinds["east"] == second.kinds["west"] == ["SYNCED", "EVENTS"]
    await second.end()


async def test_a_location_that_lost_continuity_leaves_the_others_alone(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a", west="b")
    watcher = Watcher(gateway.stub)
    await eventually(lambda: holds(watcher, [east, west]))
    west.oldest_token = 10_000
    await west.stop()
    west.put("c")
    west.remove("b")
    await west.replicas[0].restart()
    await eventually(lambda: holds(watcher, [east, west]))
    assert watcher.kinds["west"].count("RESYNC") == 1
    assert "RESYNC" not in watcher.kinds["east"]
    assert gateway.gateway.watches.resyncs == {"west": 1}
    await watcher.end()


async def test_the_token_of_a_resync_resumes_the_other_locations_and_shows_that_one_anew(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a", west="a")
    watcher = Watcher(gateway.stub)
    await eventually(lambda: holds(watcher, [east, west]))
    west.oldest_token = 10_000
    await west.stop()
    west.replicas[0].hang_after_resync = True
    await west.replicas[0].restart()
    await eventually(lambda: watcher.kinds["west"][-1] == "RESYNC")
    await watcher.end()
    west.replicas[0].hang_after_resync = False
    resumed = Watcher(gateway.stub, watcher.token, watcher)
    await eventually(lambda: holds(resumed, [east, west]))
    assert resumed.kinds["east"] == ["SYNCED"]
    assert resumed.kinds["west"] == ["RESYNC", "SNAPSHOT", "SYNCED"]
    await resumed.end()


async def test_a_location_lost_and_back_goes_on_without_a_snapshot(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a")
    watcher = Watcher(gateway.stub)
    await eventually(lambda: holds(watcher, [east, west]))
    await west.stop()
    await eventually(lambda: watcher.trouble["west"], what="the watch says that west is silent")
    east.put("b")
    west.put("c")
    await eventually(lambda: "b" in watcher.known["east"], what="east goes on meanwhile")
    await west.replicas[0].restart()
    await eventually(lambda: holds(watcher, [east, west]) and not watcher.trouble["west"])
    assert "SNAPSHOT" not in watcher.kinds["west"]
    assert "RESYNC" not in watcher.kinds["west"]
    await watcher.end()


async def test_a_snapshot_cut_off_in_the_middle_starts_over(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east")
    for instance_id in "abc":
        east.put(instance_id)
    east.replicas[0].cut_snapshot = True
    gateway = await start_gateway(locations)
    watcher = Watcher(gateway.stub)
    await eventually(lambda: holds(watcher, locations))
    assert watcher.kinds["east"] == ["SNAPSHOT", "RESYNC", "SNAPSHOT", "SNAPSHOT", "SNAPSHOT", "SYNCED"]
    await watcher.end()


async def test_after_a_token_without_a_location_the_watcher_forgets_what_it_may_have_seen_there(
    start_pair: StartPair,
) -> None:
    east, west, gateway = await start_pair(east="a", west="b")
    west.replicas[0].delay_s = 30
    first = Watcher(gateway.stub)
    await eventually(lambda: first.synced == {"east"})
    await first.end()
    west.replicas[0].delay_s = 0
    second = Watcher(gateway.stub, first.token, first)
    await eventually(lambda: holds(second, [east, west]))
    assert second.kinds["east"] == ["SYNCED"]
    assert second.kinds["west"] == ["RESYNC", "SNAPSHOT", "SYNCED"]
    await second.end()


async def test_a_location_that_only_a_token_names_is_not_counted(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    gateway = await start_gateway(await start_locations("east"))
    token = continuation.resume_token(continuation.filter_digest(pb.InstanceFilter()), {"made-up": "1"})
    watcher = Watcher(gateway.stub, token)
    await eventually(lambda: watcher.kinds["made-up"] == ["RESYNC", "SYNCED"] and "east" in watcher.synced)
    await watcher.end()
    assert set(gateway.gateway.watches.resyncs) == {"east"}


async def test_a_watch_that_is_too_large_for_a_location_ends_instead_of_asking_for_ever(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    gateway = await start_gateway(await start_locations("east"))
    follower = LocationFollower(
        "east", gateway.gateway.locations, pb.InstanceFilter(), "", FederatedSystemClock(), random.Random(1)
    )
    too_large = HqApiError(grpc.StatusCode.RESOURCE_EXHAUSTED, "Received message larger than max")
    follower.on_stream_failure(too_large)  # once may be something else: another replica may take it
    with pytest.raises(TooLarge):
        follower.on_stream_failure(too_large)


async def test_locations_come_and_go_under_a_watch(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west, south = locations = await start_locations("east", "west", "south")
    for location in locations:
        location.put("a")
    gateway = await start_gateway([east, west])
    watcher = Watcher(gateway.stub)
    await eventually(lambda: holds(watcher, [east, west]))
    write_config(gateway.config, {one.name: one.addresses for one in (east, south)})
    await eventually(lambda: holds(watcher, [east, south]) and "west" not in watcher.known)
    assert watcher.kinds["west"][-2:] == ["RESYNC", "SYNCED"]
    # It may be synced again, from where it was; nothing of it was shown anew.
    assert watcher.kinds["east"][:2] == ["SNAPSHOT", "SYNCED"]
    assert set(watcher.kinds["east"][2:]) <= {"SYNCED"}
    token = watcher.token
    await watcher.end()
    resumed = Watcher(gateway.stub, token, watcher)
    await eventually(lambda: holds(resumed, [east, south]))
    assert resumed.kinds == {"east": ["SYNCED"], "south": ["SYNCED"]}
    await resumed.end()


async def test_a_gateway_that_goes_away_says_so(start_locations: StartLocations, start_gateway: StartGateway) -> None:
    locations = await start_locations("east")
    gateway = await start_gateway(locations)
    async with running_gateway(gateway.config) as doomed:
        watcher = Watcher(doomed.stub)
        await eventually(lambda: holds(watcher, locations))
    await eventually(lambda: watcher.error)
    assert isinstance(watcher.error, grpc.aio.AioRpcError)
    assert "resume at another" in (watcher.error.details() or "")


async def test_a_token_of_a_single_hq_is_refused(start_locations: StartLocations, start_gateway: StartGateway) -> None:
    gateway = await start_gateway(await start_locations("east"))
    call = gateway.stub.WatchInstances(pb.WatchInstancesRequest(resume_token="WyJlIiwiZiIsMV0"))
    assert (await refused(call.read())).code() is grpc.StatusCode.INVALID_ARGUMENT
