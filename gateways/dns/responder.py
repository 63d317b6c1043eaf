"""The server without its sockets: a message in, a message out."""

from __future__ import annotations

import ipaddress
import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateways.dns import wire
from gateways.dns.wire import Code, DnsQuery, Faulty, Unanswerable
from gateways.dns.zone import Zone, ZoneAnswer

MOST_ADDRESSES: Final = 16  # in one answer over UDP
_DRAWINGS_BITS: Final = 5  # number of random orders kept per answer, as a power of two
_MOST_KEPT: Final = 4_096


class ReplyVariants:
    """An answer in several random orders: each question gets one of them.

    Attributes:
        client: the address that it is for; None: it is the same for any address.
    """

    __slots__ = ("_bits", "_drawings", "_numbers", "_writer", "client", "code", "query", "said")

    def __init__(self, writer: MessageWriter, query: DnsQuery, said: ZoneAnswer, client: str) -> None:
        self._writer, self.query, self.said, self.code = writer, query, said, said.code
        self._numbers = writer.numbers(query, said, client)
        self.client = client if writer.depends_on_client(query, said, self._numbers) else None
        self._bits = _DRAWINGS_BITS if said.any_order and len(self._numbers) > 1 else 0
        self._drawings: list[bytes] = []

    def pick(self) -> bytes:
        """The message in one of the orders, without its id."""
        if len(self._drawings) >> self._bits:
            return self._drawings[self._writer.rng.getrandbits(self._bits)]
        self._drawings.append(self._writer.message(self.query, self.said, self._numbers))
        return self._drawings[-1]


@dataclass(slots=True)
class MessageWriter:
    """Encodes answers as messages of one transport.

    Attributes:
        most_bytes: of a message, if its asker takes so many.
        common_bytes: of a message that any other client may get, too.
    """

    zone: Zone
    rng: random.Random
    most_bytes: int
    common_bytes: int
    is_udp: bool

    def _room_for_records(self, query: DnsQuery, most_bytes: int) -> int:
        """Bytes for records."""
        room = min(query.room, most_bytes) if self.is_udp else most_bytes
        return room - wire.HEADER_BYTES - len(query.question) - query.has_edns * wire.OPT_BYTES

    def depends_on_client(self, query: DnsQuery, said: ZoneAnswer, numbers: Sequence[int]) -> bool:
        """Whether another client's answer may differ from this one, in which these records are sent."""
        if len(numbers) < len(said.records):
            return True
        common = self._room_for_records(query, self.common_bytes)
        return query.room > self.common_bytes and _size(query, said, numbers) > common

    def numbers(self, query: DnsQuery, said: ZoneAnswer, client: str) -> Sequence[int]:
        """Which records are sent: all, or as many as fit, and always the same ones to one address."""
        records, left = said.records, self._room_for_records(query, self.most_bytes)
        most = MOST_ADDRESSES if self.is_udp and said.any_order else len(records)
        if len(records) <= most and sum(map(len, records)) <= left:
            return range(len(records))
        chosen: list[int] = []
        for number in said.spread.order(client):
            left -= len(records[number])
            if left < 0 or len(chosen) == most:
                break
            chosen.append(number)
        return chosen

    def message(self, query: DnsQuery, said: ZoneAnswer, numbers: Sequence[int]) -> bytes:
        """The message with these records, without its id."""
        if said.is_denial:
            soa = self.zone.soa(_to_zone(query, self.zone))
            return wire.head(query, wire.AA, said.code, 0, 1, 0) + soa + wire.tail(query)
        if said.code is not Code.NOERROR:
            return wire.head(query, 0, said.code, 0, 0, 0) + wire.tail(query)
        if said.any_order:
            numbers = self.rng.sample(numbers, len(numbers))
        records = [said.records[number] for number in numbers]
        extra = _addresses_of_targets(query, said, numbers)
        if sum(map(len, records)) + sum(map(len, extra)) > self._room_for_records(query, self.most_bytes):
            extra = []  # clients that want a target's address ask for it
        is_truncated = self.is_udp and len(numbers) < len(said.records) and not said.any_order
        head = wire.head(query, wire.AA | is_truncated * wire.TC, 0, len(records), 0, len(extra))
        return b"".join((head, *records, *extra, wire.tail(query)))


def _size(query: DnsQuery, said: ZoneAnswer, numbers: Sequence[int]) -> int:
    """Bytes of these records and of the addresses of their targets."""
    extra = _addresses_of_targets(query, said, numbers)
    return sum(len(said.records[number]) for number in numbers) + sum(map(len, extra))


