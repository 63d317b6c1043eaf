"""A gateway's own credentials: certificates that are renewed, tokens that are always those of its callers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from federated.calls.asking import caller_token
from federated.locations.channel import Dialer, ReplicaChannel
from federated.locations.location_health import PROBE
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqclient.errors import HqApiError
from serving.calls.methods import Call
from serving.errors import Unauthenticated
from tests.support.certificates import Certificate
from tests.support.secured import Secured, Served, served
from tests.support.token_issuer import Issuer, bearer


@pytest.fixture
def files(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


@pytest.fixture
async def replica(files: Secured) -> AsyncIterator[Served]:
    async with served(files.security(**files.with_certificates()), grpc_mtls="127.0.0.1:0") as one:
        yield one


def dialer(files: Secured, own: Certificate | None, now: list[float]) -> Dialer:
    shown = (str(own.cert), str(own.key)) if own else ("", "")
    return Dialer(Credentials(CredentialFiles(str(files.authority.cert), *shown), lambda: now[0]))


async def test_renewed_certificates_are_shown_without_a_failed_call(replica: Served, files: Secured) -> None:
    own, now = files.authority.issue("gateway", ["spiffe://hq.test/gateway"]), [0.0]
    channel = ReplicaChannel(replica.addresses.grpc_mtls, dialer(files, own, now))
    connections = set()
    try:
        for _ in range(10):
            calls = [channel.call("CountInstances", PROBE, 10.0) for _ in range(5)]
            under_way = [asyncio.create_task(call) for call in calls]
            await asyncio.sleep(0)
            files.authority.issue("gateway", ["spiffe://hq.test/gateway"])
            now[0] += 2.0
            assert await channel.call("CountInstances", PROBE, 10.0)
            connections.add(channel._channel._current)
            assert all(await asyncio.gather(*under_way))
    finally:
        await channel.close()
    assert len(connections) == 10


async def test_calls_are_passed_on_with_the_callers_token_and_rights(replica: Served, files: Secured) -> None:
    own = files.authority.issue("gateway", ["spiffe://hq.test/gateway"])
    channel = ReplicaChannel(replica.addresses.grpc_mtls, dialer(files, own, [0.0]))
    try:
        assert await channel.call("CountInstances", PROBE, 10.0)
        assert await channel.call("CountInstances", PROBE, 10.0, [bearer(files.issuer.token("reader/ann"))])
        with pytest.raises(HqApiError, match="nobody-knows"):
            await channel.call("CountInstances", PROBE, 10.0, [bearer(files.issuer.token("nobody-knows"))])
    finally:
        await channel.close()


class _Sent(Call):
    def __init__(self, *tokens: str) -> None:
        self.tokens = tokens

    __setattr__ = object.__setattr__

    def all_headers(self, name: str) -> tuple[str, ...]:
        return self.tokens if name == "authorization" else ()


def test_one_token_is_passed_on_as_it_came_and_two_are_refused(tmp_path: Path) -> None:
    assert caller_token(_Sent()) == ()
    sent = bearer(Issuer(tmp_path).token("ann"))
    assert caller_token(_Sent(sent[1])) == (sent,)
    with pytest.raises(Unauthenticated, match="several"):
        caller_token(_Sent(sent[1], sent[1]))


@pytest.mark.parametrize("audience", ["federated", ["federated", "cms"], "", []])
def test_a_token_that_is_not_for_the_replicas_is_not_shown_to_them(tmp_path: Path, audience: Any) -> None:
    token = Issuer(tmp_path).token("ann", aud=audience)
    with pytest.raises(Unauthenticated, match="hqctl token sign --audience federated,hq"):
        caller_token(_Sent(f"Bearer {token}"))


@pytest.mark.parametrize("junk", ["Bearer \xe4", "Bearer \n", "\0"])
def test_a_token_that_cannot_stand_in_a_header_is_refused_by_the_gateway(junk: str) -> None:
    with pytest.raises(Unauthenticated):
        caller_token(_Sent(junk))
