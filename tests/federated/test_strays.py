"""Replicas of other clusters at addresses of a location: what they say is never told as the location's."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.federated.answers import errors, refused
from tests.federated.conftest import StartGateway, StartLocations
from tests.federated.fake_location import FakeReplica

Code = grpc.StatusCode


async def test_answers_of_a_replica_of_another_cluster_are_not_taken_for_the_locations(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, other = await start_locations("east", "other")
    other.put("a")
    gateway = await start_gateway([east], "5s")
    east.replicas[0].location = other
    for id_ in ("a", "b"):
        for call in (
            gateway.stub.GetInstance(pb.GetInstanceRequest(id=id_)),
            gateway.stub.ExplainInstance(pb.ExplainInstanceRequest(id=id_)),
        ):
            error = await refused(call)
            assert error.code() is Code.UNAVAILABLE
            assert "east" in (error.details() or "")


async def test_an_explanation_by_a_stray_replica_is_not_passed_on_though_the_location_has_the_instance(
    start_locations: StartLocations, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain = FakeReplica.ExplainInstance

    async def explain_as_a_stray(replica: FakeReplica, request: Any, context: Any) -> Any:
        replica.location = other
        try:
            return await explain(replica, request, context)
        finally:
            replica.location = east

    monkeypatch.setattr(FakeReplica, "ExplainInstance", explain_as_a_stray)
    east, other = await start_locations("east", "other")
    east.put("a")
    east.put("b")
    other.put("a")
    gateway = await start_gateway([east], "5s")
    for id_ in ("a", "b"):
        error = await refused(gateway.stub.ExplainInstance(pb.ExplainInstanceRequest(id=id_)))
        assert error.code() is Code.UNAVAILABLE


async def test_a_watch_gives_out_no_event_that_does_not_name_its_cluster(
    start_locations: StartLocations, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = FakeReplica._message

    def nobodys(replica: FakeReplica, *given: Any, **named: Any) -> pb.WatchInstancesResponse:
        answer = message(replica, *given, **named)
        answer.ClearField("sources")
        return answer

    monkeypatch.setattr(FakeReplica, "_message", nobodys)
    (east,) = locations = await start_locations("east")
    east.put("a")
    gateway = await start_gateway(locations, "5s")
    watching: Any = gateway.stub.WatchInstances(pb.WatchInstancesRequest())
    told = [await watching.read(), await watching.read()]
    assert [(list(errors(one.sources)), len(one.events)) for one in told] == [(["east"], 0)] * 2
    assert "call themselves ''" in errors(told[1].sources)["east"]
    watching.cancel()
