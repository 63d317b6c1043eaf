"""A secured replica over both transports: what each role may do, and what it may not."""

from __future__ import annotations

import pytest

from hq.liveness.deadlines import RevisionKey
from hq.liveness.tracker import Transition
from hqpb.v1 import admin_pb2
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from serving.errors import StoreUnavailable
from tests.support.rights_requests import create, instance, report
from tests.support.secured import Secured, Served
from tests.wire.conftest import As
from tests.wire.secured_http import secured_http

GET = pb.GetInstanceRequest(id="web-1")
_JSON = {"content-type": "application/json"}


# --- what -----------------------------------------------------------------------------------------------------------


async def test_an_identity_without_a_role_is_denied_in_words_that_say_what_it_takes(as_: As) -> None:
    code, words = await as_("nobody-knows").refusal("GetInstance", GET)
    assert code == "PERMISSION_DENIED"
    assert "nobody-knows" in words
    assert "reader" in words


async def test_both_transports_let_the_same_caller_in(replica: Served, files: Secured, as_: As) -> None:
    assert (await as_("reader/ann").call("GetInstance", GET)).instance.meta.id == "web-1"
    async with secured_http(replica, files, files.issuer.token("reader/ann")) as client:
        answer = await client.post("/hq.v1.InstanceService/GetInstance", json={"id": "web-1"})
        assert answer.json()["instance"]["meta"]["id"] == "web-1"
        denied = await client.post("/hq.v1.InstanceService/DeleteInstance", json={"id": "web-1"})
        assert denied.status_code == 403
        assert denied.json()["details"][0]["debug"]["metadata"] == {"needs": "admin,uploader"}


async def test_an_uploader_can_neither_take_nor_give_away_an_instance_of_another_service(as_: As) -> None:
    take = pb.UpdateInstanceRequest(instance=instance("mail-1", "web"))
    give = pb.UpdateInstanceRequest(instance=instance("web-1", "mail"))
    for request in (take, give):
        assert (await as_("web-uploader").refusal("UpdateInstance", request))[0] in ("PERMISSION_DENIED", "NOT_FOUND")
    assert (
        await as_("web-uploader").call("UpdateInstance", pb.UpdateInstanceRequest(instance=instance("web-1")))
    ).instance


async def test_a_batch_with_one_foreign_instance_changes_none(as_: As) -> None:
    batch = pb.ApplyInstancesRequest(instance=[instance("web-7"), instance("mail-7", "mail")])
    assert (await as_("web-uploader").refusal("ApplyInstances", batch))[0] == "PERMISSION_DENIED"
    assert (await as_("admin").refusal("GetInstance", pb.GetInstanceRequest(id="web-7")))[0] == "NOT_FOUND"


async def test_a_scheduler_writes_allocation_and_node_by_mask_and_nothing_else(as_: As) -> None:
    moved = pb.UpdateInstanceRequest(instance=instance("web-1", node="n3"))
    assert (await as_("scheduler").refusal("UpdateInstance", moved))[0] == "PERMISSION_DENIED"
    moved.update_mask.paths.append("spec.node_name")
    assert (await as_("scheduler").call("UpdateInstance", moved)).instance.spec.node_name == "n3"
    moved.update_mask.paths.append("spec.revision")
    assert (await as_("scheduler").refusal("UpdateInstance", moved))[0] == "PERMISSION_DENIED"


async def test_an_operator_of_a_rack_is_shown_what_happens_on_its_nodes_only(replica: Served, as_: As) -> None:
    for node in ("rack1-7", "rack2-7"):
        request = admin_pb2.SuspendNodeRequest(node_name=node, by="ann", reason="disk")
        request.duration.FromSeconds(60)
        await as_("operator").call("SuspendNode", request)
        await as_("admin").call("CreateInstance", create(f"on-{node}", node=node))
    tracker, condition = replica.server.replica.tracker, model.Condition()
    for number, node in enumerate(("rack1-7", "rack2-7")):
        key = RevisionKey(f"on-{node}", "r1")
        tracker._transitions.append(Transition(key, node, False, number, 0, condition))
    for caller, nodes in (("operator", {"rack1-7", "rack2-7"}), ("rack-operator", {"rack1-7"})):
        listed = await as_(caller).call("ListSuspensions", admin_pb2.ListSuspensionsRequest())
        assert {one.node_name for one in listed.suspensions} == nodes
        moves = await as_(caller).call("ListTransitions", admin_pb2.ListTransitionsRequest(page_size=2))
        assert {one.node_name for one in moves.transitions} == nodes
    quarantine = admin_pb2.ListQuarantineRequest()
    assert (await as_("rack-operator").refusal("ListQuarantine", quarantine))[0] == "PERMISSION_DENIED"


