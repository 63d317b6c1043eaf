"""The protobuf wire format, read only as far as needed: the places of fields in a message that stays encoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
_FIXED_BYTES: Final = {FIXED64: 8, FIXED32: 4}


class Malformed(ValueError):
    """These bytes are not a valid message."""


class Field(NamedTuple):
    """One field of a message: data[at:end] with its tag, data[value_at:end] without tag and length.

    Attributes:
        number: the field's number.
        kind: its wire type.
        value: of a varint; 0 otherwise.
    """

    number: int
    kind: int
    at: int
    value_at: int
    end: int
    value: int = 0


def fields(data: bytes, at: int = 0, end: int = -1) -> Iterator[Field]:
    """The fields of the message in data[at:end], in their encoded order. Groups are not part of proto3.

    Raises:
        Malformed: it ends in the middle of a field, or has a wire type that proto3 lacks.
    """
    end = len(data) if end < 0 else end
    while at < end:
        tag, value_at = varint(data, at, end)
        kind, value = tag & 7, 0
        if kind == DELIMITED:
            length, value_at = varint(data, value_at, end)
            stop = value_at + length
        elif kind == VARINT:
            value, stop = varint(data, value_at, end)
        elif kind in _FIXED_BYTES:
            stop = value_at + _FIXED_BYTES[kind]
        else:
            raise Malformed(f"wire type {kind} at byte {at}")
        if stop > end or tag < 8:
            raise Malformed(f"the field at byte {at} does not fit")
        yield Field(tag >> 3, kind, at, value_at, stop, value)
        at = stop


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at an offset, and the offset after it. Raises Malformed."""
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Malformed(f"the varint before byte {at} does not end")


def encoded_varint(value: int) -> bytes:
    """A non-negative number as the wire format writes it."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited_field(number: int, payload: bytes) -> bytes:
    """A field that holds bytes, a string or a message; only for numbers below 16."""
    size = len(payload)
    if size < 0x80:  # almost always
        return bytes((number << 3 | DELIMITED, size)) + payload
    return bytes((number << 3 | DELIMITED,)) + encoded_varint(size) + payload
