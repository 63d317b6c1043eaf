"""Writes through a gateway whose addresses are mistaken, or one of whose tries has no known outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc

from hqclient.errors import decode
from hqpb.v1 import service_pb2 as pb
from tests.clients.deeds import cut, refuse
from tests.federated.answers import refused
from tests.federated.conftest import StartGateway, StartLocations, running_gateway
from tests.federated.federated_process import write_config
from tests.federated.test_writes import WEST, create, instance

Context = grpc.aio.ServicerContext[Any, Any]
Code = grpc.StatusCode


async def test_an_order_for_a_location_changes_nothing_at_an_address_of_another_one(
    start_locations: StartLocations, tmp_path: Path
) -> None:
    east, west = await start_locations("east", "west")
    write_config(tmp_path / "gateway.yaml", {"east": west.addresses, "west": east.addresses}, "5s")
    async with running_gateway(tmp_path / "gateway.yaml") as gateway:
        for order in (
            gateway.stub.CreateInstance(create("a", "east")),
            gateway.stub.ApplyInstances(pb.ApplyInstancesRequest(instance=[instance("b", "east")])),
            gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="c"), metadata=WEST),
        ):
            error = await refused(order)
            assert error.code() is Code.INVALID_ARGUMENT
            assert "belongs to cluster" in (error.details() or "")
    assert (east.instances, west.instances) == ({}, {})


async def test_an_error_does_not_claim_that_nothing_was_stored_if_an_earlier_try_may_have_stored_it(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east", replicas=2)
    gateway = await start_gateway(locations, "5s")
    asked: list[str] = []

    async def create_first(request: pb.CreateInstanceRequest, context: Context) -> None:
        asked.append(request.instance.meta.id)
        if len(asked) == 1:
            east.put(request.instance.meta.id)
            await cut()(context)
        await refuse(Code.UNAVAILABLE, "STORE_UNAVAILABLE", "nothing was stored", retry_delay_s=0.1)(context)

    for replica in east.replicas:
        replica.create = create_first
    request = create("a")
    request.request_id = "once"
    told = decode(await refused(gateway.stub.CreateInstance(request)))
    assert asked == ["a", "a"]
    assert (told.outcome_unknown, told.nothing_stored) == (True, False)
