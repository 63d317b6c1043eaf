"""Writes through a gateway, and the calls that it refuses."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from hqapi.rules import UPLOAD
from hqpb.v1 import admin_pb2, admin_stubs
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.auth.audit import Audit, LogSink
from serving.auth.gate import Authenticator
from serving.auth.policy import parse
from serving.calls.methods import Call
from serving.clock import SystemClock
from serving.errors import PermissionDenied
from serving.rights.access import Identity, ProofKind
from tests.federated.answers import refused
from tests.federated.conftest import StartGateway, StartLocations, StartPair
from tests.support.secured import POLICY

Code = grpc.StatusCode
WEST = (("x-hq-cluster", "west"),)


def instance(instance_id: str, cluster: str = "") -> model.Instance:
    return model.Instance(meta=model.InstanceMeta(id=instance_id, cluster=cluster, service_id="svc"))


def create(instance_id: str, cluster: str = "") -> pb.CreateInstanceRequest:
    return pb.CreateInstanceRequest(instance=instance(instance_id, cluster))


async def test_a_creation_is_passed_on_as_repeated_after_a_cut_or_if_its_caller_says_so(
    start_pair: StartPair,
) -> None:
    east, _, gateway = await start_pair(replicas=2, timeout="5s")
    said: list[str | None] = []

    async def cut_first(request: Any, context: Any) -> None:
        said.append(dict(context.invocation_metadata()).get("x-hq-repeated"))
        if len(said) == 1:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    for replica in east.replicas:
        replica.create = cut_first
    request = create("a", "east")
    request.request_id = "word"
    await gateway.stub.CreateInstance(request)
    await gateway.stub.CreateInstance(create("b", "east"))
    await gateway.stub.CreateInstance(create("c", "east"), metadata=(("x-hq-repeated", "1"),))
    assert said == [None, "1", None, "1"]


async def test_a_new_instance_goes_where_the_caller_says(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(timeout="5s")
    answer = await gateway.stub.CreateInstance(create("a", "east"))
    assert answer.instance.meta.cluster == "east"
    await gateway.stub.CreateInstance(create("b"), metadata=WEST)
    assert (set(east.instances), set(west.instances)) == ({"a"}, {"b"})
    for faulty in (create("c"), create("c", "south")):
        error = await refused(gateway.stub.CreateInstance(faulty))
        assert error.code() is Code.INVALID_ARGUMENT
        assert "east, west" in (error.details() or "")
    error = await refused(gateway.stub.CreateInstance(create("c", "east"), metadata=WEST))
    assert "send only one" in (error.details() or "")


async def test_a_batch_with_one_item_that_the_gateway_denies_goes_to_no_location(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(timeout="5s")
    clock = SystemClock()
    gate = Authenticator(parse(POLICY.encode()), None, None, Audit(LogSink(), clock), clock)
    call = Call(access=gate.access(Identity("web-uploader", ProofKind.TOKEN, clock.wall_ms()), UPLOAD))
    own, foreign = instance("a", "east"), instance("b", "west")
    own.meta.service_id, foreign.meta.service_id = "web", "mail"
    with pytest.raises(PermissionDenied):
        await gateway.gateway.applying.apply(pb.ApplyInstancesRequest(instance=[own, foreign]), call)
    assert [one.instances for one in (east, west)] == [{}, {}]
    assert await gateway.gateway.applying.apply(pb.ApplyInstancesRequest(instance=[own]), call)
    assert [touch.key for touch in call.touches] == ["a"]


async def test_where_there_is_one_location_it_need_not_be_named(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east")
    gateway = await start_gateway(locations, "5s")
    await gateway.stub.CreateInstance(create("a"))
    await gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="a"))
    assert east.replicas[0].calls["FindInstances"] == 0


async def test_a_write_finds_the_owner_of_its_instance(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a", west="b", timeout="5s")
    await gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="b"))
    assert (set(east.instances), set(west.instances)) == ({"a"}, set())
    error = await refused(gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="b")))
    assert error.code() is Code.NOT_FOUND


async def test_an_ambiguous_write_changes_nothing_and_names_both(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="twin", west="twin", timeout="5s")
    error = await refused(gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="twin")))
    assert error.code() is Code.FAILED_PRECONDITION
    assert "in east and in west" in (error.details() or "")
    await gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="twin"), metadata=WEST)
    assert (set(east.instances), set(west.instances)) == ({"twin"}, set())


async def test_owners_are_looked_for_on_every_page_of_a_location(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = locations = await start_locations("east", "west")
    ids = ["a", "b", "c", "d"]
    for instance_id in ids:
        east.put(instance_id)
    west.put("c")
    west.put("d")
    for location in locations:
        location.replicas[0].largest_page = 1
    gateway = await start_gateway(locations, "5s")
    answer = await gateway.stub.ApplyInstances(pb.ApplyInstancesRequest(instance=[instance(one) for one in ids]))
    told = {result.id: result.error.message for result in answer.result}
    assert (told["a"], told["b"]) == ("", "")
    assert all("in east and in west" in told[twin] for twin in ("c", "d"))


async def test_an_owner_is_not_guessed_while_a_location_is_silent(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="a")
    await west.stop()
    error = await refused(gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="a")))
    assert error.code() is Code.UNAVAILABLE
    assert "x-hq-cluster" in (error.details() or "")
    assert set(east.instances) == {"a"}
    await gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="a"), metadata=(("x-hq-cluster", "east"),))
    assert not east.instances


async def test_a_conflict_comes_back_with_its_details(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    from hqclient.errors import decode

    east, west = locations = await start_locations("east", "west")
    at = east.put("a").meta.version
    gateway = await start_gateway(locations, "5s")
    raised = await refused(gateway.stub.DeleteInstance(pb.DeleteInstanceRequest(id="a", version=at - 1)))
    error = decode(raised)
    assert (error.code, error.reason, error.current_version) == (Code.ABORTED, "VERSION_CONFLICT", at)
    assert error.metadata["cluster"] == "east"
    assert error.message.startswith("east: ")
    assert not west.replicas[0].calls["DeleteInstance"]


async def test_each_of_many_instances_goes_to_its_own_location(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(east="twin", west="twin b", timeout="5s")
    items = [
        instance("a", "east"),
        instance("b"),
        instance("bad", "west"),
        instance("twin"),
        instance("new"),
        instance("c", "west"),
    ]
    answer = await gateway.stub.ApplyInstances(pb.ApplyInstancesRequest(instance=items))
    assert [r.id for r in answer.result] == ["a", "b", "bad", "twin", "new", "c"]
    codes = [grpc.StatusCode.OK.value[0] if not r.HasField("error") else r.error.code for r in answer.result]
    assert codes == [0, 0, 3, 9, 3, 0]
    assert answer.result[2].error.field == "instance[2].spec"
    assert answer.result[3].error.reason == "AMBIGUOUS"
    assert answer.result[4].error.field == "instance[4].meta.cluster"
    assert (set(east.instances), set(west.instances)) == ({"twin", "a"}, {"twin", "b", "c"})


async def test_a_silent_location_fails_its_own_items_only(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair()
    await west.stop()
    items = [instance("a", "east"), instance("b", "west")]
    answer = await gateway.stub.ApplyInstances(pb.ApplyInstancesRequest(instance=items))
    assert [r.HasField("error") for r in answer.result] == [False, True]
    assert answer.result[1].error.message.startswith("west: ")
    assert set(east.instances) == {"a"}


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("GetRevision", pb.GetRevisionRequest(instance_id="a", node="n")),
        ("BeginReporting", pb.BeginReportingRequest(instance_id="a", revision_id="r", node="n")),
        ("BeginReportings", pb.BeginReportingsRequest(begin=[pb.BeginReportingRequest(instance_id="a")])),
        ("ReportStatus", pb.ReportStatusRequest(instance_id="a")),
        ("ReportStatuses", pb.ReportStatusesRequest(report=[pb.ReportStatusRequest(instance_id="a")])),
    ],
)
async def test_agents_are_sent_to_their_own_location(start_pair: StartPair, name: str, request_: object) -> None:
    from hqclient.errors import decode

    east, west, gateway = await start_pair(west="a", timeout="5s")
    error = decode(await refused(getattr(gateway.stub, name)(request_)))
    assert error.code is Code.FAILED_PRECONDITION
    assert error.reason == "ASK_LOCATION"
    assert error.metadata == {"cluster": "west", "replicas": west.addresses[0]}
    assert west.addresses[0] in error.message
    assert east.addresses[0] not in error.message
    assert not error.violations  # no word that makes an agent stop


async def test_operators_are_told_the_addresses_of_all_locations(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair(timeout="5s")
    async with grpc.aio.insecure_channel(gateway.addresses.grpc) as channel:
        admin: admin_stubs.AdminServiceStub = admin_stubs.AdminServiceStub(channel)
        error = await refused(admin.GetGuard(admin_pb2.GetGuardRequest()))
    assert error.code() is Code.FAILED_PRECONDITION
    assert all(location.addresses[0] in (error.details() or "") for location in (east, west))


async def test_more_items_than_all_locations_take_together_are_refused_before_anybody_is_asked(
    start_pair: StartPair,
) -> None:
    east, west, gateway = await start_pair(east="a", west="b")
    before = east.replicas[0].calls["FindInstances"] + west.replicas[0].calls["FindInstances"]
    many = pb.ApplyInstancesRequest(instance=[instance(f"i{n}", "") for n in range(2_001)])
    error = await refused(gateway.stub.ApplyInstances(many))
    assert error.code() is Code.INVALID_ARGUMENT
    assert error.details() == "instance: 2001 items are too many: send at most 2000 at once"
    assert east.replicas[0].calls["FindInstances"] + west.replicas[0].calls["FindInstances"] == before
