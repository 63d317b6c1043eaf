"""The server without its sockets: a message in, a message out."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateways.dns import wire
from gateways.dns.wire import Code, Faulty, Query, Unanswerable
from gateways.dns.zone import Answer, Zone

MOST_ADDRESSES: Final = 16  # in one answer over UDP
_DRAWINGS_BITS: Final = 5  # number of random orders kept per answer, as a power of two
_MOST_KEPT: Final = 4_096


class KeptAnswer:
    """A cached answer in several random orders: each client gets one of them."""

    __slots__ = ("_drawings", "code", "is_fixed", "query", "said")

    def __init__(self, query: Query, said: Answer, first: bytes) -> None:
        self.query, self.said, self.code = query, said, said.code
        self.is_fixed = not (said.any_order and len(said.records) > 1)
        self._drawings = [first]

    def pick(self, draw: MessageWriter) -> bytes:
        """One of them."""
        if self.is_fixed:
            return self._drawings[0]
        if len(self._drawings) >> _DRAWINGS_BITS:
            return self._drawings[draw.rng.getrandbits(_DRAWINGS_BITS)]
        self._drawings.append(draw.message(self.query, self.said, self.query.room))
        return self._drawings[-1]


@dataclass(slots=True)
class MessageWriter:
    """Encodes answers as messages."""

    zone: Zone
    rng: random.Random

    def message(self, query: Query, said: Answer, room: int) -> bytes:
        """All but the id; never more than `room` bytes."""
        left = room - wire.HEADER_BYTES - len(query.question) - query.has_edns * wire.OPT_BYTES
        is_small = room <= wire.UDP_BYTES
        if said.is_denial:
            soa = self.zone.soa(_to_zone(query, self.zone))
            return wire.head(query, wire.AA, said.code, 0, 1, 0) + soa + wire.tail(query)
        if said.code is not Code.NOERROR:
            return wire.head(query, 0, said.code, 0, 0, 0) + wire.tail(query)
        records = self._some(said.records, left, is_small=is_small) if said.any_order else said.records
        return self._with(query, records, said.extra, left, is_small=is_small)

    def _some(self, records: Sequence[bytes], left: int, *, is_small: bool) -> Sequence[bytes]:
        """In random order; if not all fit, a random choice. All have the same size."""
        fitting = left // len(records[0])
        return self.rng.sample(records, min(len(records), fitting, MOST_ADDRESSES if is_small else fitting))

    def _with(
        self, query: Query, records: Sequence[bytes], extra: Sequence[bytes], left: int, *, is_small: bool
    ) -> bytes:
        size = sum(map(len, records))
        if size + sum(map(len, extra)) > left:
            extra = ()  # clients that want a target's address ask for it
        if size > left and is_small:
            return wire.head(query, wire.AA | wire.TC, 0, 0, 0, 0) + wire.tail(query)
        if size > left:
            records = self.rng.sample(records, left // max(map(len, records)))
        head = wire.head(query, wire.AA, 0, len(records), 0, len(extra))
        return b"".join((head, *records, *extra, wire.tail(query)))


@dataclass(slots=True)
class Counts:
    """What was answered, and what was not.

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

    def __init__(self, zone: Zone, rng: random.Random) -> None:
        self._zone, self._draw = zone, MessageWriter(zone, rng)
        self.counts = Counts()
        self._kept: dict[bytes, KeptAnswer] = {}
        self._keys: dict[str, list[bytes]] = {}  # by service, of what is kept

    def changed(self, services: Collection[str]) -> None:
        """Called by the picture: these services changed; none: what is known as a whole."""
        if not services:
            self._kept.clear()
            self._keys.clear()
        for service in services:
            for key in self._keys.pop(service, ()):
                self._kept.pop(key, None)

    def over_udp(self, packet: bytes) -> bytes | None:
        """The answer to a datagram; None: there is none."""
        kept = self._kept.get(packet[2:])
        if kept is not None:
            self.counts.answers["udp", kept.code.name] += 1
            return packet[:2] + kept.pick(self._draw)
        return self._answered(packet, "udp")

    def over_tcp(self, packet: bytes) -> bytes | None:
        """The answer to a message of a connection; None: there is none."""
        return self._answered(packet, "tcp")

    def _answered(self, packet: bytes, transport: str) -> bytes | None:
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
        if transport == "tcp":
            return packet[:2] + self._draw.message(query, said, wire.TCP_BYTES)
        body = self._draw.message(query, said, query.room)
        if said.may_be_kept and said.service and not said.is_denial:
            self._keep(packet[2:], query, said, body)
        return packet[:2] + body

    def _keep(self, key: bytes, query: Query, said: Answer, body: bytes) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self.changed(())
        self._kept[key] = KeptAnswer(query, said, body)
        self._keys.setdefault(said.service, []).append(key)


def _to_zone(query: Query, zone: Zone) -> bytes:
    """A compressed name of the zone: the end of the question's."""
    before = query.labels[: -len(zone.settings.zone)]
    at = wire.HEADER_BYTES + sum(len(label) + 1 for label in before)
    return (0xC000 | at).to_bytes(2, "big")
