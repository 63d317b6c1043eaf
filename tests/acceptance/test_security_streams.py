"""Streams through a gateway end with what let them in: the caller's token, its key, its rights."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from hqpb.v1 import service_pb2 as pb
from serving.listeners import Addresses
from tests.support.rights_requests import create
from tests.support.secured import Caller, Secured, last_words, secure_channel, served
from tests.support.secured_gateway import federated
from tests.support.token_issuer import Issuer, bearer

WATCH = pb.WatchInstancesRequest()
GOOD_FOR_S = 8.0
End = Callable[[Secured], object]


@pytest.fixture
async def files(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


@pytest.fixture
async def gateway(files: Secured) -> AsyncIterator[Addresses]:
    """Over a replica that reads other files than the gateway: whatever ends a stream, the gateway ends it by itself."""
    own = Secured(files.directory / "replica")
    own.issuer.publish(files.issuer)
    ca = str(files.authority.cert)
    tls = {"tls_cert": str(files.server.cert), "tls_key": str(files.server.key), "client_ca": ca}
    security = own.security(**own.with_certificates(**tls))
    async with served(security, grpc_mtls="127.0.0.1:0") as replica:
        async with secure_channel(replica.addresses.grpc, files.authority) as channel:
            await Caller(channel, files.issuer.token("admin")).call("CreateInstance", create("web-1"))
        async with federated(files, replica.addresses.grpc_mtls, clock_skew=0.0) as addresses:
            yield addresses


def _nothing(_: Secured) -> None:
    """Time does it."""


def _another_key(files: Secured) -> None:
    files.issuer.publish(Issuer(files.directory / "next", "key-2"))


def _other_rights(files: Secured) -> None:
    files.policy.write_text("roles: {reader: [{identities: ['reader/*'], services: [web]}]}")


ENDS = {
    "token": (_nothing, GOOD_FOR_S, ("UNAUTHENTICATED", "the token of reader/ann has expired")),
    "key": (_another_key, 600.0, ("UNAUTHENTICATED", "the key that signed the token of reader/ann was withdrawn")),
    "rights": (_other_rights, 600.0, ("PERMISSION_DENIED", "the permissions of reader/ann have changed")),
}


@pytest.mark.long
@pytest.mark.parametrize("why", ENDS)
@pytest.mark.parametrize("watched", ["grpc", "http"])
async def test_a_stream_through_a_gateway_ends_with_its_callers_token_key_or_rights(
    gateway: Addresses, files: Secured, watched: str, why: str
) -> None:
    end, good_for_s, expected = ENDS[why]
    token = files.issuer.token("reader/ann", good_for_s=good_for_s)
    begun = asyncio.Event()
    watch: Callable[..., Coroutine[Any, Any, tuple[str, str]]] = _over_grpc if watched == "grpc" else _over_http
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        ending = group.create_task(watch(gateway, files, token, begun))
        await begun.wait()
        end(files)
    assert ending.result() == expected


async def _over_grpc(gateway: Addresses, files: Secured, token: str, begun: asyncio.Event) -> tuple[str, str]:
    async with secure_channel(gateway.grpc, files.authority) as channel:
        stream = Caller(channel, token).watch(WATCH)
        while not (await stream.read()).events:
            pass
        begun.set()
        return await last_words(stream)


async def _over_http(gateway: Addresses, files: Secured, token: str, begun: asyncio.Event) -> tuple[str, str]:
    context = ssl.create_default_context(cafile=str(files.authority.cert))
    headers = {"content-type": "application/connect+json", **dict([bearer(token)])}
    url = f"https://{gateway.http}/hq.v1.InstanceService/WatchInstances"
    told = b""
    async with (
        httpx.AsyncClient(verify=context, trust_env=False) as client,
        client.stream("POST", url, content=b"\0\0\0\0\2{}", headers=headers, timeout=60) as answer,
    ):
        async for part in answer.aiter_bytes():
            told += part
            if b"web-1" in told:
                begun.set()
    error = json.loads(told[told.rindex(b'{"error"') :])["error"]
    return error["code"].upper(), error["message"].partition(": ")[0]
