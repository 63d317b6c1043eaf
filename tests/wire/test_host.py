"""A page whose name was made to resolve to us (DNS rebinding) calls a server without authentication in vain."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import grpc
import pytest

from hqpb.v1.service_stubs import InstanceServiceStub
from serving.auth.security import security_of
from serving.clock import SystemClock
from tests.support.rights_requests import create
from tests.support.secured import Secured, served
from tests.wire.raw_http import RawHttp

CREATE = "/hq.v1.InstanceService/CreateInstance"
GET = "/hq.v1.InstanceService/GetInstance"
COUNT = "/hq.v1.InstanceService/CountInstances"
WEB = b'{"instance": {"meta": {"id": "web-1", "serviceId": "web"}, "spec": {"nodeName": "n1"}}}'
EVIL = "evil.example:7080"


def request(path: str, body: bytes, host: str, kind: str = "application/json") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def asked(address: str, said: bytes, tls: ssl.SSLContext | None = None) -> tuple[int, bytes]:
    async with RawHttp(int(address.rpartition(":")[2]), tls).connect() as connection:
        await connection.send(said)
        answer = await connection.answer()
        return answer.status, answer.body


async def test_a_write_for_a_host_of_another_name_is_refused_and_says_what_to_do() -> None:
    async with served(None) as replica:
        status, body = await asked(replica.addresses.http, request(CREATE, WEB, EVIL))
        assert status == 421
        assert b"does not answer as 'evil.example:7080'" in body
        assert b"--allowed-host evil.example" in body
        assert (await asked(replica.addresses.http, request(GET, b'{"id": "web-1"}', "localhost")))[0] == 404
        assert (await asked(replica.addresses.http, request(CREATE, WEB, "127.0.0.1:7080")))[0] == 200


async def test_every_address_and_every_protocol_of_browsers_is_guarded() -> None:
    async with served(None, agents="127.0.0.1:0") as replica:
        addresses = replica.addresses
        for address in (addresses.grpc, addresses.http, addresses.agents):
            for kind in ("application/json", "application/proto", "application/grpc-web+proto", "text/plain"):
                assert (await asked(address, request(COUNT, b"{}", EVIL, kind)))[0] == 421, (address, kind)
        assert (await asked(addresses.http, f"GET / HTTP/1.1\r\nhost: {EVIL}\r\n\r\n".encode()))[0] == 421


@pytest.mark.parametrize("page", ["/livez", "/readyz", "/metrics"])
async def test_probes_and_prometheus_are_answered_by_any_name(page: str) -> None:
    async with served(None) as replica:
        assert (await asked(replica.addresses.http, f"GET {page} HTTP/1.1\r\nhost: {EVIL}\r\n\r\n".encode()))[0] == 200


async def test_names_that_the_flag_allows_are_answered() -> None:
    async with served(None, allowed_hosts=("hq", "*.hq.example")) as replica:
        for host, expected in (("hq:80", 200), ("a.hq.example", 200), ("hq.example", 421), (EVIL, 421)):
            assert (await asked(replica.addresses.http, request(COUNT, b"{}", host)))[0] == expected, host


async def test_over_http_2_in_plain_text_any_name_is_answered_as_no_browser_speaks_that() -> None:
    async with served(None) as replica:
        options = (("grpc.default_authority", EVIL),)
        async with grpc.aio.insecure_channel(replica.addresses.grpc, options=options) as channel:
            await InstanceServiceStub(channel).CreateInstance(create("web-1", "web", "n1"), timeout=10)


async def test_over_tls_any_name_is_answered_as_the_certificate_names_the_server(files: Secured) -> None:
    without = dict.fromkeys(("jwks", "issuer", "policy", "audit_log"), "")
    async with served(security_of(files.given(**without), SystemClock(), "test")) as replica:
        tls = ssl.create_default_context(cafile=str(files.authority.cert))
        assert (await asked(replica.addresses.http, request(COUNT, b"{}", EVIL), tls))[0] == 200


async def test_with_authentication_any_name_is_answered_as_no_page_has_a_token(files: Secured) -> None:
    security = files.security(tls_cert="", tls_key="", insecure=True)
    async with served(security) as replica:
        assert (await asked(replica.addresses.http, request(COUNT, b"{}", EVIL)))[0] == 401


async def test_at_a_unix_socket_any_name_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "hq.sock"
    async with served(None, agents=f"unix:{path}"):
        assert await at_unix_socket(path, request("/hq.v1.InstanceService/ListSilences", b"{}", EVIL)) != 421


async def at_unix_socket(path: Path, said: bytes) -> int:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(said)
    line = await reader.readline()
    writer.close()
    return int(line.split()[1])
