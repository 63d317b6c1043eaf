"""Secured processes as an operator starts them: a replica with TLS, tokens and certificates, and a gateway over it."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.acceptance.test_dev import run
from tests.federated.federated_process import FederatedProcess, write_config
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.rights_requests import SECRET_KEY, create
from tests.support.sample_instances import eventually
from tests.support.secured import Caller, Secured, secure_channel

one_etcd = pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
GET = pb.GetInstanceRequest(id="web-1")
FIND = pb.FindInstancesRequest()


@dataclass(slots=True)
class World:
    """One replica, `certified` being its address for certificates, and a gateway over it."""

    files: Secured
    replica: ReplicaProcess
    certified: str
    gateway: FederatedProcess

    @asynccontextmanager
    async def calling(self, address: str, subject: str = "", certificate: str = "") -> AsyncIterator[Caller]:
        shown = self.files.authority.issue("caller", [certificate]) if certificate else None
        token = self.files.issuer.token(subject) if subject else ""
        async with secure_channel(address, self.files.authority, shown) as channel:
            yield Caller(channel, token)


@pytest.fixture
async def world(tmp_path: Path, replicas: Replicas, etcd: SharedEtcd) -> AsyncIterator[World]:
    files = Secured(tmp_path / "files")
    flags = files.flags(files.with_certificates())
    replica = await replicas.start([etcd.endpoint], etcd.prefix, "--cluster", "east", *flags, until_ready=False)
    found = re.search(r"certificates (127\.0\.0\.1:\d+)", replica.log_text())
    assert found is not None
    config = tmp_path / "gateway.yaml"
    write_config(config, {"east": [found[1]]})
    own = files.authority.issue("gateway", ["spiffe://hq.test/gateway"])
    shown = [
        "--location-ca",
        str(files.authority.cert),
        "--location-cert",
        str(own.cert),
        "--location-key",
        str(own.key),
    ]
    served = files.flags(files.given(audit_log=str(files.directory / "gateway-audit.jsonl")))
    gateway = FederatedProcess(config, tmp_path / "gateway.log", [*served, *shown])
    await gateway.start(until_ready=False)
    world = World(files, replica, found[1], gateway)
    try:
        async with world.calling(replica.grpc, "admin") as admin:
            await eventually_answers(admin)
            for name, service in (("web-1", "web"), ("mail-1", "mail")):
                await admin.call("CreateInstance", create(name, service))
        async with world.calling(gateway.grpc, "reader/ann") as reader:
            await eventually_answers(reader)
        yield world
    finally:
        await gateway.kill()


async def eventually_answers(caller: Caller) -> None:
    async def answers() -> bool:
        return (await caller.refusal("FindInstances", FIND))[0] == "OK"

    await eventually(answers, timeout_s=30, what="it serves")


@one_etcd
async def test_a_caller_has_exactly_its_rights_at_a_replica_and_through_a_gateway(world: World) -> None:
    """One world for all of it: two processes take their time to start."""
    await _the_same_caller_has_the_same_rights_at_a_replica_and_through_a_gateway(world)
    await _a_gateway_lends_its_own_rights_to_nobody(world)
    await _a_gateway_hands_out_no_secret_descriptors(world)
    await _a_certificate_alone_says_who_calls(world)
    await _neither_tokens_nor_keys_nor_descriptors_are_in_any_log(world)


@pytest.mark.long
@one_etcd
async def test_last_good_answers_are_for_callers_that_may_read(world: World) -> None:
    old = pb.FindInstancesRequest(read=pb.ReadOptions(allow_last_good=True))
    async with (
        world.calling(world.gateway.grpc, "reader/ann") as reader,
        world.calling(world.gateway.grpc, "web-reader") as web,
    ):
        await reader.call("FindInstances", old)
        assert (await web.refusal("FindInstances", old))[0] == "PERMISSION_DENIED"
        await world.replica.kill()

        async def is_old() -> bool:
            return bool((await reader.call("FindInstances", old)).sources[0].error)

        await eventually(is_old, timeout_s=30, what="the last good answer")
        assert len((await reader.call("FindInstances", old)).instances) == 2
        assert (await web.refusal("FindInstances", old))[0] == "UNAVAILABLE"


async def _the_same_caller_has_the_same_rights_at_a_replica_and_through_a_gateway(world: World) -> None:
    for address in (world.replica.grpc, world.gateway.grpc):
        async with world.calling(address, "reader/ann") as reader:
            assert (await reader.call("GetInstance", GET)).instance.meta.id == "web-1"
            assert (await reader.refusal("DeleteInstance", pb.DeleteInstanceRequest(id="web-1")))[
                0
            ] == "PERMISSION_DENIED"
        async with world.calling(address, "web-reader") as reader:
            assert (await reader.call("GetInstance", GET)).instance.meta.id == "web-1"
            assert (await reader.refusal("GetInstance", pb.GetInstanceRequest(id="mail-1")))[0] == "NOT_FOUND", address
            assert (await reader.refusal("FindInstances", FIND))[0] == "PERMISSION_DENIED", address
            with pytest.raises(grpc.aio.AioRpcError, match="PERMISSION_DENIED"):
                await _second(reader.watch(pb.WatchInstancesRequest()))
        async with world.calling(address, "web-uploader") as uploader:
            assert (await uploader.refusal("DeleteInstance", pb.DeleteInstanceRequest(id="mail-1")))[0] == "NOT_FOUND"
        async with world.calling(address, "nobody-knows") as stranger:
            assert (await stranger.refusal("GetInstance", GET))[0] == "PERMISSION_DENIED"
        async with world.calling(address) as nobody:
            assert (await nobody.refusal("GetInstance", GET))[0] == "UNAUTHENTICATED"


async def _a_gateway_lends_its_own_rights_to_nobody(world: World) -> None:
    """It is a reader itself, and shows its certificate with every question."""
    async with world.calling(world.gateway.grpc, certificate="spiffe://hq.test/gateway") as caller:
        assert (await caller.refusal("GetInstance", GET))[0] == "UNAUTHENTICATED"
    async with world.calling(world.gateway.grpc, "mail-uploader") as caller:
        assert (await caller.refusal("GetInstance", GET))[0] == "NOT_FOUND"


async def _a_gateway_hands_out_no_secret_descriptors(world: World) -> None:
    async with world.calling(world.gateway.grpc, "agent/n1") as agent:
        code, words = await agent.refusal("GetRevision", pb.GetRevisionRequest(instance_id="web-1", node="n1"))
        assert (code, SECRET_KEY in words) == ("FAILED_PRECONDITION", False)
    async with world.calling(world.gateway.grpc, "admin") as admin:
        for name, request in (("GetInstance", GET), ("FindInstances", FIND)):
            assert SECRET_KEY.encode() not in (await admin.call(name, request)).SerializeToString()


async def _a_certificate_alone_says_who_calls(world: World) -> None:
    async with world.calling(world.certified, certificate="spiffe://hq.test/agent/n1") as agent:
        answer = await agent.call("GetRevision", pb.GetRevisionRequest(instance_id="web-1", node="n1"))
        assert answer.revision[0].secret
    async with world.calling(world.certified) as nobody:
        assert (await nobody.refusal("GetInstance", GET))[0] == "UNAVAILABLE"  # the handshake fails


async def _neither_tokens_nor_keys_nor_descriptors_are_in_any_log(world: World) -> None:
    token = world.files.issuer.token("web-uploader")
    async with secure_channel(world.replica.grpc, world.files.authority) as channel:
        await Caller(channel, token).call("GetRevision", pb.GetRevisionRequest(instance_id="web-1"))
        assert (await Caller(channel, token + "x").refusal("GetInstance", GET))[0] == "UNAUTHENTICATED"
    written = world.replica.log_text() + world.gateway.log_text() + world.files.audit.read_text()
    assert "web-uploader" in written
    for secret in (SECRET_KEY, token.split(".")[1], "BEGIN"):
        assert secret not in written


@pytest.mark.parametrize("command", ["hq.main serve --etcd 127.0.0.1:1", "federated.main --config {config}"])
async def test_a_server_listens_beyond_this_machine_only_with_tls_and_identities_or_the_flag_insecure(
    tmp_path: Path, command: str
) -> None:
    files, config = Secured(tmp_path), tmp_path / "gateway.yaml"
    write_config(config, {"east": ["127.0.0.1:1"]})
    start = f"{sys.executable} -m {command.format(config=config)} --grpc 0.0.0.0:0 --http 127.0.0.1:0"
    tls_only = shlex.join(["--tls-cert", str(files.server.cert), "--tls-key", str(files.server.key)])
    for flags in ("", tls_only):
        code, out = await run(f"{start} {flags}")
        assert code == 2
        assert "--insecure" in out
        assert "--tls-cert" in out


async def _second(stream: grpc.aio.UnaryStreamCall[pb.WatchInstancesRequest, pb.WatchInstancesResponse]) -> object:
    async with asyncio.timeout(20):
        await stream.read()
        return await stream.read()
