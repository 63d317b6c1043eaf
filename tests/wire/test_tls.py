"""TLS of both transports: certificates of callers, and certificates that change while calls go on."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.certificates import Authority, Certificate
from tests.support.secured import Caller, Secured, Served, last_words, secure_channel, served
from tests.support.token_issuer import bearer

WHO = (
    b"POST /access.v1.AccessService/WhoAmI HTTP/1.1\r\nhost: x\r\n"
    b"content-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
)
COUNT = pb.CountInstancesRequest()
ROTATIONS = 100


@pytest.fixture
async def replica(files: Secured) -> AsyncIterator[Served]:
    """Certificates are asked for on an address of their own."""
    async with served(files.security(**files.with_certificates()), grpc_mtls="127.0.0.1:0") as one:
        yield one


async def code(address: str, authority: Authority, shown: Certificate | None = None, token: str = "") -> str:
    async with secure_channel(address, authority, shown) as channel:
        return (await Caller(channel, token).refusal("CountInstances", COUNT))[0]


@pytest.mark.parametrize(
    ("uris", "expected"),
    [
        (["spiffe://hq.test/gateway"], "OK"),
        (["spiffe://hq.test/unknown"], "PERMISSION_DENIED"),
        ([], "UNAUTHENTICATED"),
        (["spiffe://hq.test/gateway", "spiffe://hq.test/agent/n1"], "UNAUTHENTICATED"),
        (["spiffe://elsewhere.test/gateway"], "UNAUTHENTICATED"),
    ],
)
async def test_a_certificate_says_who_calls_by_its_one_id(
    replica: Served, files: Secured, uris: list[str], expected: str
) -> None:
    shown = files.authority.issue("caller", uris)
    assert await code(replica.addresses.grpc_mtls, files.authority, shown) == expected


async def test_the_address_for_certificates_takes_nobody_without_one_of_our_ca(
    replica: Served, files: Secured, tmp_path: Path
) -> None:
    token = files.issuer.token("reader/ann")
    assert await code(replica.addresses.grpc_mtls, files.authority, None, token) == "UNAVAILABLE"
    stranger = Authority(tmp_path / "strangers").issue("caller", ["spiffe://hq.test/gateway"])
    assert await code(replica.addresses.grpc_mtls, files.authority, stranger, token) == "UNAVAILABLE"


async def test_where_both_are_shown_the_token_says_who_calls(replica: Served, files: Secured) -> None:
    shown = files.authority.issue("gateway", ["spiffe://hq.test/gateway"])
    address = replica.addresses.grpc_mtls
    assert await code(address, files.authority, shown, files.issuer.token("reader/ann")) == "OK"
    assert await code(address, files.authority, shown, files.issuer.token("nobody-knows")) == "PERMISSION_DENIED"
    assert await code(address, files.authority, shown, files.issuer.token("admin", good_for_s=-60)) == "UNAUTHENTICATED"


async def test_a_certificate_with_two_names_is_refused_whatever_token_comes_with_it(
    replica: Served, files: Secured
) -> None:
    """Another reader of it could take the other name. A certificate that names nobody counts as none."""
    token = files.issuer.token("reader/ann")
    for uris, expected in (
        ([], "OK"),
        (["spiffe://elsewhere.test/gateway"], "OK"),
        (["spiffe://hq.test/gateway", "spiffe://hq.test/agent/n1"], "UNAUTHENTICATED"),
        (["https://x.example", "spiffe://hq.test/agent/n1"], "UNAUTHENTICATED"),
    ):
        shown = files.authority.issue("caller", uris)
        for address in (replica.addresses.grpc_mtls, replica.addresses.grpc):
            assert await code(address, files.authority, shown, token) == expected, uris


async def test_without_a_listener_for_certificates_a_certificate_is_taken_if_the_client_shows_one(
    files: Secured,
) -> None:
    async with served(files.security(**files.with_certificates(grpc_mtls=""))) as replica:
        token = files.issuer.token("reader/ann")
        assert await code(replica.addresses.grpc, files.authority, None, token) == "OK"
        assert await code(replica.addresses.grpc, files.authority) == "UNAUTHENTICATED"
        shown = files.authority.issue("caller", ["spiffe://hq.test/gateway"])
        assert await code(replica.addresses.grpc, files.authority, shown) == "OK"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1, ssl.TLSVersion.TLSv1_2])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_tls_is_of_version_1_2_or_newer(replica: Served, files: Secured, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(files.authority.cert))
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    context.minimum_version = context.maximum_version = version
    for address in (replica.addresses.grpc, replica.addresses.http):
        host, _, port = address.rpartition(":")
        if version is ssl.TLSVersion.TLSv1_2:
            _, writer = await asyncio.open_connection(host, int(port), ssl=context)
            writer.close()
        else:
            with pytest.raises(OSError):  # noqa: PT011  # SSLError or a reset
                await asyncio.open_connection(host, int(port), ssl=context)


# --- certificates that change ----------------------------------------------------------------------------------------


class Load:
    """Calls without a pause: over new connections, over one that stands, and over HTTP. A failed one ends the test."""

    def __init__(self, replica: Served, files: Secured) -> None:
        self._addresses, self._files, self._token = replica.addresses, files, files.issuer.token("reader/ann")
        self.calls = [0, 0, 0]
        self.serials: set[str] = set()
        self.is_over = False

    def begin(self, group: asyncio.TaskGroup) -> None:
        for one in (self._anew(), self._standing(), self._http()):
            group.create_task(one)

    async def each_called(self) -> None:
        """Every kind has made a call since."""
        seen = list(self.calls)
        while not all(now > before + 1 for now, before in zip(self.calls, seen, strict=True)):
            await asyncio.sleep(0.001)

    async def _anew(self) -> None:
        while not self.is_over:
            async with secure_channel(self._addresses.grpc, self._files.authority) as channel:
                await Caller(channel, self._token).call("CountInstances", COUNT)
                self.calls[0] += 1

    async def _standing(self) -> None:
        async with secure_channel(self._addresses.grpc, self._files.authority) as channel:
            while not self.is_over:
                await Caller(channel, self._token).call("CountInstances", COUNT)
                self.calls[1] += 1

    async def _http(self) -> None:
        context = ssl.create_default_context(cafile=str(self._files.authority.cert))
        url = f"https://{self._addresses.http}/hq.v1.InstanceService/CountInstances"
        while not self.is_over:
            async with httpx.AsyncClient(verify=context, trust_env=False) as client:
                answer = await client.post(url, json={}, headers=dict([bearer(self._token)]))
                assert answer.status_code == 200
                network = answer.extensions["network_stream"]
                self.serials.add(network.get_extra_info("ssl_object").getpeercert()["serialNumber"])
                self.calls[2] += 1


@pytest.mark.long
async def test_no_call_fails_while_certificates_change_a_hundred_times(replica: Served, files: Secured) -> None:
    assert replica.security is not None
    load = Load(replica, files)
    async with asyncio.timeout(100), asyncio.TaskGroup() as group:
        load.begin(group)
        for _ in range(ROTATIONS):
            files.authority.issue("server")
            replica.security.refresh()
            await load.each_called()
        load.is_over = True
    assert len(load.serials) >= ROTATIONS
    assert not replica.security.note()


async def test_grpc_shows_the_newest_certificate(replica: Served, files: Secured) -> None:
    assert replica.security is not None
    other = Authority(files.directory / "other")
    made = other.issue("server")
    files.server.cert.write_bytes(made.cert.read_bytes())
    files.server.key.write_bytes(made.key.read_bytes())
    token = files.issuer.token("reader/ann")
    assert await code(replica.addresses.grpc, files.authority, None, token) == "OK"
    replica.security.refresh()
    assert await code(replica.addresses.grpc, files.authority, None, token) == "UNAVAILABLE"
    assert await code(replica.addresses.grpc, other, None, token) == "OK"


@pytest.mark.parametrize("fault", ["cut", "foreign key", "expired", "gone", "empty"])
async def test_a_bad_new_certificate_keeps_the_old_one_and_says_so(replica: Served, files: Secured, fault: str) -> None:
    security = replica.security
    assert security is not None
    match fault:
        case "cut":
            files.server.cert.write_bytes(files.server.cert.read_bytes()[:200])
        case "foreign key":
            files.server.key.write_bytes(files.authority.issue("other").key.read_bytes())
        case "expired":
            files.authority.issue("server", good_for=timedelta(hours=-1))
        case "gone":
            files.server.key.unlink()
        case "empty":
            files.server.cert.write_bytes(b"")
    for _ in range(2):  # once may be halfway
        security.refresh()
    assert "--tls-cert" in security.note()
    token = files.issuer.token("reader/ann")
    assert await code(replica.addresses.grpc, files.authority, None, token) == "OK"
    context = ssl.create_default_context(cafile=str(files.authority.cert))
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        told = (await client.get(f"https://{replica.addresses.http}/readyz")).text
        assert "note: --tls-cert" in told
        headers = dict([bearer(token)])
        metrics = (await client.get(f"https://{replica.addresses.http}/metrics", headers=headers)).text
    assert 'hq_security_file_fault{file="tls-cert"} 1.0' in metrics
    files.authority.issue("server")
    security.refresh()
    assert not security.note()


async def test_a_certificate_and_its_key_may_be_put_in_place_one_after_the_other(
    replica: Served, files: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    assert replica.security is not None
    old = files.server.key.read_bytes()
    files.authority.issue("server")
    new = files.server.key.read_bytes()
    files.server.key.write_bytes(old)
    replica.security.refresh()
    files.server.key.write_bytes(new)
    replica.security.refresh()
    assert not replica.security.note()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_withdrawn_ca_is_withdrawn_for_new_connections(replica: Served, files: Secured) -> None:
    assert replica.security is not None
    shown = files.authority.issue("caller", ["spiffe://hq.test/gateway"])
    assert await code(replica.addresses.grpc_mtls, files.authority, shown) == "OK"
    trusted = files.authority.cert.read_bytes()
    files.authority.cert.write_bytes(Authority(files.directory / "next").cert.read_bytes())
    replica.security.refresh()
    files.authority.cert.write_bytes(trusted)  # for the client, which trusts the server still
    assert await code(replica.addresses.grpc_mtls, files.authority, shown) == "UNAVAILABLE"


class Returning:
    """A caller with a certificate that keeps the session of its first connection, and shows it at the next."""

    def __init__(
        self, address: str, files: Secured, shown: Certificate, version: ssl.TLSVersion, *, by_id: bool
    ) -> None:
        """`by_id`: it takes no tickets, so that the server has to remember the session (TLS 1.2)."""
        host, _, port = address.rpartition(":")
        self._at = host, int(port)
        self._context = ssl.create_default_context(cafile=str(files.authority.cert))
        self._context.load_cert_chain(shown.cert, shown.key)
        self._context.minimum_version = self._context.maximum_version = version
        if by_id:
            self._context.options |= ssl.OP_NO_TICKET
        self._open: list[ssl.SSLSocket] = []
        self.was_resumed: bool | None = False

    def call(self) -> str:
        """What a new connection comes to: the first line of an answer, or `refused`."""
        session = self._open[-1].session if self._open else None
        plain = socket.create_connection(self._at, timeout=20)
        try:
            secure = self._context.wrap_socket(plain, server_hostname="localhost", session=session)
            self._open.append(secure)  # it stays: OpenSSL forgets the session of one that hangs up without a word
            self.was_resumed = secure.session_reused
            secure.sendall(WHO)
            return secure.recv(65_536).partition(b"\r\n")[0].decode() or "refused"
        except OSError:
            return "refused"

    def close(self) -> None:
        for one in self._open:
            one.close()


SESSIONS = pytest.mark.parametrize(
    ("version", "by_id"),
    [(ssl.TLSVersion.TLSv1_3, False), (ssl.TLSVersion.TLSv1_2, False), (ssl.TLSVersion.TLSv1_2, True)],
    ids=["1.3", "1.2 by ticket", "1.2 by id"],
)


@SESSIONS
@pytest.mark.parametrize("address", ["grpc_mtls", "http"])
async def test_tls_session_resumption_does_not_outlive_a_withdrawn_ca(
    files: Secured, address: str, version: ssl.TLSVersion, *, by_id: bool
) -> None:
    withdrawn = Authority(files.directory / "withdrawn", "withdrawn")
    bundle = files.directory / "bundle.crt"
    bundle.write_bytes(files.authority.cert.read_bytes() + withdrawn.cert.read_bytes())
    shown = withdrawn.issue("caller", ["spiffe://hq.test/gateway"])
    security = files.security(**files.with_certificates(client_ca=str(bundle)))
    async with served(security, grpc_mtls="127.0.0.1:0") as replica:
        where = getattr(replica.addresses, address)
        with closing(Returning(where, files, shown, version, by_id=by_id)) as caller:
            assert await asyncio.to_thread(caller.call) == "HTTP/1.1 200 OK"
            bundle.write_bytes(files.authority.cert.read_bytes())
            security.refresh()
            assert await asyncio.to_thread(caller.call) == "refused"


@SESSIONS
async def test_no_ticket_is_given_where_certificates_are_read(
    replica: Served, files: Secured, version: ssl.TLSVersion, *, by_id: bool
) -> None:
    shown = files.authority.issue("caller", ["spiffe://hq.test/gateway"])
    with closing(Returning(replica.addresses.http, files, shown, version, by_id=by_id)) as caller:
        for _ in range(2):
            assert await asyncio.to_thread(caller.call) == "HTTP/1.1 200 OK"
            session = caller._open[-1].session
            assert session is None or not session.has_ticket
        assert not caller.was_resumed or version is ssl.TLSVersion.TLSv1_2  # by its id, for as long as the bundle stays


@pytest.mark.long
async def test_a_stream_ends_with_the_certificate_that_opened_it(files: Secured) -> None:
    shown = files.authority.issue("caller", ["spiffe://hq.test/gateway"], timedelta(seconds=8))
    async with (
        served(files.security(**files.with_certificates()), grpc_mtls="127.0.0.1:0") as replica,
        secure_channel(replica.addresses.grpc_mtls, files.authority, shown) as channel,
    ):
        stream = Caller(channel).watch(pb.WatchInstancesRequest())
        assert await last_words(stream) == (
            "UNAUTHENTICATED",
            "the certificate of spiffe://hq.test/gateway has expired",
        )
