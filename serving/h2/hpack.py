"""Header blocks (RFC 7541): decoded with the dynamic table that the peer fills, encoded without any.

A field is looked at once, when it is read or enters the table; whoever refers to it later gets the same verdict.
Nothing is remembered by the bytes of a block: what they mean depends on the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from serving.h2 import huffman
from serving.h2.huffman import HpackError

REGULAR: Final = 0
PSEUDO: Final = 1
REFUSED: Final = 2  # no request or answer may hold it
LOOSE: Final = 3  # white space around the value, which gRPC lets a server take away

Field = tuple[bytes, bytes, int, int]
"""Name, value, kind, and its size as RFC 7541 counts it: 32 bytes more than both."""

_OVERHEAD: Final = 32
_NAME: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_HOP: Final = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"))

# fmt: off
_STATIC_TEXT: Final = (
    ":authority", ":method GET", ":method POST", ":path /", ":path /index.html", ":scheme http", ":scheme https",
    ":status 200", ":status 204", ":status 206", ":status 304", ":status 400", ":status 404", ":status 500",
    "accept-charset", "accept-encoding gzip, deflate", "accept-language", "accept-ranges", "accept",
    "access-control-allow-origin", "age", "allow", "authorization", "cache-control", "content-disposition",
    "content-encoding", "content-language", "content-length", "content-location", "content-range", "content-type",
    "cookie", "date", "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match",
    "if-range", "if-unmodified-since", "last-modified", "link", "location", "max-forwards", "proxy-authenticate",
    "proxy-authorization", "range", "referer", "refresh", "retry-after", "server", "set-cookie",
    "strict-transport-security", "transfer-encoding", "user-agent", "vary", "via", "www-authenticate",
)
# fmt: on


@lru_cache(4_096)
def _kind_of_name(name: bytes) -> int:
    if name[:1] == b":":
        return PSEUDO
    return REFUSED if name in _HOP or not _NAME.fullmatch(name) else REGULAR


def field(name: bytes, value: bytes) -> Field:
    """The field with the verdict on it."""
    kind = _kind_of_name(name)
    if not value.isalnum():  # most values that never repeat are letters and digits: times, lengths
        if b"\0" in value or b"\r" in value or b"\n" in value:
            kind = REFUSED
        elif value != value.strip(b" \t"):
            kind = LOOSE if kind == REGULAR else REFUSED
    if name == b"te" and value != b"trailers":
        kind = REFUSED
    return name, value, kind, len(name) + len(value) + _OVERHEAD


_STATIC: Final = ((b"", b"", REFUSED, 0), *(field(*text.encode().partition(b" ")[::2]) for text in _STATIC_TEXT))
_DYNAMIC: Final = len(_STATIC)  # the first index into the dynamic table: its newest field


class HpackDecoder:
    """The peer's side of the compression of one connection; blocks must be decoded in the order in which they came."""

    def __init__(self, most_table_bytes: int = 4_096) -> None:
        """`most_table_bytes`: what our settings allow the peer's table to hold; `table_bytes`: what it does hold."""
        self._fields: list[Field] = []  # the newest is the last
        self.table_bytes = 0
        self._limit = self._most = most_table_bytes

    def decode(self, block: bytes, most_bytes: int) -> tuple[list[Field], int]:
        """The fields and their size; of more than `most_bytes` the rest is left out, but counted. Raises HpackError."""
        try:
            return self._decode(block, most_bytes)
        except IndexError:
            raise HpackError("the block ends within a field, or names one that is not in the table") from None

    def _decode(self, block: bytes, most_bytes: int) -> tuple[list[Field], int]:
        found: list[Field] = []
        size, at, end, dynamic = 0, 0, len(block), self._fields
        while at < end:
            first = block[at]
            at += 1
            if first >= 0x80:
                index = first & 0x7F
                if index == 0x7F:
                    index, at = _more(block, at, index)
                one = _STATIC[index] if index < _DYNAMIC else dynamic[_DYNAMIC - 1 - index]
                if not index:
                    raise HpackError("index 0 is not valid")
            elif first & 0xE0 == 0x20:
                if size:
                    raise HpackError("a table size update after a field")
                at = self._resize(block, at, first & 0x1F)
                continue
            else:
                one, at = self._literal(block, at, first)
            size += one[3]
            if size <= most_bytes:
                found.append(one)
        return found, size

    def _literal(self, block: bytes, at: int, first: int) -> tuple[Field, int]:
        mask = 0x3F if first & 0x40 else 0x0F
        index = first & mask
        if index == mask:
            index, at = _more(block, at, index)
        if not index:
            name, at = _string(block, at)
        else:
            name = _STATIC[index][0] if index < _DYNAMIC else self._fields[_DYNAMIC - 1 - index][0]
        value, at = _string(block, at)
        one = field(name, value)
        if mask == 0x3F:
            self._fields.append(one)
            self.table_bytes += one[3]
            if self.table_bytes > self._limit:
                self._evict()
        return one, at

    def _evict(self) -> None:
        gone = 0
        while self.table_bytes > self._limit:
            self.table_bytes -= self._fields[gone][3]
            gone += 1
        del self._fields[:gone]

    def _resize(self, block: bytes, at: int, limit: int) -> int:
        if limit == 0x1F:
            limit, at = _more(block, at, limit)
        if limit > self._most:
            raise HpackError(f"a table size update to {limit} bytes; at most {self._most} are allowed")
        self._limit = limit
        self._evict()
        return at


def _more(block: bytes, at: int, value: int) -> tuple[int, int]:
    """An integer whose first bits are all ones: the rest of it, and where it ends."""
    for shift in range(0, 28, 7):
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise HpackError("an integer is too large")


def _string(block: bytes, at: int) -> tuple[bytes, int]:
    first = block[at]
    at += 1
    length = first & 0x7F
    if length == 0x7F:
        length, at = _more(block, at, length)
    end = at + length
    text = block[at:end]
    if len(text) < length:
        raise HpackError("the block ends within a string")
    return huffman.decode(text) if first & 0x80 else text, end


_WHOLE: Final = {(name, value): index for index, (name, value, _, _) in enumerate(_STATIC) if value}
_NAMES: Final = {name: index for index, (name, _, _, _) in reversed([*enumerate(_STATIC)]) if name}


def encode(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A block that any decoder reads, whatever its table holds: nothing enters the table, or comes from it."""
    parts = bytearray()
    for name, value in fields:
        if index := _WHOLE.get((name, value)):
            parts.append(0x80 | index)
            continue
        if index := _NAMES.get(name):
            parts += _encode_integer(index, 0x0F)
        else:
            parts += b"\0" + _encode_integer(len(name), 0x7F) + name
        parts += _encode_integer(len(value), 0x7F) + value
    return bytes(parts)


def _encode_integer(value: int, mask: int) -> bytes:
    if value < mask:
        return bytes((value,))
    parts = bytearray((mask,))
    value -= mask
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
