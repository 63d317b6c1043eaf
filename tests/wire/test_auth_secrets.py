"""Who is given secret descriptors, and where they must never be."""

from __future__ import annotations

import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.rights_requests import SECRET_KEY, instance
from tests.support.secured import Secured, Served
from tests.wire.conftest import As
from tests.wire.secured_http import secured_http

GET = pb.GetInstanceRequest(id="web-1")


@pytest.mark.parametrize("caller", ["reader/ann", "agent/n2", "mail-uploader", "scheduler", "operator", "admin"])
async def test_secret_descriptors_are_for_the_agent_of_the_node_and_the_uploader_of_the_service(
    as_: As, caller: str
) -> None:
    for request in (pb.GetRevisionRequest(instance_id="web-1", node="n1"), pb.GetRevisionRequest(instance_id="web-1")):
        assert (await as_(caller).refusal("GetRevision", request))[0] in ("PERMISSION_DENIED", "NOT_FOUND")
        for allowed in ("agent/n1", "web-uploader"):
            answer = await as_(allowed).call("GetRevision", request)
            assert SECRET_KEY in answer.revision[0].secret[0].id


async def test_secret_descriptors_are_revoked_when_the_instance_moves(as_: As) -> None:
    moved = pb.UpdateInstanceRequest(instance=instance("web-1", node="n2"))
    moved.update_mask.paths.append("spec.node_name")
    await as_("scheduler").call("UpdateInstance", moved)
    fetch = pb.GetRevisionRequest(instance_id="web-1")
    assert (await as_("agent/n1").refusal("GetRevision", fetch))[0] == "NOT_FOUND"
    assert (await as_("agent/n2").call("GetRevision", fetch)).revision[0].secret


async def test_secret_descriptors_are_in_no_list_watch_or_twin(replica: Served, files: Secured, as_: As) -> None:
    admin = as_("admin")
    answers = [
        await admin.call("GetInstance", GET),
        await admin.call("FindInstances", pb.FindInstancesRequest()),
        await admin.call("ExplainInstance", pb.ExplainInstanceRequest(id="web-1")),
        await admin.call("UpdateInstance", pb.UpdateInstanceRequest(instance=instance("web-1"))),
        await admin.watch(pb.WatchInstancesRequest()).read(),
    ]
    assert all(SECRET_KEY.encode() not in answer.SerializeToString() for answer in answers)
    async with secured_http(replica, files, files.issuer.token("admin")) as client:
        for name, body in (("GetInstance", {"id": "web-1"}), ("FindInstances", {})):
            answer = await client.post(f"/hq.v1.InstanceService/{name}", json=body)
            assert answer.status_code == 200
            assert SECRET_KEY not in answer.text
    assert SECRET_KEY not in files.audit.read_text()
