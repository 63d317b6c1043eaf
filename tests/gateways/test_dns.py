"""The DNS gateway as a process, and its sockets: UDP and TCP, and what is bounded."""

from __future__ import annotations

import asyncio
import socket
import struct

import dns.asyncquery
import dns.message
import dns.rcode
import pytest

from gateways.dns.responder import Responder
from gateways.dns.sockets import Rate, Tcp, Udp, bind_udp_and_tcp
from serving.clock import ManualClock
from tests.support.gateway_process import GatewayProcess, Programs
from tests.support.pictures import known, picture_of
from tests.unit.gateways.test_dns_zone import Asking

WEB = "web.service.hq.internal."


async def asked(where: tuple[str, int], name: str, kind: str = "A", *, tcp: bool = False) -> tuple[str, list[str]]:
    """The code and the records."""
    query = dns.message.make_query(name, kind)
    ask = dns.asyncquery.tcp if tcp else dns.asyncquery.udp
    said = await ask(query, where[0], port=where[1], timeout=20)
    return dns.rcode.to_text(said.rcode()), sorted(str(item) for rrset in said.answer for item in rrset)


async def answers(gateway: GatewayProcess, name: str, expected: tuple[str, list[str]]) -> None:
    """Return when it answers this."""
    async with asyncio.timeout(30):
        while await asked(gateway.dns, name) != expected:
            await asyncio.sleep(0.01)


@pytest.mark.long
async def test_only_the_services_that_are_named_are_published(started: Programs) -> None:
    hq = await started.registry()
    await hq.put("web-1", host="10.0.0.1")
    await hq.put("db-1", "db", host="10.0.0.2")
    gateway = await started.gateway("dns", hq, "--service", "web")
    await answers(gateway, WEB, ("NOERROR", ["10.0.0.1"]))
    assert (await asked(gateway.dns, "db.service.hq.internal."))[0] == "NXDOMAIN"
    assert await asked(gateway.dns, WEB, tcp=True) == ("NOERROR", ["10.0.0.1"])


class Sockets:
    """UDP and TCP in this process."""

    def __init__(self, responder: Responder, per_s: int = 0, idle_s: float = 10.0) -> None:
        udp, tcp = bind_udp_and_tcp("127.0.0.1:0")
        self.where = udp.getsockname()
        rate = Rate(per_s, ManualClock())
        self.udp, self.tcp = Udp(udp, responder, rate), Tcp(tcp, responder, rate, idle_s)

    async def __aenter__(self) -> Sockets:
        self.udp.open()
        await self.tcp.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.udp.close()
        await self.tcp.close()


def one_service() -> Responder:
    return Asking(picture_of(known("web-1"))).responder


async def test_one_address_gets_no_more_than_its_rate() -> None:
    responder = one_service()
    async with Sockets(responder, per_s=3) as sockets:
        for _ in range(3):
            await asked(sockets.where, WEB)
        with pytest.raises(dns.exception.Timeout):
            await dns.asyncquery.udp(dns.message.make_query(WEB, "A"), "127.0.0.1", port=sockets.where[1], timeout=0.3)
        with pytest.raises(EOFError):
            await asked(sockets.where, WEB, tcp=True)
        assert responder.counts.dropped["rate"] == 2


async def test_many_questions_on_one_connection_are_answered_in_order() -> None:
    async with Sockets(one_service()) as sockets:
        reader, writer = await asyncio.open_connection(*sockets.where)
        queries = [dns.message.make_query(WEB, "A", id=number) for number in range(1, 51)]
        for query in queries:
            wire = query.to_wire()
            writer.write(struct.pack("!H", len(wire)) + wire)
        for query in queries:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
            assert query.is_response(dns.message.from_wire(await reader.readexactly(size)))
        writer.close()


async def test_a_connection_that_sends_half_a_question_is_closed() -> None:
    async with Sockets(one_service(), idle_s=0.1) as sockets:
        reader, writer = await asyncio.open_connection(*sockets.where)
        writer.write(b"\x00\x40half")
        assert await reader.read() == b""
        writer.close()
        while sockets.tcp.connections:
            await asyncio.sleep(0.01)


async def test_connections_of_one_address_are_bounded() -> None:
    responder = one_service()
    async with Sockets(responder) as sockets:
        opened = [await asyncio.open_connection(*sockets.where) for _ in range(101)]
        assert await opened[-1][0].read() == b""
        assert responder.counts.dropped["connections"] == 1
        assert await asked(sockets.where, WEB) == ("NOERROR", ["10.0.0.1"])
        for _, writer in opened:
            writer.close()


async def test_an_address_in_use_is_named() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{taken.getsockname()[1]}"):
            bind_udp_and_tcp(f"127.0.0.1:{taken.getsockname()[1]}")
