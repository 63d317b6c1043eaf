"""A secured replica over both transports: who is let in, and to what."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb
from tests.support.instances_of import SECRET_KEY, create, instance, report, revision
from tests.support.secured import Caller, Secured, Served, secure_channel, served
from tests.support.tickets import Issuer, bearer

GET = pb.GetInstanceRequest(id="web-1")
As = Callable[[str], Caller]


@pytest.fixture
def files(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


@pytest.fixture
async def replica(files: Secured) -> AsyncIterator[Served]:
    """With web-1 on n1, web-2 on n2 and mail-1 on n1."""
    async with served(files.security()) as one:
        async with secure_channel(one.addresses.grpc, files.authority) as channel:
            admin = Caller(channel, files.issuer.ticket("admin"))
            for name, service, node in (("web-1", "web", "n1"), ("web-2", "web", "n2"), ("mail-1", "mail", "n1")):
                await admin.call("CreateInstance", create(name, service, node))
        yield one


@pytest.fixture
async def as_(replica: Served, files: Secured) -> AsyncIterator[As]:
    """A caller with a ticket of this subject; "": without."""
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        yield lambda subject: Caller(channel, files.issuer.ticket(subject) if subject else "")


@asynccontextmanager
async def http(replica: Served, files: Secured, ticket: str = "") -> AsyncIterator[httpx.AsyncClient]:
    tls = ssl.create_default_context(cafile=str(files.authority.cert))
    headers = dict([bearer(ticket)]) if ticket else {}
    base = f"https://{replica.addresses.http}"
    async with httpx.AsyncClient(verify=tls, headers=headers, base_url=base, trust_env=False) as client:
        yield client


def audit(files: Secured) -> list[dict[str, object]]:
    return [json.loads(line) for line in files.audit.read_text().splitlines()]


# --- who ------------------------------------------------------------------------------------------------------------


async def test_nobody_is_served_without_saying_who_they_are(as_: As) -> None:
    code, words = await as_("").refusal("GetInstance", GET)
    assert code == "UNAUTHENTICATED"
    assert "authorization: Bearer" in words


@pytest.mark.parametrize(
    ("claims", "word"),
    [
        ({"good_for_s": -31}, "expired"),
        ({"aud": "mail"}, "another service"),
        ({"aud": None}, "lacks aud"),
        ({"exp": None}, "lacks exp"),
        ({"sub": None}, "lacks sub"),
        ({"iss": "https://elsewhere.example"}, "another issuer"),
        ({"kid": "key-2"}, "key (kid)"),
        ({"kid": None}, "key (kid)"),
        ({"nbf": 4e9}, "not valid yet"),
        ({"exp": "soon"}, "malformed"),
        ({"algorithm": "HS256", "key": "x" * 32}, "algorithm"),
    ],
)
async def test_a_ticket_that_lacks_something_is_refused_in_words_without_it(
    replica: Served, files: Secured, claims: dict[str, object], word: str
) -> None:
    ticket = files.issuer.ticket("reader/ann", **claims)  # type: ignore[arg-type]
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        code, words = await Caller(channel, ticket).refusal("GetInstance", GET)
    assert code == "UNAUTHENTICATED"
    assert ticket not in words
    if claims != {"exp": "soon"}:
        assert word in words
    async with http(replica, files, ticket) as client:
        answer = await client.post("/hq.v1.InstanceService/GetInstance", json={"id": "web-1"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


async def test_a_ticket_of_a_stranger_with_our_key_id_is_refused(
    replica: Served, files: Secured, tmp_path: Path
) -> None:
    stranger = Issuer(tmp_path / "stranger", files.issuer.kid)
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        code, words = await Caller(channel, stranger.ticket("admin")).refusal("GetInstance", GET)
    assert (code, "signature" in words) == ("UNAUTHENTICATED", True)


async def test_two_tickets_in_one_call_are_refused(replica: Served, files: Secured) -> None:
    good = files.issuer.ticket("reader/ann")
    async with http(replica, files) as client:
        url, both = "/hq.v1.InstanceService/GetInstance", [bearer(good), bearer(files.issuer.ticket("admin"))]
        answer = await client.post(url, json={"id": "web-1"}, headers=both)
    assert answer.status_code == 401


async def test_whoever_may_not_is_not_told_what_is_wrong_with_the_request(replica: Served, files: Secured) -> None:
    async with http(replica, files) as client:
        answer = await client.post("/hq.v1.InstanceService/GetInstance", content=b"{", headers=_JSON)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


# --- what -----------------------------------------------------------------------------------------------------------


async def test_an_identity_without_a_role_is_denied_in_words_that_say_what_it_takes(as_: As) -> None:
    code, words = await as_("nobody-knows").refusal("GetInstance", GET)
    assert code == "PERMISSION_DENIED"
    assert "nobody-knows" in words
    assert "reader" in words


async def test_both_transports_let_the_same_caller_in(replica: Served, files: Secured, as_: As) -> None:
    assert (await as_("reader/ann").call("GetInstance", GET)).instance.meta.id == "web-1"
    async with http(replica, files, files.issuer.ticket("reader/ann")) as client:
        answer = await client.post("/hq.v1.InstanceService/GetInstance", json={"id": "web-1"})
        assert answer.json()["instance"]["meta"]["id"] == "web-1"
        denied = await client.post("/hq.v1.InstanceService/DeleteInstance", json={"id": "web-1"})
        assert denied.status_code == 403
        assert denied.json()["details"][0]["debug"]["metadata"] == {"needs": "admin,uploader"}


@pytest.mark.parametrize("caller", ["reader/ann", "web-reader", "agent/n1", "scheduler", "operator", "mail-uploader"])
async def test_only_uploaders_of_the_service_and_admins_upload(as_: As, caller: str) -> None:
    for name, request in (
        ("CreateInstance", create("web-9")),
        ("DeleteInstance", pb.DeleteInstanceRequest(id="web-1")),
        ("PutRevision", pb.PutRevisionRequest(instance_id="web-1", revision=revision("r2"))),
        ("DeleteRevision", pb.DeleteRevisionRequest(instance_id="web-1", revision_id="r1")),
        ("ApplyInstances", pb.ApplyInstancesRequest(instance=[instance("web-1")])),
    ):
        assert (await as_(caller).refusal(name, request))[0] == "PERMISSION_DENIED", name


async def test_an_uploader_can_neither_take_nor_give_away_an_instance_of_another_service(as_: As) -> None:
    take = pb.UpdateInstanceRequest(instance=instance("mail-1", "web"))
    give = pb.UpdateInstanceRequest(instance=instance("web-1", "mail"))
    for request in (take, give):
        assert (await as_("web-uploader").refusal("UpdateInstance", request))[0] == "PERMISSION_DENIED"
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


async def test_only_operators_give_orders(as_: As) -> None:
    orders = (
        ("ReleaseGuard", admin_pb2.ReleaseGuardRequest(by="ann", reason="test")),
        ("ForceGuard", admin_pb2.ForceGuardRequest(by="ann", reason="test")),
        ("ResumeNode", admin_pb2.ResumeNodeRequest(node_name="n1")),
    )
    for name, request in orders:
        for caller in ("reader/ann", "agent/n1", "web-uploader", "scheduler", "admin"):
            assert (await as_(caller).refusal(name, request))[0] == "PERMISSION_DENIED", (name, caller)
        assert (await as_("operator").refusal(name, request))[0] in ("OK", "NOT_FOUND", "INVALID_ARGUMENT")


async def test_an_operator_of_a_rack_suspends_its_nodes_only(as_: As) -> None:
    request = admin_pb2.SuspendNodeRequest(node_name="rack2-7", by="ann", reason="disk")
    request.duration.FromSeconds(60)
    assert (await as_("rack-operator").refusal("SuspendNode", request))[0] == "PERMISSION_DENIED"
    request.node_name = "rack1-7"
    assert (await as_("rack-operator").refusal("SuspendNode", request))[0] == "OK"


# --- agents ---------------------------------------------------------------------------------------------------------


async def test_the_node_of_an_agent_comes_from_its_identity(as_: As) -> None:
    begin = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1")
    assert (await as_("agent/n2").refusal("BeginReporting", begin))[0] == "PERMISSION_DENIED"
    lie = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n2")
    assert (await as_("agent/n2").refusal("BeginReporting", lie))[0] == "FAILED_PRECONDITION"
    assert (await as_("agent/n1").call("BeginReporting", begin)).incarnation


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
    assert (await agent.refusal("GetInstance", pb.GetInstanceRequest(id="web-2")))[0] == "PERMISSION_DENIED"
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
    for name, request in (
        ("FindInstances", by_id),
        ("FindInstances", pb.FindInstancesRequest()),
        ("FindInstances", pb.FindInstancesRequest(filter=pb.InstanceFilter(service_id=["web", "mail"]))),
        ("CountInstances", pb.CountInstancesRequest()),
        ("GetInstance", pb.GetInstanceRequest(id="mail-1")),
        ("ExplainInstance", pb.ExplainInstanceRequest(id="mail-1")),
    ):
        assert (await reader.refusal(name, request))[0] == "PERMISSION_DENIED", request


# --- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("caller", ["reader/ann", "agent/n2", "mail-uploader", "scheduler", "operator", "admin"])
async def test_secret_descriptors_are_for_the_agent_of_the_node_and_the_uploader_of_the_service(
    as_: As, caller: str
) -> None:
    for request in (pb.GetRevisionRequest(instance_id="web-1", node="n1"), pb.GetRevisionRequest(instance_id="web-1")):
        assert (await as_(caller).refusal("GetRevision", request))[0] == "PERMISSION_DENIED"
        for allowed in ("agent/n1", "web-uploader"):
            answer = await as_(allowed).call("GetRevision", request)
            assert SECRET_KEY in answer.revision[0].secret[0].id


async def test_secret_descriptors_are_revoked_when_the_instance_moves(as_: As) -> None:
    moved = pb.UpdateInstanceRequest(instance=instance("web-1", node="n2"))
    moved.update_mask.paths.append("spec.node_name")
    await as_("scheduler").call("UpdateInstance", moved)
    fetch = pb.GetRevisionRequest(instance_id="web-1")
    assert (await as_("agent/n1").refusal("GetRevision", fetch))[0] == "PERMISSION_DENIED"
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
    async with http(replica, files, files.issuer.ticket("admin")) as client:
        for name, body in (("GetInstance", {"id": "web-1"}), ("FindInstances", {})):
            answer = await client.post(f"/hq.v1.InstanceService/{name}", json=body)
            assert answer.status_code == 200
            assert SECRET_KEY not in answer.text
    assert SECRET_KEY not in files.audit.read_text()


async def test_a_large_request_of_nobody_is_refused_before_it_is_read(replica: Served, files: Secured) -> None:
    async with http(replica, files) as client:
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
        async with http(replica, files, files.issuer.ticket(subject) if subject else "") as client:
            assert (await client.get(f"/sd/prometheus?{query}")).status_code == status, (subject, query)


# --- pages and the record -------------------------------------------------------------------------------------------


async def test_health_is_open_and_other_pages_are_not(replica: Served, files: Secured) -> None:
    async with http(replica, files) as client:
        codes = {path: (await client.get(path)).status_code for path in ("/livez", "/readyz", "/metrics")}
        assert codes == {"/livez": 200, "/readyz": 200, "/metrics": 401}
    async with http(replica, files, files.issuer.ticket("agent/n1")) as client:
        assert (await client.get("/metrics")).status_code == 403
    async with http(replica, files, files.issuer.ticket("reader/prometheus")) as client:
        metrics = list(text_string_to_metric_families((await client.get("/metrics")).text))
    denied = {
        s.labels["code"]: s.value for m in metrics if m.name == "hq_denied" for s in m.samples if "code" in s.labels
    }
    assert denied == {"UNAUTHENTICATED": 1, "PERMISSION_DENIED": 1}


async def test_each_write_and_each_denied_call_is_one_line_of_the_record(as_: As, files: Secured) -> None:
    files.audit.write_text("")
    created = await as_("web-uploader").call("CreateInstance", create("web-5"))
    await as_("reader/ann").refusal("DeleteInstance", pb.DeleteInstanceRequest(id="web-5"))
    await as_("").refusal("DeleteInstance", pb.DeleteInstanceRequest(id="web-5"))
    await as_("reader/ann").call("GetInstance", GET)
    lines = audit(files)
    names = ("identity", "method", "decision", "rule", "key", "version")
    told = [tuple(line[name] for name in names) for line in lines]
    method = "hq.v1.InstanceService/DeleteInstance"
    assert told == [
        (
            "web-uploader",
            "hq.v1.InstanceService/CreateInstance",
            "allow",
            "upload",
            "web-5",
            created.instance.meta.version,
        ),
        ("reader/ann", method, "deny", "upload", "", 0),
        ("", method, "deny", "upload", "", 0),
    ]
    assert all(line["time"] and line["request_id"] and str(line["peer"]).startswith("127.0.0.1:") for line in lines)


_JSON = {"content-type": "application/json"}
