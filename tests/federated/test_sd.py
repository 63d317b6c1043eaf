"""/sd/prometheus of a gateway: the targets of all locations, or none."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

from tests.federated.conftest import RunningGateway, StartGateway, StartLocations
from tests.federated.fake_location import FakeLocation


def _get(gateway: RunningGateway) -> tuple[int, Any]:
    url = f"http://{gateway.addresses.http}/sd/prometheus?service=svc&port=metrics&ready=any"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def _put(location: FakeLocation, instance_id: str, number: int) -> None:
    location.put(instance_id)
    location.instances[instance_id].spec.node_name = "node-1"
    location.instances[instance_id].spec.allocation.port.add(name="metrics", number=number)


def _targets(groups: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(group["labels"]["__meta_hq_cluster"], group["targets"][0]) for group in groups]


async def test_the_targets_of_all_locations_are_told_together(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = await start_locations("east", "west")
    _put(east, "a-1", 9001)
    _put(west, "b-1", 9002)
    gateway = await start_gateway([east, west], "5s")
    status, groups = await asyncio.to_thread(_get, gateway)
    assert (status, _targets(groups)) == (200, [("east", "node-1:9001"), ("west", "node-1:9002")])


async def test_a_location_that_fell_silent_keeps_the_targets_that_it_told_last(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = await start_locations("east", "west")
    _put(east, "a-1", 9001)
    _put(west, "b-1", 9002)
    gateway = await start_gateway([east, west])
    before = await asyncio.to_thread(_get, gateway)
    await west.stop()
    assert await asyncio.to_thread(_get, gateway) == before


async def test_without_the_targets_of_a_location_that_never_told_them_there_is_no_answer(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = await start_locations("east", "west")
    _put(east, "a-1", 9001)
    await west.stop()
    gateway = await start_gateway([east, west])
    status, error = await asyncio.to_thread(_get, gateway)
    assert status == 503
    assert "west" in error["message"]
