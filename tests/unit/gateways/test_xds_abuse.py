"""Whatever clients of incremental streams send, in whichever order: no stream breaks or grows, and the others go on."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateways.picture.addresses import Addressing
from gateways.xds.delta import DeltaSubscriptions
from gateways.xds.fixed_resources import ResourceType
from gateways.xds.resources import Resources
from gateways.xds.stream import LISTEN, XdsCounts
from tests.support.pictures import known, picture_of
from xdspb.v1 import xds_pb2 as pb

NAMES = st.sampled_from(
    ["web", "web/grpc", "db", "/all", "*", "", ";", "web;odd", "web;a=b", "%00", "nobody", "x" * 300]
)
REQUESTS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    type_url=st.sampled_from([*(kind.value for kind in ResourceType), "", "type.googleapis.com/Other"]),
    resource_names_subscribe=st.lists(NAMES, max_size=4),
    resource_names_unsubscribe=st.lists(NAMES, max_size=4),
    initial_resource_versions=st.dictionaries(NAMES, st.sampled_from(["", "1"]), max_size=4),
    response_nonce=st.sampled_from(["", "1", "7", "x"]),
)
LISTENS = st.sampled_from(["", "127.0.0.1:80", "[::1]:80", "x", "1.2.3.4:99999999999999999999"])
CHANGES = st.tuples(st.sampled_from(["web-1", "db-1"]), st.booleans())
STEPS = st.one_of(REQUESTS, CHANGES, LISTENS, st.just(None))


@given(st.lists(STEPS, max_size=20))
def test_any_requests_leave_a_stream_that_answers_and_is_bounded(steps: list[Any]) -> None:
    pictured, log = picture_of(known("web-1")), list[bool]()
    resources = Resources(pictured.picture, Addressing(pictured.picture.hosts))
    stream = DeltaSubscriptions(resources, XdsCounts())
    pictured.picture.listen(lambda services: log.append(stream.on_services_changed(services)))
    for step in steps:
        if isinstance(step, dict):
            request = pb.DeltaDiscoveryRequest(**step)
            stream.request(pb.DeltaDiscoveryRequest.FromString(request.SerializeToString()), ["east"])
        elif isinstance(step, str):
            node = pb.Node(id="abuser")
            node.metadata[LISTEN] = step
            stream.request(pb.DeltaDiscoveryRequest(node=node, type_url=ResourceType.LISTENER.value))
        elif step is not None:
            id_, is_ready = step
            pictured.put(known(id_, id_.partition("-")[0], is_ready=is_ready))
        answers = [pb.DeltaDiscoveryResponse.FromString(body) for body in stream.due()]
        for answer in answers:
            sent = {resource.name for resource in answer.resources}
            assert not sent & {*answer.removed_resources}
    assert list(stream.due()) == []
    for kind, wanted in stream._wanted.items():
        allowed = wanted.names | ({*stream._all_names(kind)} if wanted.is_all else set())
        assert {*wanted.has} <= allowed
        assert not wanted.due
