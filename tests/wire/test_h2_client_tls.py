"""The client over TLS: whom it trusts, what it shows, and what it asks of the other side."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import pytest

from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqpb.v1 import service_pb2
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed
from tests.support.certificates import Authority, Certificate
from tests.support.grpcio_server import GrpcioServer
from tests.support.secured import Secured, served
from tests.wire.fake_table import GET, FakeRegistry

COUNT = "/hq.v1.InstanceService/CountInstances"


def trusting(authority: Authority, own: Certificate | None = None) -> Callable[[], ssl.SSLContext]:
    shown = (str(own.cert), str(own.key)) if own else ("", "")
    made = Credentials(CredentialFiles(str(authority.cert), *shown)).tls()
    assert made is not None
    return made


async def failure(channel: Channel) -> str:
    """Why there is no connection."""
    try:
        with pytest.raises(CallFailed, match="cannot connect") as raised:
            await channel.unary(COUNT, b"", 5.0)
        assert raised.value.is_unprocessed
        return raised.value.message
    finally:
        await channel.close()
        assert not channel._connections


@pytest.fixture
async def grpcio(files: Secured, registry: FakeRegistry) -> AsyncIterator[int]:
    """The port of a server that asks for certificates."""
    server = GrpcioServer(registry.methods())
    pair = [(files.server.key.read_bytes(), files.server.cert.read_bytes())]
    credentials = grpc.ssl_server_credentials(pair, files.authority.cert.read_bytes(), True)
    yield await server.listen("0.0.0.0:0", credentials)
    await server.stop(0.0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_certificate_is_shown_and_the_host_is_looked_at(files: Secured, grpcio: int, host: str) -> None:
    channel = Channel(f"{host}:{grpcio}", trusting(files.authority, files.authority.issue("gateway")))
    request = service_pb2.GetInstanceRequest(id="big:300000").SerializeToString()
    answers = await asyncio.gather(*(channel.unary(f"/{GET}", request, 10.0) for _ in range(20)))
    assert {len(answer) > 300_000 for answer in answers} == {True}
    await channel.close()


async def test_a_certificate_of_another_host_is_refused(files: Secured, grpcio: int) -> None:
    own = files.authority.issue("gateway")
    assert "certificate verify failed" in await failure(Channel(f"127.0.0.2:{grpcio}", trusting(files.authority, own)))


async def test_a_name_that_is_not_known_is_said_in_the_words_of_the_look_up() -> None:
    """A look-up's numbers are not the system's: that would say "Unknown error -2"."""
    assert "nknown error" not in await failure(Channel("nobody.invalid:1"))


async def test_a_certificate_of_another_authority_is_refused(files: Secured, grpcio: int, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "other")
    assert "certificate verify failed" in await failure(Channel(f"127.0.0.1:{grpcio}", trusting(stranger)))


@pytest.mark.parametrize("is_own", [True, False])
async def test_nobody_without_a_certificate_is_let_in_where_one_is_wanted(
    files: Secured, grpcio: int, is_own: bool
) -> None:
    if not is_own:
        assert await failure(Channel(f"127.0.0.1:{grpcio}", trusting(files.authority)))
        return
    async with served(files.security(**files.with_certificates()), grpc_mtls="127.0.0.1:0") as replica:
        assert await failure(Channel(replica.addresses.grpc_mtls, trusting(files.authority)))


async def test_a_server_that_speaks_no_http_2_is_no_connection(files: Secured) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.server.cert, files.server.key)
    context.set_alpn_protocols(["http/1.1"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    assert "does not speak HTTP/2" in await failure(Channel(f"127.0.0.1:{port}", trusting(files.authority)))
    server.close()


async def test_plain_text_where_tls_is_spoken_is_no_connection(files: Secured, grpcio: int) -> None:
    assert await failure(Channel(f"127.0.0.1:{grpcio}"))


async def test_credentials_that_became_unusable_leave_the_old_ones_in_force(files: Secured, grpcio: int) -> None:
    own, now = files.authority.issue("gateway"), [0.0]
    named = CredentialFiles(str(files.authority.cert), str(own.cert), str(own.key))
    credentials = Credentials(named, lambda: now[0])
    own.key.write_text("nonsense")
    now[0] = 5.0
    channel = Channel(f"127.0.0.1:{grpcio}", credentials.tls())
    request = service_pb2.GetInstanceRequest(id="web-1").SerializeToString()
    assert await channel.unary(f"/{GET}", request, 5.0)
    await channel.close()