async def test_an_order_is_recorded_under_its_authenticated_caller_whatever_it_says(as_: As) -> None:
    request = admin_pb2.SuspendNodeRequest(node_name="n1", by="somebody else", reason="disk")
    request.duration.FromSeconds(60)
    assert (await as_("operator").call("SuspendNode", request)).suspension.by == "operator"
    forced = await as_("operator").call("ForceGuard", admin_pb2.ForceGuardRequest(by="somebody else", reason="test"))
    assert forced.guard.override.by == "operator"


async def test_a_reader_is_not_told_who_ordered_the_guard(as_: As) -> None:
    await as_("operator").call("ForceGuard", admin_pb2.ForceGuardRequest(by="ann", reason="a delicate matter"))
    explain = pb.ExplainInstanceRequest(id="web-1")
    for caller in ("reader/ann", "web-reader", "agent/n1"):
        guard = (await as_(caller).call("ExplainInstance", explain)).guard
        assert not guard.HasField("override")
        assert (guard.expected, guard.nodes, guard.waiting) == (0, 0, 0)
    assert (await as_("admin").call("ExplainInstance", explain)).guard.override.reason == "a delicate matter"


async def test_nobody_learns_where_a_foreign_instance_lives(as_: As) -> None:
    fetch = pb.GetRevisionRequest(instance_id="web-2", node="n1")
    assert (await as_("mail-uploader").refusal("GetRevision", fetch))[0] == "NOT_FOUND"
    begin = pb.BeginReportingRequest(instance_id="web-2", revision_id="r1", node="n1")
    stale = report("web-2", "n1", incarnation=1)
    stale.uid = 1
    known = await as_("admin").call("GetInstance", pb.GetInstanceRequest(id="web-2"))
    for name, request in (("GetRevision", fetch), ("BeginReporting", begin), ("ReportStatus", stale)):
        code, words = await as_("agent/n1").refusal(name, request)
        assert code == "FAILED_PRECONDITION"  # its agent must hear that it is to stop
        assert "n2" not in words
        assert str(known.instance.meta.uid) not in words


async def test_already_exists_hides_the_version_from_callers_who_may_not_read_the_instance(as_: As) -> None:
    for caller, service, told in (("web-uploader", "web", False), ("admin", "mail", True), ("admin", "web", False)):
        code, words = await as_(caller).refusal("CreateInstance", create("mail-1", service))
        assert (code, "version" in words) == ("ALREADY_EXISTS", told)


# --- agents ---------------------------------------------------------------------------------------------------------


async def test_the_node_of_an_agent_comes_from_its_identity(as_: As) -> None:
    begin = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1")
    assert (await as_("agent/n2").refusal("BeginReporting", begin))[0] == "PERMISSION_DENIED"
    lie = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n2")
    assert (await as_("agent/n2").refusal("BeginReporting", lie))[0] == "FAILED_PRECONDITION"
    assert (await as_("agent/n1").call("BeginReporting", begin)).incarnation


async def test_a_batch_of_beginnings_with_one_of_another_node_is_refused_whole(as_: As) -> None:
    own = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1")
    foreign = pb.BeginReportingRequest(instance_id="web-2", revision_id="r1", node="n2")
    before = (await as_("admin").call("GetInstance", GET)).instance.meta.status_version
    batch = pb.BeginReportingsRequest(begin=[own, foreign])
    code, words = await as_("agent/n1").refusal("BeginReportings", batch)
    assert (code, "begin[1].node" in words) == ("PERMISSION_DENIED", True)
    assert (await as_("admin").call("GetInstance", GET)).instance.meta.status_version == before
    begun = await as_("agent/n1").call("BeginReportings", pb.BeginReportingsRequest(begin=[own]))
    assert begun.result[0].answer.incarnation


async def test_a_batch_with_one_report_of_another_node_is_refused_whole(as_: As) -> None:
    begun = await as_("agent/n1").call(
        "BeginReporting", pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1")
    )
    own, foreign = report("web-1", "n1", begun.incarnation), report("web-2", "n2", 1)
    batch = pb.ReportStatusesRequest(report=[own, foreign])
    code, words = await as_("agent/n1").refusal("ReportStatuses", batch)
    assert (code, "report[1].node" in words) == ("PERMISSION_DENIED", True)
    stored = await as_("admin").call("GetInstance", GET)
    assert stored.instance.status.ready.status == 0
    assert (await as_("agent/n1").refusal("ReportStatuses", pb.ReportStatusesRequest(report=[own])))[0] == "OK"


