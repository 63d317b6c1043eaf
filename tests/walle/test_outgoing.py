"""Wall-E's calls, over real sockets: bounded in time and size, no redirects, a CA for each destination."""

from __future__ import annotations

import ssl
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest

from control.outgoing import MAX_ANSWER_BYTES, TIMEOUT_S, OutgoingCallFailed
from tests.support.certificates import Authority
from tests.support.walle.listener import answer, listening
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import Controllers, IpAddress, parse_url


@pytest.fixture
async def calls() -> AsyncIterator[OutgoingCalls]:
    async with aclosing(OutgoingCalls()) as made:
        yield made


async def test_an_answer_without_end_is_given_up_at_a_mebibyte_while_it_is_read(calls: OutgoingCalls) -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    async with listening(head, endless=b"x" * 65536) as server:
        with pytest.raises(OutgoingCallFailed, match="larger than 1048576 bytes"):
            await calls.send("GET", f"http://{server.address}/")
        assert server.written < 32 * MAX_ANSWER_BYTES  # what the sockets between hold comes on top


async def test_an_answer_of_a_mebibyte_is_taken(calls: OutgoingCalls) -> None:
    async with listening(answer(body=b"x" * MAX_ANSWER_BYTES)) as server:
        reply = await calls.send("GET", f"http://{server.address}/")
    assert (reply.status, len(reply.content), reply.json()) == (200, MAX_ANSWER_BYTES, None)


async def test_a_compressed_answer_is_refused_and_not_unpacked(calls: OutgoingCalls) -> None:
    async with listening(answer(body=b"x", content_encoding="gzip")) as server:
        with pytest.raises(OutgoingCallFailed, match="is compressed"):
            await calls.send("GET", f"http://{server.address}/")
        assert "accept-encoding: identity" in server.heard[0]


async def test_a_call_has_ten_seconds_in_all_and_no_shorter_bound_within() -> None:
    bounds: list[object] = []

    def answered(request: httpx.Request) -> httpx.Response:
        bounds.extend(request.extensions["timeout"].values())
        return httpx.Response(200)

    async with aclosing(OutgoingCalls(httpx.MockTransport(answered))) as calls:
        await calls.send("GET", "http://10.7.0.1/")
    assert bounds == [None] * 4, "an answer after seven seconds was a failure"
    assert TIMEOUT_S == 10.0


async def test_a_redirect_is_not_followed(calls: OutgoingCalls) -> None:
    async with listening() as other:
        async with listening(answer(307, location=f"http://{other.address}/")) as server:
            reply = await calls.send("POST", f"http://{server.address}/", headers={"authorization": "Bearer secret"})
        assert (reply.status, reply.is_success, other.connections) == (307, False, 0)


@pytest.mark.parametrize("token", ["WORD\nWORD", "WORD\r", "WORD\x00", "W\u00f6RD"])
async def test_the_error_of_a_call_that_cannot_be_sent_does_not_show_its_credential(
    calls: OutgoingCalls, token: str
) -> None:
    async with listening() as server:
        with pytest.raises(OutgoingCallFailed, match="its credential is no value of a header: look for") as failed:
            await calls.send("GET", f"http://{server.address}/", headers={"authorization": f"Bearer {token}"})
    assert "RD" not in "".join(traceback.format_exception(failed.value))


async def test_no_proxy_of_the_environment_gets_a_credential(
    calls: OutgoingCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening() as proxy, listening() as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{proxy.address}")
        await calls.send("GET", f"http://{server.address}/", headers={"authorization": "Bearer secret"})
        assert (proxy.connections, server.connections) == (0, 1)


async def test_each_destination_is_verified_by_its_own_ca(calls: OutgoingCalls, tmp_path: Path) -> None:
    mine, other = Authority(tmp_path / "mine"), Authority(tmp_path / "other")
    issued, context = mine.issue("bmc"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.cert, issued.key)
    async with listening(tls=context) as server:
        trusted = ssl.create_default_context(cafile=mine.cert)
        assert (await calls.send("GET", f"https://{server.address}/", tls=trusted)).status == 200
        for wrong in (None, ssl.create_default_context(cafile=other.cert)):
            with pytest.raises(OutgoingCallFailed, match="CERTIFICATE_VERIFY_FAILED"):
                await calls.send("GET", f"https://{server.address}/", tls=wrong)


class Names:
    """A name server whose answer changes, as an attacker's does."""

    def __init__(self, *answers: str) -> None:
        self._answers = [*answers]

    async def resolve(self, host: str, port: int) -> IpAddress:
        return ip_address(self._answers.pop(0))


async def test_a_name_is_resolved_once_and_the_address_that_was_checked_is_called(tmp_path: Path) -> None:
    """Else a name could be an allowed address when it is checked, and this machine when it is called."""
    authority = Authority(tmp_path)
    issued, context = authority.issue("bmc"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.cert, issued.key)
    async with listening(tls=context) as server:
        port = int(server.address.rpartition(":")[2])
        entry = Controllers("localhost", port, tls=ssl.create_default_context(cafile=authority.cert))
        async with aclosing(OutgoingCalls(None, Names("127.0.0.1").resolve)) as calls:
            url = parse_url(f"https://localhost:{port}")
            reply = await calls.send_to_controller("GET", url, "/redfish/v1", entry, timeout_s=5)
        assert reply.status == 200
        assert f"host: localhost:{port}\r\n" in server.heard[0].lower()


@pytest.mark.parametrize("ip", ["127.0.0.1", "169.254.169.254", "::1", "0.0.0.0"])
async def test_a_name_that_stands_for_this_machine_or_its_link_is_not_called(ip: str) -> None:
    async with aclosing(OutgoingCalls(httpx.MockTransport(lambda _: httpx.Response(200)), Names(ip).resolve)) as calls:
        url = parse_url("https://n1.mgmt.example")
        with pytest.raises(OutgoingCallFailed, match="is not called"):
            await calls.send_to_controller("GET", url, "/redfish/v1", Controllers("mgmt.example"), timeout_s=5)