def _addresses_of_targets(query: DnsQuery, said: ZoneAnswer, numbers: Sequence[int]) -> list[bytes]:
    """Records of the addresses of SRV targets; their owners point to the targets, where these can be pointed at."""
    found: list[bytes] = []
    at = wire.HEADER_BYTES + len(query.question) + wire.SRV_TARGET_AT
    for number in numbers if said.extra else ():
        record = said.records[number]
        owner = wire.pointer(at) if at <= wire.LAST_POINTED_AT else record[wire.SRV_TARGET_AT :]
        found += [owner + address for address in said.extra[number]]
        at += len(record)
    return found


@dataclass(slots=True)
class DnsCounts:
    """Counters of answered and dropped questions.

    Attributes:
        answers: by transport and code.
        dropped: by reason.
    """

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)


class Responder:
    """Answers messages.

    Attributes:
        counts: what it did.
    """

    def __init__(self, zone: Zone, rng: random.Random, udp_bytes: int | None = None) -> None:
        """`udp_bytes`: the most of an answer over UDP, if its asker takes so many; None: it depends on the asker."""
        self._zone = zone
        common = udp_bytes or wire.UDP_BYTES
        self._udp = MessageWriter(zone, rng, common, common, is_udp=True)
        self._local_udp = MessageWriter(zone, rng, udp_bytes or wire.LOCAL_UDP_BYTES, common, is_udp=True)
        self._tcp = MessageWriter(zone, rng, wire.TCP_BYTES, wire.TCP_BYTES, is_udp=False)
        self.counts = DnsCounts()
        self._kept: dict[bytes, ReplyVariants] = {}
        self._keys: dict[str, list[bytes]] = {}  # by service, of what is kept

    def on_services_changed(self, services: Collection[str]) -> None:
        """Called by the picture: these services changed; none: what is known as a whole."""
        if not services:
            self._kept.clear()
            self._keys.clear()
        for service in services:
            for key in self._keys.pop(service, ()):
                self._kept.pop(key, None)

    def answer_udp(self, packet: bytes, client: str) -> bytes | None:
        """The answer to a datagram from an address; None: there is none."""
        kept = self._kept.get(packet[2:])
        if kept is not None and kept.client is not None and kept.client != client:
            kept = self._kept.get(packet[2:] + client.encode())
        if kept is not None:
            self.counts.answers["udp", kept.code.name] += 1
            return packet[:2] + kept.pick()
        return self._answer_packet(packet, client, "udp")

    def answer_tcp(self, packet: bytes, client: str) -> bytes | None:
        """The answer to a message of a connection from an address; None: there is none."""
        return self._answer_packet(packet, client, "tcp")

    def _answer_packet(self, packet: bytes, client: str, transport: str) -> bytes | None:
        try:
            query = wire.read_query(packet)
        except Unanswerable:
            self.counts.dropped["no_question"] += 1
            return None
        except Faulty as fault:
            self.counts.answers[transport, fault.code.name] += 1
            return wire.fault(packet, fault.code)
        if query.version:
            self.counts.answers[transport, Code.BADVERS.name] += 1
            return packet[:2] + wire.head(query, 0, 0, 0, 0, 0) + wire.tail(query, Code.BADVERS)
        said = self._zone.answer(query)
        self.counts.answers[transport, said.code.name] += 1
        reply = ReplyVariants(self._writer(transport, client), query, said, client)
        if transport == "udp" and said.may_be_kept and said.service and not said.is_denial:
            self._keep(packet[2:], reply)
        return packet[:2] + reply.pick()

    def _writer(self, transport: str, client: str) -> MessageWriter:
        if transport == "tcp":
            return self._tcp
        return self._local_udp if is_local(client) else self._udp

    def _keep(self, key: bytes, reply: ReplyVariants) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self.on_services_changed(())
        if key in self._kept and reply.client is not None:  # another address has other records
            key += reply.client.encode()
        self._kept[key] = reply
        self._keys.setdefault(reply.said.service, []).append(key)


def is_local(client: str) -> bool:
    """Whether fragments arrive at an address, as they do on loopback and in private networks."""
    address = ipaddress.ip_address(client)
    return (getattr(address, "ipv4_mapped", None) or address).is_private


def _to_zone(query: DnsQuery, zone: Zone) -> bytes:
    """A compressed name of the zone: the end of the question's."""
    before = query.labels[: -len(zone.settings.zone)]
    at = wire.HEADER_BYTES + sum(len(label) + 1 for label in before)
    return wire.pointer(at)
