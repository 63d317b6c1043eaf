"""What changes while a secured replica runs: tokens that end, files that are written anew, a log that fails."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hqpb.v1 import admin_pb2
from hqpb.v1 import service_pb2 as pb
from serving.clock import SystemClock
from tests.support.rights_requests import create
from tests.support.sample_instances import eventually
from tests.support.secured import Caller, Secured, Served, last_words, secure_channel, served
from tests.support.token_issuer import Issuer, bearer
from tests.wire.secured_http import secured_http

COUNT = pb.CountInstancesRequest()
WATCH = pb.WatchInstancesRequest()


class WallClock(SystemClock):
    """A clock whose wall time can be moved."""

    ahead_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.ahead_ms


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
async def replica(files: Secured, clock: WallClock) -> AsyncIterator[Served]:
    async with served(files.security(clock), clock) as one:
        yield one


@pytest.fixture
async def reader(replica: Served, files: Secured) -> AsyncIterator[Caller]:
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        yield Caller(channel, files.issuer.token("reader/ann"))


def refresh(replica: Served) -> str:
    assert replica.security is not None
    replica.security.refresh()
    return replica.security.note()


async def test_a_stream_ends_with_its_token(replica: Served, reader: Caller, clock: WallClock) -> None:
    stream = reader.watch(WATCH)
    await stream.read()
    clock.ahead_ms = 640_000
    assert await last_words(stream) == ("UNAUTHENTICATED", "the token of reader/ann has expired")
    assert (await reader.refusal("CountInstances", COUNT))[0] == "UNAUTHENTICATED"


async def test_a_stream_over_http_ends_with_its_token(replica: Served, files: Secured, clock: WallClock) -> None:
    context = ssl.create_default_context(cafile=str(files.authority.cert))
    headers = {"content-type": "application/connect+json", **dict([bearer(files.issuer.token("reader/ann"))])}
    url = f"https://{replica.addresses.http}/hq.v1.InstanceService/WatchInstances"
    async with (
        httpx.AsyncClient(verify=context, trust_env=False) as client,
        client.stream("POST", url, content=b"\0\0\0\0\2{}", headers=headers, timeout=30) as answer,
    ):
        parts = answer.aiter_bytes()
        await anext(parts)
        clock.ahead_ms = 640_000
        rest = b"".join([part async for part in parts])
    assert b'"code":"unauthenticated"' in rest


async def test_a_stream_ends_when_its_caller_may_not_any_more(replica: Served, reader: Caller, files: Secured) -> None:
    stream = reader.watch(WATCH)
    await stream.read()
    files.policy.write_text("roles: {reader: [{identities: ['reader/*'], services: [web]}]}")
    assert not refresh(replica)
    assert await last_words(stream) == ("PERMISSION_DENIED", "the permissions of reader/ann have changed")
    assert (await reader.refusal("CountInstances", COUNT))[0] == "PERMISSION_DENIED"


async def test_a_stream_ends_also_while_its_first_message_is_being_sent(
    replica: Served, reader: Caller, files: Secured
) -> None:
    assert replica.security is not None
    assert replica.security.gate is not None
    policy = files.policy.read_text()
    for turns in range(6):
        stream = reader.watch(WATCH)
        while not list(replica.security.gate.leases()):
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        files.policy.write_text("roles: {reader: [{identities: ['reader/*'], services: [web]}]}")
        assert not refresh(replica)
        assert await last_words(stream) == ("PERMISSION_DENIED", "the permissions of reader/ann have changed")
        files.policy.write_text(policy)
        assert not refresh(replica)


@pytest.mark.parametrize("subject", ["reader/ann", "web-reader", "agent/n1"])
async def test_a_stream_goes_on_through_a_change_of_somebody_elses_rights(
    replica: Served, files: Secured, subject: str
) -> None:
    where = pb.InstanceFilter(service_id=["web"], node_name=["n1"])
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        stream = Caller(channel, files.issuer.token(subject)).watch(pb.WatchInstancesRequest(filter=where))
        await stream.read()
        await _changed_for_somebody_else(replica, files)
        while not (await stream.read()).events:
            pass


async def _changed_for_somebody_else(replica: Served, files: Secured) -> None:
    files.policy.write_text(files.policy.read_text() + "\n    - identities: [another-admin]\n")
    assert not refresh(replica)
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        await Caller(channel, files.issuer.token("another-admin")).call("CreateInstance", create("web-1"))


async def test_a_broken_policy_keeps_the_old_one_and_says_so(replica: Served, reader: Caller, files: Secured) -> None:
    good = files.policy.read_text()
    for broken in ("roles: [", "roles: {king: []}", ""):
        files.policy.write_text(broken)
        assert "--policy" in refresh(replica)
        assert (await reader.refusal("CountInstances", COUNT))[0] == "OK"
    files.policy.unlink()
    assert "--policy" in refresh(replica)
    files.policy.write_text(good)
    assert not refresh(replica)


async def test_public_pages_name_a_faulty_file_and_none_of_its_contents(replica: Served, files: Secured) -> None:
    files.policy.write_text("roles: {confidential-name: [{identities: [x]}]}")
    assert refresh(replica) == "--policy: the changed file could not be loaded, see the log"
    async with secured_http(replica, files) as anybody:
        text = (await anybody.get("/readyz")).text
    assert ("--policy" in text, "confidential" in text) == (True, False)


async def test_a_stream_ends_with_the_key_of_its_token_and_others_go_on(
    replica: Served, reader: Caller, files: Secured, tmp_path: Path
) -> None:
    following = Issuer(tmp_path / "next", "key-2")
    files.issuer.publish(files.issuer, following)
    assert not refresh(replica)
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        ending, going_on = reader.watch(WATCH), Caller(channel, following.token("reader/bob")).watch(WATCH)
        await ending.read()
        await going_on.read()
        files.issuer.publish(following)
        assert not refresh(replica)
        assert await last_words(ending) == (
            "UNAUTHENTICATED",
            "the key that signed the token of reader/ann was withdrawn",
        )
        await Caller(channel, following.token("admin")).call("CreateInstance", create("web-1"))
        while not (await going_on.read()).events:
            pass


async def test_a_withdrawn_key_is_withdrawn_at_once_and_a_new_one_taken(
    replica: Served, reader: Caller, files: Secured, tmp_path: Path
) -> None:
    following = Issuer(tmp_path / "next", "key-2")
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        later = Caller(channel, following.token("reader/ann"))
        assert (await later.refusal("CountInstances", COUNT))[0] == "UNAUTHENTICATED"
        files.issuer.publish(files.issuer, following)
        assert not refresh(replica)
        assert (await later.refusal("CountInstances", COUNT))[0] == "OK"
        assert (await reader.refusal("CountInstances", COUNT))[0] == "OK"
        files.issuer.publish(following)
        assert not refresh(replica)
        assert (await later.refusal("CountInstances", COUNT))[0] == "OK"
        assert (await reader.refusal("CountInstances", COUNT))[0] == "UNAUTHENTICATED"


async def test_files_are_followed_without_being_told(replica: Served, reader: Caller, files: Secured) -> None:
    files.policy.write_text("roles: {}")

    async def is_denied() -> bool:
        return (await reader.refusal("CountInstances", COUNT))[0] == "PERMISSION_DENIED"

    await eventually(is_denied, timeout_s=30, what="the new policy is in force")


# --- the record -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_orders_are_refused_while_they_cannot_be_recorded(files: Secured) -> None:
    files.audit = Path("/dev/full")
    order = admin_pb2.SuspendNodeRequest(node_name="n1", by="ann", reason="disk")
    order.duration.FromSeconds(60)
    async with (
        served(files.security()) as replica,
        secure_channel(replica.addresses.grpc, files.authority) as channel,
    ):
        operator = Caller(channel, files.issuer.token("operator"))
        code, words = await operator.refusal("SuspendNode", order)
        assert (code, "audit log" in words) == ("UNAVAILABLE", True)
        assert "audit log" in refresh(replica)
        told = await operator.call("ListSuspensions", admin_pb2.ListSuspensionsRequest())
        assert not told.suspensions
        guard: Any = {"by": "ann", "reason": "disk", "duration": order.duration}
        assert (await operator.refusal("ReleaseGuard", admin_pb2.ReleaseGuardRequest(**guard)))[0] == "UNAVAILABLE"
        await operator.call("ForceGuard", admin_pb2.ForceGuardRequest(**guard))  # it only holds expiries back
        assert replica.security is not None
        assert replica.security.audit.lost


async def test_while_nothing_can_be_recorded_writes_are_refused_and_agents_go_on(files: Secured) -> None:
    """A full disk must not expire the fleet."""
    async with (
        served(files.security()) as replica,
        secure_channel(replica.addresses.grpc, files.authority) as channel,
    ):
        admin, agent = (Caller(channel, files.issuer.token(name)) for name in ("admin", "agent/n1"))
        await admin.call("CreateInstance", create("web-1"))
        files.audit.rename(files.audit.with_suffix(".old"))
        files.audit.symlink_to("/dev/full")
        await agent.call("BeginReporting", pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1"))
        assert "the audit log cannot be written" in refresh(replica)
        code, words = await admin.refusal("CreateInstance", create("web-2"))
        assert (code, "audit log" in words) == ("UNAVAILABLE", True)
        assert (await admin.refusal("GetInstance", pb.GetInstanceRequest(id="web-2")))[0] == "NOT_FOUND"
        files.audit.unlink()  # room again: nobody has to order anything for it to be seen
        assert refresh(replica) == ""
        assert '"begin"' in files.audit.read_text(), "what happened meanwhile"
        await admin.call("CreateInstance", create("web-2"))


async def test_an_order_is_recorded_before_and_after(replica: Served, files: Secured) -> None:
    order = admin_pb2.SuspendNodeRequest(node_name="n1", by="ann", reason="disk")
    order.duration.FromSeconds(60)
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        await Caller(channel, files.issuer.token("operator")).call("SuspendNode", order)
    lines = [json.loads(line) for line in files.audit.read_text().splitlines()]
    assert lines.pop(0)["method"] == "start"
    assert [(line["identity"], line["key"], line["outcome"]) for line in lines] == [
        ("operator", "n1", "begun"),
        ("operator", "n1", "OK"),
    ]
