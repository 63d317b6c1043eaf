"""The configuration changes while the gateway is asked, or names a replica that belongs to somebody else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.federated.answers import errors, ids, refused
from tests.federated.conftest import StartLocations, StartPair, running_gateway
from tests.federated.federated_process import write_config
from tests.federated.test_writes import create
from tests.support.sample_instances import eventually

EVERYTHING = pb.FindInstancesRequest()
Context = grpc.aio.ServicerContext[Any, Any]


@pytest.mark.long
async def test_calls_under_way_end_well_when_the_configuration_of_their_location_changes(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(west="b", replicas=2, timeout="30s")
    before = gateway.gateway.locations.by_name["east"]
    asked, answers = asyncio.Event(), asyncio.Event()

    async def late(request: Any, context: Context) -> None:
        asked.set()
        await answers.wait()

    for replica in east.replicas:
        replica.create = late
    for replica in west.replicas:
        replica.delay_s = 3.0
    writing = asyncio.ensure_future(gateway.stub.CreateInstance(create("a", "east")))
    reading = asyncio.ensure_future(gateway.stub.FindInstances(EVERYTHING))
    await asked.wait()
    write_config(gateway.config, {one.name: one.addresses for one in (east, west)}, "31s")
    await eventually(lambda: gateway.gateway.locations.by_name["east"] is not before)
    answers.set()
    assert (await writing).instance.meta.id == "a"
    assert ids(await reading) == [("b", "west")]


@pytest.mark.long
async def test_an_instance_is_not_called_missing_if_a_location_was_dropped_before_its_store_was_asked(
    start_pair: StartPair,
) -> None:
    east, west, gateway = await start_pair(timeout="30s")
    east.replicas[0].delay_s = 3.0
    getting = asyncio.ensure_future(refused(gateway.stub.GetInstance(pb.GetInstanceRequest(id="a"))))
    await eventually(lambda: west.replicas[0].calls["FindInstances"])
    write_config(gateway.config, {"east": east.addresses}, "30s")
    error = await getting
    assert list(gateway.gateway.locations.by_name) == ["east"]
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "west: it was just removed" in (error.details() or "")


@pytest.mark.long
async def test_a_replica_of_another_cluster_does_not_silence_the_replicas_beside_it(
    start_locations: StartLocations, tmp_path: Path
) -> None:
    east, west, south = await start_locations("east", "west", "south")
    east.put("a")
    west.put("b")
    stranger = south.replicas[0]
    write_config(tmp_path / "gateway.yaml", {"east": east.addresses, "west": [*west.addresses, *south.addresses]}, "5s")
    async with running_gateway(tmp_path / "gateway.yaml") as gateway, asyncio.timeout(60):
        while stranger.calls["CountInstances"] < 4:  # probes
            answer = await gateway.stub.FindInstances(EVERYTHING)
            assert (ids(answer), errors(answer.sources)) == ([("a", "east"), ("b", "west")], {"east": "", "west": ""})
            await asyncio.sleep(0.02)
    assert stranger.calls["FindInstances"] == 0
