"""Withdrawn credentials end at once, with their streams and connections; others go on, also while lists only grow."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509

from hqpb.v1 import service_pb2 as pb
from tests.support.certificates import Authority, Certificate
from tests.support.rights_requests import create
from tests.support.sample_instances import eventually
from tests.support.secured import Caller, Secured, Served, last_words, secure_channel, served

COUNT = pb.CountInstancesRequest()
GATEWAY, AGENT = "spiffe://hq.test/gateway", "spiffe://hq.test/agent/n1"
OF_N1 = pb.InstanceFilter(node_name=["n1"])


def refresh(replica: Served) -> None:
    assert replica.security is not None
    replica.security.refresh()
    assert replica.security.note() == ""


@asynccontextmanager
async def watching(
    replica: Served, files: Secured, token: str = "", shown: Certificate | None = None, where: Any = None
) -> AsyncIterator[tuple[Caller, Any]]:
    """A caller with a watch that has begun."""
    async with secure_channel(replica.addresses.http, files.authority, shown) as channel:
        caller = Caller(channel, token)
        stream = caller.watch(pb.WatchInstancesRequest(filter=where))
        await stream.read()
        yield caller, stream


async def goes_on(stream: Any, files: Secured, replica: Served, name: str) -> None:
    """The watch still says what changes."""
    async with secure_channel(replica.addresses.grpc, files.authority) as channel:
        await Caller(channel, files.issuer.token("admin")).call("CreateInstance", create(name))
    while not (await stream.read()).events:
        pass


def listing(**lists: Any) -> str:
    return json.dumps(lists)


def token_id(token: str) -> str:
    return str(jwt.decode(token, options={"verify_signature": False})["jti"])


REVOKING: dict[str, Callable[[str], str]] = {
    "by its id": lambda token: listing(tokens=["another", token_id(token)]),
    "by its subject": lambda _: listing(subjects=["reader/ann"]),
}


@pytest.mark.parametrize("way", REVOKING)
async def test_a_revoked_token_ends_with_its_streams_and_others_go_on(files: Secured, tmp_path: Path, way: str) -> None:
    revoked = tmp_path / "revoked.yaml"
    revoked.write_text("tokens: [long-ago]")
    ann = files.issuer.token("reader/ann", jti="a1")
    bob = files.issuer.token("reader/bob", jti="b1")
    async with (
        served(files.security(revoked=str(revoked))) as replica,
        watching(replica, files, ann) as (caller, ending),
        watching(replica, files, bob) as (_, going_on),
    ):
        revoked.write_text(REVOKING[way](ann))
        refresh(replica)
        assert await last_words(ending) == ("UNAUTHENTICATED", "the token of reader/ann was revoked")
        assert await caller.refusal("CountInstances", COUNT) == (
            "UNAUTHENTICATED",
            "the token of reader/ann was revoked: get a new one",
        )
        await goes_on(going_on, files, replica, "web-1")


async def test_a_revoked_certificate_ends_with_its_connection_and_others_go_on(files: Secured, tmp_path: Path) -> None:
    revoked = tmp_path / "revoked.yaml"
    revoked.write_text("{}")
    mine, other = files.authority.issue("mine", [GATEWAY]), files.authority.issue("other", [AGENT])
    serial = f"{x509.load_pem_x509_certificate(mine.cert.read_bytes()).serial_number:040X}"
    given = files.with_certificates(revoked=str(revoked), grpc_mtls="")
    async with (
        served(files.security(**given)) as replica,
        watching(replica, files, shown=mine) as (caller, ending),
        watching(replica, files, shown=other, where=OF_N1) as (_, going_on),
    ):
        revoked.write_text(listing(serials=[":".join(serial[i : i + 2] for i in range(0, 40, 2))]))
        refresh(replica)
        assert await last_words(ending) == ("UNAUTHENTICATED", f"the certificate of {GATEWAY} was revoked")
        assert (await caller.refusal("CountInstances", COUNT))[0] == "UNAUTHENTICATED"
        await goes_on(going_on, files, replica, "web-1")


@pytest.mark.long
async def test_a_removed_ca_takes_its_connections_along_and_those_of_others_go_on(files: Secured) -> None:
    """Its certificates counted until they expired, on connections that were open already."""
    withdrawn, bundle = Authority(files.directory / "withdrawn", "withdrawn"), files.directory / "bundle.crt"
    kept = files.authority.cert.read_bytes()
    bundle.write_bytes(kept + withdrawn.cert.read_bytes())
    mine, other = withdrawn.issue("mine", [GATEWAY]), files.authority.issue("other", [AGENT])
    given = files.with_certificates(client_ca=str(bundle), grpc_mtls="")
    async with (
        served(files.security(**given)) as replica,
        watching(replica, files, shown=mine) as (caller, ending),
        watching(replica, files, shown=other, where=OF_N1) as (agent, going_on),
    ):
        bundle.write_bytes(kept)
        refresh(replica)
        code, _ = await caller.refusal("CountInstances", COUNT)
        assert code in ("UNAUTHENTICATED", "UNAVAILABLE"), "on the old connection, or because TLS refuses a new one"
        assert (await last_words(ending))[1] == f"the CA of the certificate of {GATEWAY} was withdrawn"

        async def is_hung_up_on() -> bool:
            return (await caller.refusal("CountInstances", COUNT))[0] == "UNAVAILABLE"

        await eventually(is_hung_up_on, what="its connection ends, and TLS refuses another one")
        assert (await agent.refusal("CountInstances", pb.CountInstancesRequest(filter=OF_N1)))[0] == "OK"
        await goes_on(going_on, files, replica, "web-1")


async def test_a_policy_and_a_ca_bundle_that_only_grow_end_no_stream(files: Secured) -> None:
    bundle = files.directory / "bundle.crt"
    bundle.write_bytes(files.authority.cert.read_bytes())
    given = files.with_certificates(client_ca=str(bundle), grpc_mtls="")
    web = pb.InstanceFilter(service_id=["web"])
    async with (
        served(files.security(**given)) as replica,
        watching(replica, files, files.issuer.token("web-reader"), where=web) as (_, of_token),
        watching(replica, files, shown=files.authority.issue("mine", [GATEWAY])) as (_, of_certificate),
    ):
        bundle.write_bytes(bundle.read_bytes() + Authority(files.directory / "next", "next").cert.read_bytes())
        grown = files.policy.read_text().replace("services: [web]\n  agent", 'services: ["w*", mail]\n  agent')
        assert grown != files.policy.read_text()
        files.policy.write_text(grown)
        refresh(replica)
        for number, stream in enumerate((of_token, of_certificate)):
            await goes_on(stream, files, replica, f"web-{number}")
