"""Reads over several locations: one answer that says which of them gave it."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any

import grpc
import pytest

from hqclient.errors import decode
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving import error_statuses
from serving.errors import invalid
from tests.federated.answers import errors, ids, refused
from tests.federated.conftest import StartGateway, StartLocations, StartPair
from tests.federated.fake_location import FakeReplica
from tests.federated.federated_process import write_config
from tests.support.sample_instances import eventually

Code = grpc.StatusCode
EVERYTHING = pb.FindInstancesRequest()


async def test_ten_locations_answer_as_one(start_locations: StartLocations, start_gateway: StartGateway) -> None:
    locations = await start_locations(*(f"l{n}" for n in range(10)), replicas=2)
    for n in range(100):
        locations[n % 10].put(f"i-{n:03}")
    gateway = await start_gateway(locations, "5s")
    answer = await gateway.stub.FindInstances(EVERYTHING)
    assert ids(answer) == [(f"i-{n:03}", f"l{n % 10}") for n in range(100)]
    assert errors(answer.sources) == {f"l{n}": "" for n in range(10)}
    assert {s.version for s in answer.sources} == {110}
    count = await gateway.stub.CountInstances(pb.CountInstancesRequest(group_by=pb.COUNT_GROUP_SERVICE))
    assert [(g.key, g.total) for g in count.groups] == [("svc", 100)]
    assert (await gateway.stub.GetInstance(pb.GetInstanceRequest(id="i-042"))).instance.meta.cluster == "l2"


async def test_pages_across_locations_are_complete_and_in_order(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    locations = await start_locations("east", "north", "west")
    for n in range(50):
        locations[n * n % 3].put(f"i-{n:03}")
    locations[0].put("i-001")
    locations[0].put("i-002")
    for location, largest in zip(locations, (3, 1_000, 7), strict=True):
        location.replicas[0].largest_page = largest
    gateway = await start_gateway(locations, "5s")
    seen: list[tuple[str, str]] = []
    request = pb.FindInstancesRequest(page_size=8)
    while True:
        page = await gateway.stub.FindInstances(request)
        assert len(page.instances) <= 8
        assert errors(page.sources) == {"east": "", "north": "", "west": ""}
        seen += ids(page)
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == sorted((i, location.name) for location in locations for i in location.instances)


async def test_an_id_that_exists_in_two_locations_needs_the_name_of_one(start_pair: StartPair) -> None:
    _, _, gateway = await start_pair(east="twin", west="twin", timeout="5s")
    assert ids(await gateway.stub.FindInstances(EVERYTHING)) == [("twin", "east"), ("twin", "west")]
    for call in (
        gateway.stub.GetInstance(pb.GetInstanceRequest(id="twin")),
        gateway.stub.ExplainInstance(pb.ExplainInstanceRequest(id="twin")),
    ):
        error = await refused(call)
        assert error.code() is Code.FAILED_PRECONDITION
        assert "in east and in west" in (error.details() or "")
    west = (("x-hq-cluster", "west"),)
    answer = await gateway.stub.GetInstance(pb.GetInstanceRequest(id="twin"), metadata=west)
    assert answer.instance.meta.cluster == "west"
    assert list(errors(answer.sources)) == ["west"]
    explained = await gateway.stub.ExplainInstance(pb.ExplainInstanceRequest(id="twin"), metadata=west)
    assert explained.meta.cluster == "west"


@pytest.mark.long
async def test_a_changed_configuration_comes_into_force_while_it_serves(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    east, west = await start_locations("east", "west")
    west.put("b")
    gateway = await start_gateway([east])
    assert list(errors((await gateway.stub.FindInstances(EVERYTHING)).sources)) == ["east"]
    gateway.config.write_text("locations: [")
    await eventually(lambda: gateway.gateway.locations.file.fault)
    assert list(errors((await gateway.stub.FindInstances(EVERYTHING)).sources)) == ["east"]
    write_config(gateway.config, {"west": west.addresses})
    await eventually(lambda: list(gateway.gateway.locations.by_name) == ["west"])
    assert ids(await gateway.stub.FindInstances(EVERYTHING)) == [("b", "west")]


async def test_a_filter_by_cluster_asks_only_those_locations_and_refuses_unknown_ones(start_pair: StartPair) -> None:
    _, west, gateway = await start_pair(east="a")
    request = pb.FindInstancesRequest(filter=pb.InstanceFilter(cluster=["east"]))
    answer = await gateway.stub.FindInstances(request)
    assert ids(answer) == [("a", "east")]
    assert list(errors(answer.sources)) == ["east"]
    assert not west.replicas[0].calls["FindInstances"]
    nowhere = pb.FindInstancesRequest(filter=pb.InstanceFilter(cluster=["south"]))
    assert (await refused(gateway.stub.FindInstances(nowhere))).code() is Code.INVALID_ARGUMENT
    error = await refused(gateway.stub.FindInstances(request, metadata=(("x-hq-cluster", "west"),)))
    assert error.code() is Code.INVALID_ARGUMENT


async def test_a_version_is_demanded_of_the_location_whose_epoch_it_is(start_pair: StartPair) -> None:
    east, west, gateway = await start_pair()
    read = pb.ReadOptions(min_version=100, epoch="epoch-of-west")
    await gateway.stub.FindInstances(pb.FindInstancesRequest(read=read))
    assert east.replicas[0].reads[-1] == pb.ReadOptions()
    assert west.replicas[0].reads[-1] == read
    for faulty in (pb.ReadOptions(min_version=100), pb.ReadOptions(epoch="gone")):
        error = await refused(gateway.stub.FindInstances(pb.FindInstancesRequest(read=faulty)))
        assert error.code() in (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION)


async def test_before_not_found_the_locations_are_asked_with_the_freshness_that_the_caller_demands(
    start_pair: StartPair,
) -> None:
    east, west, gateway = await start_pair()
    strong = pb.READ_CONSISTENCY_STRONG
    read = pb.ReadOptions(min_version=100, epoch="epoch-of-west", consistency=strong)
    assert (await refused(gateway.stub.GetInstance(pb.GetInstanceRequest(id="a", read=read)))).code() is Code.NOT_FOUND
    assert east.replicas[0].reads == [pb.ReadOptions(consistency=strong)] * 2
    assert west.replicas[0].reads == [read, read]


async def test_a_field_mask_keeps_what_tells_instances_apart(
    start_locations: StartLocations, start_gateway: StartGateway
) -> None:
    (east,) = locations = await start_locations("east")
    east.put("a")
    gateway = await start_gateway(locations)
    request = pb.FindInstancesRequest()
    request.field_mask.paths.append("spec.node_name")
    assert ids(await gateway.stub.FindInstances(request)) == [("a", "east")]


async def test_a_faulty_id_is_blamed_on_the_field_in_which_the_caller_sent_it(
    start_locations: StartLocations, start_gateway: StartGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse_first(_replica: FakeReplica, _request: Any, context: Any) -> None:
        told = invalid("filter.instance_id[0]", "it is faulty")
        status = error_statuses.status_of(told)
        await context.abort(error_statuses.grpc_code(told), status.message, error_statuses.grpc_trailers(told, status))

    monkeypatch.setattr(FakeReplica, "FindInstances", refuse_first)
    stub = (await start_gateway(await start_locations("east", "west"), "5s")).stub
    named, unnamed = model.Instance(meta={"id": "a", "cluster": "east"}), model.Instance(meta={"id": "!"})
    for call, field in (
        (stub.GetInstance(pb.GetInstanceRequest(id="!")), "id"),
        (stub.ExplainInstance(pb.ExplainInstanceRequest(id="!")), "id"),
        (stub.DeleteInstance(pb.DeleteInstanceRequest(id="!")), "id"),
        (stub.UpdateInstance(pb.UpdateInstanceRequest(instance=unnamed)), "instance.meta.id"),
        (stub.PutRevision(pb.PutRevisionRequest(instance_id="!")), "instance_id"),
        (stub.ApplyInstances(pb.ApplyInstancesRequest(instance=[named, unnamed])), "instance[1].meta.id"),
    ):
        error = decode(await refused(call))
        assert error.message == f"{field}: it is faulty"
        assert [violation.field for violation in error.violations] == [field]


async def test_json_over_http_has_the_same_instances_and_sources(start_pair: StartPair) -> None:
    _, west, gateway = await start_pair(east="a")
    await west.stop()

    def post(body: dict[str, object]) -> dict[str, object]:
        url = f"http://{gateway.addresses.http}/hq.v1.InstanceService/FindInstances"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(request, timeout=10) as answer:
            found = json.loads(answer.read())
        assert isinstance(found, dict)
        return found

    found = await asyncio.to_thread(post, {})
    assert [i["meta"]["id"] for i in found["instances"]] == ["a"]  # type: ignore[attr-defined]
    assert [s["cluster"] for s in found["sources"]] == ["east", "west"]  # type: ignore[attr-defined]
    none = await asyncio.to_thread(post, {"filter": {"instanceId": ["b"]}})
    assert "instances" not in none
    assert none["sources"]
