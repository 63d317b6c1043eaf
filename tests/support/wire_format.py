"""Protobuf's wire format, read without protobuf and without HQ's own code: what is there, and how often."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message


def fields(encoded: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field in the order of the wire: of length-delimited ones the payload."""
    at = 0
    while at < len(encoded):
        tag, at = _varint(encoded, at)
        start, at = _extent(encoded, at, tag & 7)
        yield tag >> 3, encoded[start:at]


def repeated_singulars(encoded: bytes, kind: type[Message]) -> list[str]:
    """Names of singular fields that occur more than once: decoders disagree on what these mean."""
    known: Any = kind.DESCRIPTOR.fields_by_number
    counts = Counter(number for number, _ in fields(encoded) if number in known)
    return [known[number].name for number, n in counts.items() if n > 1 and not known[number].is_repeated]


def payload(encoded: bytes, number: int) -> bytes:
    """Payload of the one field with this number; empty if it is absent."""
    found = [content for at, content in fields(encoded) if at == number]
    assert len(found) <= 1, f"field {number} occurs {len(found)} times"
    return found[0] if found else b""


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    end = at
    while encoded[end] >= 0x80:
        end += 1
    return sum((encoded[i] & 0x7F) << 7 * (i - at) for i in range(at, end + 1)), end + 1


def _extent(encoded: bytes, at: int, wire_type: int) -> tuple[int, int]:
    if wire_type == 0:
        return at, _varint(encoded, at)[1]
    if wire_type == 2:
        size, at = _varint(encoded, at)
        return at, at + size
    return at, at + {1: 8, 5: 4}[wire_type]
