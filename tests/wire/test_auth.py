"""A secured replica over both transports: who is let in, which pages are whose, and what is recorded."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

from hq.main import cli
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.service_stubs import InstanceServiceStub
from tests.support.rights_requests import create, report
from tests.support.secured import Caller, Secured, Served, secure_channel, served
from tests.support.token_issuer import Issuer, bearer
from tests.wire.conftest import As
from tests.wire.secured_http import secured_http

GET = pb.GetInstanceRequest(id="web-1")


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
        ({"aud": "mail"}, "get one that lists mail and hq"),
        ({"aud": None}, "aud is missing"),
        ({"exp": None}, "exp is missing"),
        ({"sub": None}, "sub is missing"),
        ({"iss": "https://elsewhere.example"}, "wrong issuer"),
        ({"kid": "key-2"}, "key (kid)"),
        ({"kid": None}, "key (kid)"),
        ({"nbf": 4e9}, "not valid yet"),
        ({"exp": "soon"}, "malformed"),
        ({"algorithm": "HS256", "key": "x" * 32}, "algorithm"),
    ],
)
async def test_a_token_that_lacks_something_is_refused_in_words_that_do_not_show_it(
    replica: Served, files: Secured, claims: dict[str, object], word: str
) -> None:
    token = files.issuer.token("reader/ann", **claims)  # type: ignore[arg-type]
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        code, words = await Caller(channel, token).refusal("GetInstance", GET)
    assert code == "UNAUTHENTICATED"
    assert token not in words
    if claims != {"exp": "soon"}:
        assert word in words
    async with secured_http(replica, files, token) as client:
        answer = await client.post("/hq.v1.InstanceService/GetInstance", json={"id": "web-1"})
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


async def test_a_token_of_a_stranger_with_our_key_id_is_refused(
    replica: Served, files: Secured, tmp_path: Path
) -> None:
    stranger = Issuer(tmp_path / "stranger", files.issuer.kid)
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        code, words = await Caller(channel, stranger.token("admin")).refusal("GetInstance", GET)
    assert (code, "signature" in words) == ("UNAUTHENTICATED", True)


async def test_two_tokens_in_one_call_are_refused(replica: Served, files: Secured) -> None:
    good = files.issuer.token("reader/ann")
    async with secured_http(replica, files) as client:
        url, both = "/hq.v1.InstanceService/GetInstance", [bearer(good), bearer(files.issuer.token("admin"))]
        answer = await client.post(url, json={"id": "web-1"}, headers=both)
    assert (answer.status_code, answer.json()["message"]) == (400, "2 headers authorization: send one")


async def test_two_tokens_in_one_call_are_refused_over_grpc(replica: Served, files: Secured) -> None:
    both = [bearer(files.issuer.token(who)) for who in ("reader/ann", "admin")]
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await InstanceServiceStub(channel).GetInstance(GET, metadata=both, timeout=10)
    assert raised.value.code().name == "INVALID_ARGUMENT"
    assert raised.value.details() == "2 headers authorization: send one"


async def test_a_denied_caller_is_not_told_what_is_wrong_with_the_request(replica: Served, files: Secured) -> None:
    async with secured_http(replica, files) as client:
        answer = await client.post("/hq.v1.InstanceService/GetInstance", content=b"{", headers=_JSON)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


# --- pages and the record -------------------------------------------------------------------------------------------


async def test_health_is_open_and_other_pages_are_not(replica: Served, files: Secured) -> None:
    async with secured_http(replica, files) as client:
        codes = {path: (await client.get(path)).status_code for path in ("/livez", "/readyz", "/metrics")}
        assert codes == {"/livez": 200, "/readyz": 200, "/metrics": 401}
    async with secured_http(replica, files, files.issuer.token("agent/n1")) as client:
        assert (await client.get("/metrics")).status_code == 403
    async with secured_http(replica, files, files.issuer.token("reader/prometheus")) as client:
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


async def test_an_agent_that_probes_foreign_instances_under_its_own_node_is_recorded_as_denied(
    as_: As, files: Secured
) -> None:
    files.audit.write_text("")
    begin = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n2")
    fetch = pb.GetRevisionRequest(instance_id="web-1", revision_id="r1", node="n2")
    told, unknown = report("web-1", "n2", 1), report("nobody", "n2", 1)
    told.uid = unknown.uid = 7
    probes = [("BeginReporting", begin), ("GetRevision", fetch), ("ReportStatus", told)]
    for name, request in probes:
        assert (await as_("agent/n2").refusal(name, request))[0] == "FAILED_PRECONDITION"
    batch = pb.ReportStatusesRequest(report=[told, unknown])
    assert (await as_("agent/n2").call("ReportStatuses", batch)).result[0].error.reason == "WRONG_UID"
    lines = [tuple(line[name] for name in ("identity", "decision", "key", "outcome")) for line in audit(files)]
    assert lines == [("agent/n2", "deny", "web-1", f"WRONG_{what}") for what in ("NODE", "NODE", "UID", "UID")]


async def test_a_report_after_another_reporter_took_over_is_recorded_as_denied(as_: As, files: Secured) -> None:
    begin = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1")
    first = await as_("agent/n1").call("BeginReporting", begin)
    await as_("agent/n1").call("BeginReporting", begin)
    files.audit.write_text("")
    late = report("web-1", "n1", first.incarnation)
    late.uid = first.uid
    assert (await as_("agent/n1").refusal("ReportStatus", late))[0] == "FAILED_PRECONDITION"
    [line] = audit(files)
    assert (line["decision"], line["key"], line["outcome"]) == ("deny", "web-1", "FENCED")


async def test_lines_of_denied_calls_and_of_writes_are_one_chain_over_restarts(tmp_path: Path, files: Secured) -> None:
    for number in range(2):
        security = files.security()
        async with served(security) as one, secure_channel(one.addresses.grpc, files.authority) as channel:
            admin, nobody = Caller(channel, files.issuer.token("admin")), Caller(channel)
            await admin.call("CreateInstance", create(f"web-{number}"))
            assert (await nobody.refusal("GetInstance", GET))[0] == "UNAUTHENTICATED"
            async with secured_http(one, files, files.issuer.token("reader/prometheus")) as client:
                assert f"hq_audit_sequence {3.0 * (number + 1)}" in (await client.get("/metrics")).text
        security.close()
    done = CliRunner().invoke(cli, ["audit", "verify", "--expect", "6", str(files.audit)])
    assert (done.exit_code, "6 lines, 1 to 6: intact" in done.output) == (0, True), done.output
