"""Reads while a location is silent, slow or not what it should be: the others answer, and the answer says so."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.federated.answers import errors, ids, refused
from tests.federated.conftest import StartGateway, StartLocations, StartPair
from tests.federated.federated_process import write_config
from tests.support.sample_instances import eventually
from tests.support.token_issuer import Issuer, bearer

Code = grpc.StatusCode
EVERYTHING = pb.FindInstancesRequest()
STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)


@pytest.mark.long
async def test_a_location_that_hangs_costs_only_its_own_instances_and_one_wait(start_pair: StartPair) -> None:
    _, west, gateway = await start_pair(east="a", west="b")
    west.replicas[0].delay_s = 30
    answer = await gateway.stub.FindInstances(EVERYTHING)
    assert ids(answer) == [("a", "east")]
    assert errors(answer.sources)["east"] == ""
    assert "no response within 4 s" in errors(answer.sources)["west"]
    asked = west.replicas[0].calls["FindInstances"]
    for _ in range(10):
        await gateway.stub.FindInstances(EVERYTHING)
    assert west.replicas[0].calls["FindInstances"] == asked
    west.replicas[0].delay_s = 0
    await eventually(lambda: gateway.gateway.locations.by_name["west"].health.is_up, what="west up after a probe")
    assert ids(await gateway.stub.FindInstances(EVERYTHING)) == [("a", "east"), ("b", "west")]


@pytest.mark.long
async def test_a_location_whose_store_is_away_still_answers_reads_from_memory(start_pair: StartPair) -> None:
    _, west, gateway = await start_pair(east="a", west="b")
    west.replicas[0].store_delay_s = 30
    for demanding in (
        gateway.stub.FindInstances(pb.FindInstancesRequest(read=STRONG)),
        gateway.stub.CountInstances(pb.CountInstancesRequest(read=STRONG)),
    ):
        assert "no response within 4 s" in errors((await demanding).sources)["west"]
        assert gateway.gateway.locations.by_name["west"].health.is_up
    error = await refused(gateway.stub.GetInstance(pb.GetInstanceRequest(id="nobody")))
    assert error.code() is Code.UNAVAILABLE
    assert gateway.gateway.locations.by_name["west"].health.is_up
    assert ids(await gateway.stub.FindInstances(EVERYTHING)) == [("a", "east"), ("b", "west")]


async def test_a_caller_in_a_hurry_gets_the_others_before_its_deadline(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = locations = await start_locations("east", "west")
    east.put("a")

    async def is_answered() -> bool:
        west.replicas[0].delay_s = 0
        gateway = await start_gateway(locations, "20s")
        west.replicas[0].delay_s = 30
        with suppress(grpc.aio.AioRpcError):
            answer = await gateway.stub.FindInstances(EVERYTHING, timeout=0.6)
            return ids(answer) == [("a", "east")] and gateway.gateway.locations.by_name["west"].health.is_up
        return False

    await eventually(is_answered, what="an answer in a try during which this machine does not stall")


async def test_if_all_locations_are_required_a_silent_one_is_named(start_pair: StartPair) -> None:
    _, west, gateway = await start_pair(east="a")
    await west.stop()
    read = pb.ReadOptions(require_all_locations=True)
    for call in (
        gateway.stub.FindInstances(pb.FindInstancesRequest(read=read)),
        gateway.stub.CountInstances(pb.CountInstancesRequest(read=read)),
        gateway.stub.GetInstance(pb.GetInstanceRequest(id="a", read=read)),
    ):
        error = await refused(call)
        assert error.code() is Code.UNAVAILABLE
        assert "west" in (error.details() or "")
        assert "east" not in (error.details() or "")


async def test_if_no_location_answers_the_read_fails_instead_of_looking_complete(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair()
    for location in (east, west):
        await location.stop()
    for call in (
        gateway.stub.FindInstances(EVERYTHING),
        gateway.stub.CountInstances(pb.CountInstancesRequest()),
        gateway.stub.GetInstance(pb.GetInstanceRequest(id="a")),
    ):
        error = await refused(call)
        assert error.code() is Code.UNAVAILABLE
        assert "east" in (error.details() or "")
        assert "west" in (error.details() or "")


async def test_an_instance_is_called_missing_only_if_every_location_was_asked(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair()
    assert (await refused(gateway.stub.GetInstance(pb.GetInstanceRequest(id="a")))).code() is Code.NOT_FOUND
    await west.stop()
    assert (await refused(gateway.stub.GetInstance(pb.GetInstanceRequest(id="a")))).code() is Code.UNAVAILABLE
    assert (await refused(gateway.stub.ExplainInstance(pb.ExplainInstanceRequest(id="a")))).code() is Code.UNAVAILABLE
    east.put("a")
    answer = await gateway.stub.GetInstance(pb.GetInstanceRequest(id="a"))
    assert answer.instance.meta.cluster == "east"
    assert errors(answer.sources)["west"]


async def test_a_get_that_one_location_denies_is_denied_unless_the_caller_names_another(
    start_pair: StartPair,
) -> None:
    _, west, gateway = await start_pair(east="a")
    west.replicas[0].denies = True
    error = await refused(gateway.stub.GetInstance(pb.GetInstanceRequest(id="a")))
    assert error.code() is Code.PERMISSION_DENIED
    named = (("x-hq-cluster", "east"),)
    answer = await gateway.stub.GetInstance(pb.GetInstanceRequest(id="a"), metadata=named)
    assert answer.instance.meta.cluster == "east"


async def test_explain_is_answered_by_the_owner_with_a_source_for_each_location(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    _, north, west = locations = await start_locations("east", "north", "west")
    north.put("a")
    gateway = await start_gateway(locations)
    await west.stop()
    answer = await gateway.stub.ExplainInstance(pb.ExplainInstanceRequest(id="a"))
    assert answer.meta.cluster == "north"
    assert {name: bool(error) for name, error in errors(answer.sources).items()} == {
        "east": False,
        "north": False,
        "west": True,
    }


async def test_an_old_answer_is_served_only_to_callers_that_allow_it_and_says_its_age(start_pair: StartPair) -> None:
    _, west, gateway = await start_pair(east="a", west="b")
    allowing = pb.FindInstancesRequest(read=pb.ReadOptions(allow_last_good=True))
    count = pb.CountInstancesRequest(read=pb.ReadOptions(allow_last_good=True))
    await gateway.stub.FindInstances(EVERYTHING)  # whoever asked first need not have allowed it
    await gateway.stub.CountInstances(pb.CountInstancesRequest())
    await west.stop()
    assert ids(await gateway.stub.FindInstances(EVERYTHING)) == [("a", "east")]
    old = await gateway.stub.FindInstances(allowing)
    assert ids(old) == [("a", "east"), ("b", "west")]
    told = {source.cluster: source for source in old.sources}["west"]
    assert told.stale
    assert told.staleness.ToMilliseconds() >= 5
    assert "showing the last one" in told.error
    assert [g.total for g in (await gateway.stub.CountInstances(count)).groups] == [2]
    never_asked = pb.FindInstancesRequest(filter=pb.InstanceFilter(instance_id=["b"]), read=allowing.read)
    assert not (await gateway.stub.FindInstances(never_asked)).instances
    masked = pb.FindInstancesRequest(read=allowing.read)
    masked.field_mask.paths.append("meta.id")
    for other in (masked, pb.FindInstancesRequest(read=allowing.read, page_size=10)):
        answer = await gateway.stub.FindInstances(other)
        assert ids(answer) == [("a", "east")], "it was never asked so, though all that it wants is known"
        assert {source.cluster: source for source in answer.sources}["west"].error
    strong = pb.FindInstancesRequest(read=pb.ReadOptions(allow_last_good=True, consistency=pb.READ_CONSISTENCY_STRONG))
    assert ids(await gateway.stub.FindInstances(strong)) == [("a", "east")]


async def test_if_a_gateway_asks_for_no_tokens_an_old_answer_is_only_for_the_token_that_it_was_given_to(
    start_pair: StartPair, tmp_path: Path
) -> None:
    _, west, gateway = await start_pair(east="a", west="b")
    allowing = pb.FindInstancesRequest(read=pb.ReadOptions(allow_last_good=True))
    count = pb.CountInstancesRequest(read=pb.ReadOptions(allow_last_good=True))
    ann, bob = ((bearer(Issuer(tmp_path).token(name)),) for name in ("ann", "bob"))
    await gateway.stub.FindInstances(allowing, metadata=ann)
    await gateway.stub.CountInstances(count, metadata=ann)
    await west.stop()
    for stranger in ((), bob):
        assert ids(await gateway.stub.FindInstances(allowing, metadata=stranger)) == [("a", "east")]
        assert [g.total for g in (await gateway.stub.CountInstances(count, metadata=stranger)).groups] == [1]
    assert ids(await gateway.stub.FindInstances(allowing, metadata=ann)) == [("a", "east"), ("b", "west")]
    assert [g.total for g in (await gateway.stub.CountInstances(count, metadata=ann)).groups] == [2]


async def test_a_request_that_is_too_large_for_a_location_does_not_make_it_silent_for_others(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east")
    east.put("a")
    gateway = await start_gateway(locations, "5s")
    large = pb.FindInstancesRequest()
    large.field_mask.paths.append("spec")  # the gateway adds two more
    large.filter.instance_id.append("x" * (4 * 1024 * 1024 - large.ByteSize() - 20))
    error = await refused(gateway.stub.FindInstances(large))
    assert error.code() is Code.RESOURCE_EXHAUSTED
    assert gateway.gateway.locations.by_name["east"].health.is_up
    assert ids(await gateway.stub.FindInstances(EVERYTHING)) == [("a", "east")]


async def test_replicas_of_another_cluster_are_not_taken_for_this_one(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = await start_locations("east", "west")
    east.put("a")
    west.put("b")
    west.name = "south"
    gateway = await start_gateway([east])
    write_config(gateway.config, {"east": east.addresses, "west": west.addresses}, "300ms")
    await eventually(lambda: "west" in gateway.gateway.locations.by_name)
    answer = await gateway.stub.FindInstances(EVERYTHING)
    assert ids(answer) == [("a", "east")]
    assert "call themselves 'south'" in errors(answer.sources)["west"]
