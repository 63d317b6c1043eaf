"""Any bytes as a DNS message get a valid answer or none, as dnspython confirms."""

from __future__ import annotations

import contextlib
import random
import struct

import dns.exception
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.dns import wire
from gateways.dns.responder import Responder
from gateways.dns.sockets import Rate
from gateways.dns.wire import Faulty, Unanswerable
from gateways.dns.zone import Zone, ZoneSettings
from gateways.picture.addresses import Addressing
from serving.clock import ManualClock
from tests.support.pictures import known, picture_of

WEB = "web.service.hq.internal."
CLIENT = "10.1.1.1"


def responder() -> Responder:
    pictured = picture_of(*(known(f"web-{i}", host=f"10.0.0.{i}") for i in range(40)))
    zone = Zone(ZoneSettings((b"hq", b"internal")), pictured.picture, Addressing(pictured.picture.hosts), 1)
    return Responder(zone, random.Random(1))


ONE = responder()
LABELS = st.lists(
    st.sampled_from(
        ["web", "service", "hq", "internal", "_http", "_tcp", "dc", "rev", "label", "inst", "_why", "x" * 30]
    ),
    max_size=6,
)


@given(st.binary(max_size=600))
def test_garbage_is_answered_with_a_readable_message_or_not_at_all(packet: bytes) -> None:
    for answer in (ONE.answer_udp(packet, CLIENT), ONE.answer_tcp(packet, CLIENT)):
        if answer is not None:
            dns.message.from_wire(answer)


@given(st.data(), LABELS, st.sampled_from(["A", "AAAA", "SRV", "TXT", "SOA", "NS", "ANY", "MX"]), st.booleans())
def test_spoiled_questions_are_answered_with_a_readable_message_or_not_at_all(
    data: st.DataObject, labels: list[str], kind: str, has_edns: bool
) -> None:
    name = ".".join([*labels, "hq.internal."])
    packet = bytearray(dns.message.make_query(name, kind, use_edns=0 if has_edns else False).to_wire())
    for _ in range(data.draw(st.integers(0, 3))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    spoiled = bytes(packet[: data.draw(st.integers(0, len(packet)))]) if data.draw(st.booleans()) else bytes(packet)
    said = ONE.answer_udp(spoiled, CLIENT)
    if said is not None:
        assert len(said) <= wire.UDP_BYTES
        assert said[:2] == spoiled[:2]
        dns.message.from_wire(said)


@given(
    st.integers(0, 65_535),
    st.integers(0, 2),
    st.lists(st.tuples(st.integers(0, 65_535), st.binary(max_size=40)), max_size=4),
    st.sampled_from([CLIENT, "8.8.8.8", "::1"]),
)
def test_no_answer_is_longer_than_its_query_and_the_limit_allow(
    size: int, version: int, options: list[tuple[int, bytes]], client: str
) -> None:
    query = dns.message.make_query(f"_http._tcp.{WEB}", "SRV", use_edns=False)
    record = b"".join(struct.pack("!HH", code, len(data)) + data for code, data in options)
    packet = bytearray(query.to_wire()) + b"\0" + struct.pack("!HHIH", 41, size, version << 16, len(record)) + record
    packet[10:12] = struct.pack("!H", 1)
    answer = ONE.answer_udp(bytes(packet), client)
    assert answer is not None
    assert len(answer) <= max(512, min(size, 1_232 if client == "8.8.8.8" else 4_096))
    read = dns.message.from_wire(answer)
    assert read.rcode() == (dns.rcode.BADVERS if version else dns.rcode.NOERROR)
    assert bool(read.flags & dns.flags.TC) == (not version and len(read.answer[0] if read.answer else ()) < 40)


@given(st.binary(max_size=300))
def test_the_parser_reads_only_queries_that_dnspython_reads(packet: bytes) -> None:
    with contextlib.suppress(Unanswerable, Faulty):
        query = wire.read_query(packet)
        parsed = dns.message.from_wire(
            struct.pack("!HHHHHH", query.id, query.flags & wire.RD, 1, 0, 0, 0) + query.question
        )
        [asked] = parsed.question
        assert tuple(label.lower() for label in asked.name.labels[:-1]) == query.labels


def test_the_case_of_a_question_is_kept() -> None:
    asked = dns.message.make_query("wEb.SERvice.hq.INTERNAL.", "A")
    said = ONE.answer_udp(asked.to_wire(), CLIENT)
    assert said is not None
    assert said[12 : 12 + len("wEb.SERvice.hq.INTERNAL.") + 1] == asked.to_wire()[12 : 12 + 25]


def test_a_repeated_query_is_answered_with_its_own_id() -> None:
    for id_ in (1, 2, 3):
        asked = dns.message.make_query(WEB, "A", id=id_)
        said = ONE.answer_udp(asked.to_wire(), CLIENT)
        assert said is not None
        assert asked.is_response(dns.message.from_wire(said))


def rcode(packet: bytes) -> str:
    said = ONE.answer_udp(packet, CLIENT)
    assert said is not None
    return dns.rcode.to_text(dns.message.from_wire(said).rcode())


def test_other_opcodes_are_not_implemented() -> None:
    asked = dns.message.make_query(WEB, "A")
    asked.set_opcode(dns.opcode.NOTIFY)
    assert rcode(asked.to_wire()) == "NOTIMP"


def test_two_questions_are_malformed() -> None:
    packet = bytearray(dns.message.make_query(WEB, "A").to_wire())
    packet[5] = 2
    assert rcode(bytes(packet)) == "FORMERR"


def test_an_unknown_version_of_edns_is_refused_with_ours() -> None:
    packet = bytearray(dns.message.make_query(WEB, "A", use_edns=0).to_wire())
    packet[-5] = 1  # the version, in the TTL of the last record
    said = dns.message.from_wire(ONE.answer_udp(bytes(packet), CLIENT) or b"")
    assert (said.rcode(), said.edns, said.answer) == (dns.rcode.BADVERS, 0, [])


def test_an_answer_is_never_answered() -> None:
    asked = dns.message.make_query(WEB, "A")
    asked.flags |= dns.flags.QR
    assert ONE.answer_udp(asked.to_wire(), CLIENT) is None
    assert ONE.answer_udp(b"short", CLIENT) is None


def test_another_class_is_refused() -> None:
    assert rcode(dns.message.make_query("version.bind.", "TXT", "CH").to_wire()) == "REFUSED"


def test_an_answer_is_authoritative_and_offers_no_recursion() -> None:
    said = dns.message.from_wire(ONE.answer_udp(dns.message.make_query(WEB, "A").to_wire(), CLIENT) or b"")
    assert said.flags & dns.flags.AA
    assert said.flags & dns.flags.RD
    assert not said.flags & dns.flags.RA


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("10.0.0.1", "10.0.0.2", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:3::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
    ],
)
def test_each_address_or_network_has_its_own_rate(one: str, other: str, is_same: bool) -> None:
    clock = ManualClock()
    rate = Rate(2, clock)
    assert [rate.allows(one) for _ in range(3)] == [True, True, False]
    assert rate.allows(other) is not is_same
    clock.advance(1)
    assert rate.allows(one)


def test_a_rate_of_0_is_no_limit() -> None:
    assert all(Rate(0, ManualClock()).allows("10.0.0.1") for _ in range(10_000))
