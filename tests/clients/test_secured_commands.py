"""nanny and instancectl at a replica that asks who calls: flags or variables name their credentials."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from hqclient.credential_files import CredentialFiles
from hqpb.v1 import service_pb2 as pb
from hqpb.v1 import service_stubs
from instancectl.hostagent.agent import HostAgent
from tests.clients.instancectl.host_agents import short_directory
from tests.clients.process import ended, environment
from tests.support.rights_requests import create
from tests.support.sample_instances import eventually
from tests.support.secured import Caller, Secured, Served, secure_channel, served


@pytest.fixture
def files(tmp_path: Path) -> Secured:
    return Secured(tmp_path / "secured")


@pytest.fixture
async def replica(files: Secured) -> AsyncIterator[Served]:
    async with served(files.security(**files.with_certificates()), grpc_mtls="127.0.0.1:0") as one:
        async with secure_channel(one.addresses.grpc, files.authority) as channel:
            made = create("web-1", "web", "n1")
            del made.instance.spec.revision[0].secret[:]
            await Caller(channel, files.issuer.token("admin")).call("CreateInstance", made)
        yield one


async def run(module: str, server: str, *arguments: str, **variables: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**environment(server), **variables},
    )
    outcome = await ended(process)
    return outcome.code, outcome.out


def token_file(files: Secured, subject: str) -> str:
    path = files.directory / f"{subject.replace('/', '-')}.token"
    path.write_text(files.issuer.token(subject))
    return os.fspath(path)


@pytest.mark.long
async def test_nanny_shows_its_token(replica: Served, files: Secured, tmp_path: Path) -> None:
    described = tmp_path / "web.yaml"
    described.write_text("{service: web, instances: [{id: web-1, labels: {tier: front}}]}")
    asked = ("nannyctl.main", replica.addresses.grpc, "plan", "-f", os.fspath(described))
    ca = os.fspath(files.authority.cert)
    code, out = await run(*asked, "--ca", ca, "--token-file", token_file(files, "web-uploader"))
    assert "web-1" in out, out
    code, out = await run(*asked, HQ_CA=ca, HQ_TOKEN_FILE=token_file(files, "mail-uploader"))
    assert code != 0
    assert "mail-uploader is not authorized to read" in out
    code, out = await run(*asked, "--ca", ca, "--cert", ca)
    assert code != 0
    assert "--cert and --key" in out


async def test_instancectl_shows_its_certificate_and_reports_for_its_own_node_only(
    replica: Served, files: Secured, tmp_path: Path
) -> None:
    shown = files.authority.issue("agent", ["spiffe://hq.test/agent/n1"])
    own = {"HQ_CA": files.authority.cert, "HQ_CERT": shown.cert, "HQ_KEY": shown.key}
    variables = {name: os.fspath(path) for name, path in own.items()}
    once = ("run", "--once", "--instance", "web-1", "--dir", os.fspath(tmp_path / "instance"))
    asked = ("instancectl.main", replica.addresses.grpc_mtls, *once)
    _, out = await run(*asked, "--node", "n1", **variables)
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        reader = Caller(channel, files.issuer.token("reader/ada"))
        told = await reader.call("GetInstance", pb.GetInstanceRequest(id="web-1"))
    assert [revision.id for revision in told.instance.status.revision] == ["r1"], out
    assert "r1" in told.instance.status.heartbeat


async def test_a_supervisor_without_an_identity_calls_through_the_host_agent_as_its_node(
    replica: Served, files: Secured
) -> None:
    shown = files.authority.issue("agent", ["spiffe://hq.test/agent/n1"])
    own = CredentialFiles(*map(os.fspath, (files.authority.cert, shown.cert, shown.key)))
    ending = asyncio.Event()
    with short_directory() as directory:
        socket = directory / "agent.sock"
        agent = asyncio.create_task(HostAgent("n1", [replica.addresses.grpc_mtls], own, socket, ()).run(ending))
        await eventually(lambda: socket.exists() or agent.done())
        try:
            async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
                stub: service_stubs.InstanceServiceStub = service_stubs.InstanceServiceStub(channel)
                wanted = await stub.GetRevision(pb.GetRevisionRequest(instance_id="web-1", node="n1"))
                assert [revision.id for revision in wanted.revision] == ["r1"]
                begin = pb.BeginReportingRequest(instance_id="web-1", revision_id="r1", node="n1")
                assert (await stub.BeginReporting(begin)).incarnation
                watch = stub.WatchInstances(pb.WatchInstancesRequest(filter={"instance_id": ["web-1"]}))
                first = await asyncio.wait_for(watch.read(), 30)
                assert isinstance(first, pb.WatchInstancesResponse)
                assert [event.put.meta.id for event in first.events] == ["web-1"]
        finally:
            ending.set()
            await agent


@pytest.mark.long
async def test_hqctl_says_which_grant_lets_a_caller_in_and_why_not(replica: Served, files: Secured) -> None:
    ca, token = os.fspath(files.authority.cert), token_file(files, "rack-operator")
    shown = ("hqctl.main", replica.addresses.grpc, "--ca", ca, "--token-file", token, "auth")
    code, out = await run(*shown, "explain", "SuspendNode", "--node", "rack1-7")
    assert (code, "allowed" in out, "operator, nodes: rack1-*: covers it" in out) == (0, True, True), out
    code, out = await run(*shown, "explain", "SuspendNode", "--node", "rack2-7")
    assert (code, "denied: operator: its nodes are rack1-*" in out) == (7, True), out
    code, out = await run(*shown, "matrix")
    assert code == 0, out
    assert "AdminService/SuspendNode" in out
    assert "requires the role" in out
    code, out = await run(*shown, "matrix", "--identity", "admin")
    assert "rack-operator is not authorized" in out