async def test_an_agent_reads_its_own_node_and_no_other(as_: As) -> None:
    agent = as_("agent/n1")
    assert (await agent.call("GetInstance", GET)).instance.meta.id == "web-1"
    assert (await agent.refusal("GetInstance", pb.GetInstanceRequest(id="web-2")))[0] == "NOT_FOUND"
    own = pb.FindInstancesRequest(filter=pb.InstanceFilter(node_name=["n1"]))
    assert {one.meta.id for one in (await agent.call("FindInstances", own)).instances} == {"web-1", "mail-1"}
    for request in (
        pb.FindInstancesRequest(),
        pb.FindInstancesRequest(filter=pb.InstanceFilter(node_name=["n1", "n2"])),
    ):
        assert (await agent.refusal("FindInstances", request))[0] == "PERMISSION_DENIED"


async def test_a_reader_of_one_service_reads_that_service(as_: As) -> None:
    reader = as_("web-reader")
    within = pb.InstanceFilter(service_id=["web"])
    assert len((await reader.call("FindInstances", pb.FindInstancesRequest(filter=within))).instances) == 2
    assert (await reader.call("CountInstances", pb.CountInstancesRequest(filter=within))).groups[0].total == 2
    by_id = pb.FindInstancesRequest(filter=pb.InstanceFilter(instance_id=["web-1"]))
    assert len((await reader.call("FindInstances", by_id)).instances) == 1
    by_id.filter.instance_id.append("mail-1")
    assert [one.meta.id for one in (await reader.call("FindInstances", by_id)).instances] == ["web-1"]
    for missing in ("mail-1", "there-is-none"):
        gone = ("NOT_FOUND", f"there is no instance {missing}")
        assert await reader.refusal("GetInstance", pb.GetInstanceRequest(id=missing)) == gone
        assert await reader.refusal("ExplainInstance", pb.ExplainInstanceRequest(id=missing)) == gone
    for name, request in (
        ("FindInstances", pb.FindInstancesRequest()),
        ("FindInstances", pb.FindInstancesRequest(filter=pb.InstanceFilter(service_id=["web", "mail"]))),
        ("CountInstances", pb.CountInstancesRequest()),
    ):
        assert (await reader.refusal(name, request))[0] == "PERMISSION_DENIED", request


async def test_a_page_token_tells_nothing_of_what_its_caller_may_not_read(as_: As) -> None:
    """It says where the page ended, and pages have only what the caller may read."""
    reader, by_id = as_("web-reader"), pb.InstanceFilter(instance_id=["mail-1", "there-is-none", "web-1", "web-2"])
    request, pages = pb.FindInstancesRequest(filter=by_id, page_size=1), list[list[str]]()
    while not pages or request.page_token:
        page = await reader.call("FindInstances", request)
        pages.append([one.meta.id for one in page.instances])
        request.page_token = page.next_page_token
    assert pages == [["web-1"], ["web-2"]]


@pytest.mark.parametrize("call", [pb.GetInstanceRequest, pb.ExplainInstanceRequest])
async def test_an_instance_out_of_reach_costs_a_read_of_the_store_as_one_that_does_not_exist(
    replica: Served, as_: As, call: type[pb.GetInstanceRequest | pb.ExplainInstanceRequest]
) -> None:
    """Else an answer that comes at once, or comes at all while the store is away, would say that there is one."""
    fence, asked = replica.server.replica.fence, 0

    async def away() -> int:
        nonlocal asked
        asked += 1
        raise StoreUnavailable("the store is away")

    fence.wait_for_fence = away  # type: ignore[method-assign]
    name = call.DESCRIPTOR.name.removesuffix("Request")
    told = [await as_("web-reader").refusal(name, call(id=one)) for one in ("mail-1", "mail-9")]
    assert asked == 2
    assert [code for code, _ in told] == ["UNAVAILABLE"] * 2
    assert told[0][1].replace("mail-1", "mail-9").split(" as of ")[0] == told[1][1].split(" as of ")[0]


async def test_a_large_request_without_a_token_is_refused_before_it_is_read(replica: Served, files: Secured) -> None:
    async with secured_http(replica, files) as client:
        for _ in range(3):
            url, body = "/hq.v1.InstanceService/CreateInstance", b" " * (3 << 20)
            assert (await client.post(url, content=body, headers=_JSON)).status_code == 401


async def test_scrape_targets_are_for_those_who_may_read_them(replica: Served, files: Secured) -> None:
    for subject, query, status in (
        ("", "port=http&service=web", 401),
        ("nobody-knows", "port=http&service=web", 403),
        ("web-reader", "port=http", 403),
        ("web-reader", "port=http&service=web&service=mail", 403),
        ("web-reader", "port=http&service=web", 200),
        ("reader/prometheus", "port=http", 200),
    ):
        async with secured_http(replica, files, files.issuer.token(subject) if subject else "") as client:
            assert (await client.get(f"/sd/prometheus?{query}")).status_code == status, (subject, query)
