"""Discovery over a gateway: locations are shown, lost and found one by one."""

from __future__ import annotations

import asyncio
import random
import time

import pytest

from hqclient.client import Client, ClientSettings
from hqclient.discovery import Discovery
from hqclient.discovery.roster import Roster
from hqclient.watch import WATCH_BACKOFF, WatchSettings
from hqclient.watch_items import Resync
from hqpb.v1 import instance_pb2
from tests.federated.conftest import StartGateway, StartLocations
from tests.federated.fake_location import FakeLocation
from tests.federated.federated_process import write_config
from tests.support.sample_instances import eventually


class Following:
    """A roster fed by a watch."""

    def __init__(self, client: Client, token: str = "", roster: Roster | None = None) -> None:
        self.roster = roster or Roster()
        self.items: list[object] = []
        self.token = token
        self._task = asyncio.create_task(self._run(client, token))

    async def _run(self, client: Client, token: str) -> None:
        async with client.watch(resume_token=token) as watch:
            async for item in watch:
                self.items.append(item)
                self.roster.apply(item, time.monotonic())
                self.token = watch.resume_token

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def ready(locations: list[FakeLocation]) -> set[tuple[str, str]]:
    return {(one.name, i) for one in locations for i in one.instances}


def put(location: FakeLocation, instance_id: str) -> None:
    location.version += 1
    made = location.put(instance_id)
    made.status.ready.status = instance_pb2.CONDITION_STATUS_TRUE
    location.history[-1].put.CopyFrom(made)


@pytest.mark.parametrize("seed", range(3))
async def test_the_list_has_all_locations_whatever_happens_to_one_of_them(
    start_locations: StartLocations, start_gateway: StartGateway, seed: int
) -> None:
    rng = random.Random(seed)
    locations = await start_locations("east", "north", "west")
    for location in locations:
        for n in range(3):
            put(location, f"i-{n}")
    gateway = await start_gateway(locations)
    settings = ClientSettings(watch=WatchSettings(backoff=WATCH_BACKOFF))
    async with Client([gateway.addresses.grpc], settings=settings) as client:
        following = Following(client)

        def holds() -> bool:
            return set(following.roster.instances) == ready(locations) and following.roster.is_whole

        await eventually(holds)
        assert following.roster.resyncs == 0
        for _ in range(6):
            unlucky = rng.choice(locations)
            await unlucky.stop()
            put(unlucky, f"i-{rng.randrange(9)}")
            if unlucky.instances and rng.random() < 0.7:
                unlucky.remove(rng.choice(sorted(unlucky.instances)))
            if rng.random() < 0.5:
                unlucky.oldest_token = unlucky.version
            put(rng.choice(locations), "x")
            await unlucky.replicas[0].restart()
            await eventually(holds, timeout_s=30)
            if rng.random() < 0.5:
                await following.end()
                following = Following(client, following.token, following.roster)
                put(rng.choice(locations), "y")
                await eventually(holds, timeout_s=30)
        assert all(i.cluster for i in following.items if isinstance(i, Resync))
        await following.end()


async def test_with_one_location_down_callers_still_find_the_endpoints_of_the_others(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = locations = await start_locations("east", "west")
    for location in locations:
        put(location, "a")
        allocation = location.instances["a"].spec.allocation
        allocation.host = location.name
        allocation.port.add(name="http", number=80)
    await west.stop()
    gateway = await start_gateway(locations)
    async with Discovery([gateway.addresses.grpc]) as discovery, discovery.service("svc", "http") as service:
        await service.ready(30, live=True)
        assert ([e.host for e in service.endpoints], service.stale) == (["east"], True)
        await west.replicas[0].restart()
        await service.ready(30, at_least=2)
        await eventually(lambda: not service.stale, timeout_s=30)
        write_config(gateway.config, {east.name: east.addresses})
        await eventually(lambda: [e.host for e in service.endpoints] == ["east"], timeout_s=30)
        await eventually(lambda: not service.stale, timeout_s=30)
