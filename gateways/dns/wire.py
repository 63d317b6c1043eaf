"""Messages of DNS (RFC 1035, RFC 6891), as far as an authoritative server of one zone needs them. No I/O.

Our own code, as it handles a question in ten microseconds where libraries take a hundred (decision 051);
the tests check it against dnspython.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

HEADER_BYTES: Final = 12
PLAIN_BYTES: Final = 512
UDP_BYTES: Final = 1232  # no fragments on any network of today (DNS flag day 2020)
LOCAL_UDP_BYTES: Final = 4096  # between machines of one network, where fragments arrive
TCP_BYTES: Final = 65_535
MOST_NAME_BYTES: Final = 255
IN: Final = 1
TO_QUESTION: Final = b"\xc0\x0c"  # a compressed name: that of the question

QR, AA, TC, RD, CD = 0x8000, 0x0400, 0x0200, 0x0100, 0x0010
_OPCODE: Final = 0x7800
_MOST_EXTRA: Final = 16  # additional records that are examined
_HEADER: Final = struct.Struct("!HHHHHH")
_RECORD: Final = struct.Struct("!HHIH")
_TYPE_AND_CLASS: Final = struct.Struct("!HH")


class RecordType(IntEnum):
    """Kinds of records and questions that are known here."""

    A = 1
    NS = 2
    SOA = 6
    HINFO = 13
    TXT = 16
    AAAA = 28
    SRV = 33
    OPT = 41
    IXFR = 251
    AXFR = 252
    ANY = 255


class Code(IntEnum):
    """RCODE."""

    NOERROR = 0
    FORMERR = 1
    SERVFAIL = 2
    NXDOMAIN = 3
    NOTIMP = 4
    REFUSED = 5
    BADVERS = 16


class Unanswerable(Exception):
    """Not a question: the sender gets no answer."""


class Faulty(Exception):
    """A question that cannot be answered as it is; `code` says why."""

    def __init__(self, code: Code) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True, slots=True)
class DnsQuery:
    """One question.

    Attributes:
        flags: of its header.
        question: name, type and class as they were sent: answers repeat them in the same case.
        labels: of the name, in lower case.
        has_edns: its sender knows EDNS.
        room: the most bytes over UDP that its sender takes.
        version: of EDNS; only 0 exists.
    """

    id: int
    flags: int
    question: bytes
    labels: tuple[bytes, ...]
    type: int
    cls: int
    has_edns: bool = False
    room: int = PLAIN_BYTES
    version: int = 0


def read_query(packet: bytes) -> DnsQuery:
    """The question of a message.

    Raises:
        Unanswerable: it is not a question: too short, or an answer.
        Faulty: FORMERR or NOTIMP.
    """
    if len(packet) < HEADER_BYTES:
        raise Unanswerable
    id_, flags, questions, answers, authorities, extra = _HEADER.unpack_from(packet)
    if flags & QR:
        raise Unanswerable
    if flags & _OPCODE:
        raise Faulty(Code.NOTIMP)
    if questions != 1 or answers or authorities or extra > _MOST_EXTRA:
        raise Faulty(Code.FORMERR)
    labels, end = _read_name(packet, HEADER_BYTES)
    if end + 4 > len(packet):
        raise Faulty(Code.FORMERR)
    kind, cls = _TYPE_AND_CLASS.unpack_from(packet, end)
    edns = _read_extra(packet, end + 4, extra)
    question = packet[HEADER_BYTES : end + 4]
    if edns is None:
        return DnsQuery(id_, flags, question, labels, kind, cls)
    size, ttl = edns
    return DnsQuery(id_, flags, question, labels, kind, cls, True, max(size, PLAIN_BYTES), (ttl >> 16) & 0xFF)


def _read_name(packet: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    """The labels of an uncompressed name, in lower case, and where it ends. Raises Faulty."""
    labels: list[bytes] = []
    begin = at
    while at < len(packet):
        size = packet[at]
        if size == 0:
            return tuple(labels), at + 1
        at += 1 + size
        if size > 63 or at - begin >= MOST_NAME_BYTES or at > len(packet):
            break
        labels.append(packet[at - size : at].lower())
    raise Faulty(Code.FORMERR)


def _read_extra(packet: bytes, at: int, count: int) -> tuple[int, int] | None:
    """Size and TTL of the OPT record; None: there is none. Raises Faulty."""
    found = None
    for _ in range(count):
        is_root = at < len(packet) and packet[at] == 0
        at = _skip_name(packet, at)
        if at + _RECORD.size > len(packet):
            raise Faulty(Code.FORMERR)
        kind, size, ttl, length = _RECORD.unpack_from(packet, at)
        at += _RECORD.size + length
        if at > len(packet) or (kind == RecordType.OPT and (found is not None or not is_root)):
            raise Faulty(Code.FORMERR)
        if kind == RecordType.OPT:
            found = size, ttl
    return found


def _skip_name(packet: bytes, at: int) -> int:
    """Where a name ends that may be compressed. Pointers are not followed. Raises Faulty."""
    while at < len(packet):
        size = packet[at]
        if size == 0:
            return at + 1
        if size & 0xC0 == 0xC0:
            return at + 2
        if size > 63:
            break
        at += 1 + size
    raise Faulty(Code.FORMERR)


# --- writing --------------------------------------------------------------------------------------------------


def name(*labels: bytes) -> bytes:
    """A name, not compressed."""
    return b"".join([bytes((len(label),)) + label for label in labels]) + b"\0"


def record(owner: bytes, kind: int, ttl_s: int, data: bytes) -> bytes:
    """A record of class IN; `owner` is encoded already."""
    return owner + _RECORD.pack(kind, IN, ttl_s, len(data)) + data


def soa(primary: bytes, mailbox: bytes, serial: int, ttl_s: int) -> bytes:
    """Data of a start of authority: the zone is never transferred; negative answers have the same TTL as others."""
    return primary + mailbox + struct.pack("!IIIII", serial & 0xFFFFFFFF, 3600, 600, 86_400, ttl_s)


SRV_TARGET_AT: Final = 2 + _RECORD.size + 6  # in a record of the question's name
LAST_POINTED_AT: Final = 0x3FFF  # a name further on in a message cannot be pointed at


def pointer(at: int) -> bytes:
    """A compressed name: the one at this place of the message."""
    return (0xC000 | at).to_bytes(2, "big")


def srv(priority: int, weight: int, port: int, target: bytes) -> bytes:
    """Data of a service location."""
    return struct.pack("!HHH", priority, weight, port) + target


def texts(lines: Sequence[str]) -> bytes:
    """Data of a TXT record: one string per line, truncated if it is too long."""
    encoded = [line.encode("ascii", "replace")[:255] for line in lines]
    return b"".join([bytes((len(line),)) + line for line in encoded])


_OPT: Final = b"\0" + struct.pack("!HHIH", RecordType.OPT, UDP_BYTES, 0, 0)
_OPT_BADVERS: Final = b"\0" + struct.pack("!HHIH", RecordType.OPT, UDP_BYTES, (Code.BADVERS >> 4) << 24, 0)
OPT_BYTES: Final = len(_OPT)


def head(query: DnsQuery, flags: int, code: int, answers: int, authorities: int, extra: int) -> bytes:
    """Header of an answer without its id, and the question. `extra` is without the OPT record."""
    kept = query.flags & (RD | CD)
    counts = (1, answers, authorities, extra + query.has_edns)
    return struct.pack("!HHHHH", QR | kept | flags | (code & 0xF), *counts) + query.question


def tail(query: DnsQuery, code: int = 0) -> bytes:
    """The OPT record, if the query had one."""
    if not query.has_edns:
        return b""
    return _OPT_BADVERS if code == Code.BADVERS else _OPT


def fault(packet: bytes, code: Code) -> bytes:
    """An answer to an unreadable message: only a header."""
    id_, flags = struct.unpack_from("!HH", packet)
    return _HEADER.pack(id_, QR | (flags & (_OPCODE | RD | CD)) | code, 0, 0, 0, 0)
