"""Lists of headers as requests, answers and trailers: what RFC 9113, 8 allows in each."""

from __future__ import annotations

from typing import Final

from serving.h2.frames import StreamFault
from serving.h2.hpack import LOOSE, PSEUDO, REFUSED, REGULAR, Field
from serving.head import AmbiguousHead, Head, join_repeated

_DIGITS: Final = 15  # of a content-length: more is no length of anything


def request(fields: list[Field]) -> Head:
    """Raises StreamFault, AmbiguousHead."""
    pseudo: dict[bytes, bytes] = {}
    named: dict[bytes, bytes] = {}
    for name, value, kind, _ in fields:
        if not kind:  # REGULAR
            named[name] = value
        elif kind == LOOSE:
            return request([(n, v.strip(b" \t"), REGULAR, s) if k == LOOSE else (n, v, k, s) for n, v, k, s in fields])
        elif kind == REFUSED or named or name in pseudo:
            raise StreamFault("a header that requests may not have, a duplicate, or a pseudo-header after the others")
        else:
            pseudo[name] = value
    method, target = pseudo.get(b":method"), pseudo.get(b":path")
    authority, host = pseudo.get(b":authority", b""), named.get(b"host")
    if not method or not target or b":scheme" not in pseudo or len(pseudo) > 3 + (b":authority" in pseudo):
        raise StreamFault("a request needs :method, :scheme and :path, and no other pseudo-header but :authority")
    if method == b"CONNECT" or (target[0] != 0x2F and (target, method) != (b"*", b"OPTIONS")):
        raise StreamFault("a request needs a path; CONNECT is not supported")
    head = Head(method, target, authority or host or b"", fields, named)
    if len(named) + len(pseudo) != len(fields) or (host is not None and host != head.authority):
        _disambiguate(head)
    return head


def _disambiguate(head: Head) -> None:
    """Where names repeat, or a host stands beside another authority. Raises AmbiguousHead."""
    join_repeated(head)
    if head.named.get(b"host", head.authority) != head.authority:
        raise AmbiguousHead("the headers host and :authority differ", head)


def response(fields: list[Field]) -> Head:
    """Raises StreamFault."""
    if not fields or fields[0][0] != b":status":
        raise StreamFault("a response must begin with :status")
    status = fields[0][1]
    if len(status) != 3 or not status.isdigit():
        raise StreamFault("the status is not a number of three digits")
    regular = trailers(fields[1:])
    head = Head(b"", b"", b"", regular, dict(regular), int(status))
    if len(head.named) != len(regular):
        try:
            join_repeated(head)
        except AmbiguousHead as error:
            raise StreamFault(str(error)) from None
    return head


def trailers(fields: list[Field]) -> list[tuple[bytes, bytes]]:
    """Raises StreamFault."""
    if any(kind in (PSEUDO, REFUSED) for _, _, kind, _ in fields):
        raise StreamFault("a header is not allowed here")
    return [(name, value) for name, value, _, _ in fields]


def content_length(head: Head) -> int:
    """Of a head that has one. Raises StreamFault: it is not a length."""
    value = head.named[b"content-length"]
    if not value.isdigit() or len(value) > _DIGITS:
        raise StreamFault("content-length is not a length")
    return int(value)
