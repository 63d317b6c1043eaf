"""Messages, each after five bytes (flags, length), as gRPC and Connect's streams have them."""

from __future__ import annotations

import struct
from typing import Final

from serving.encoding import gzipping
from serving.errors import TooLarge, invalid
from serving.protocol_errors import UnexpectedCompression

PREFIX_BYTES: Final = 5
COMPRESSED: Final = 0b01
END_OF_STREAM: Final = 0b10  # of the Connect protocol
PREFIX: Final = struct.Struct(">BL")

Message = tuple[bool, bytes]
"""Whether it is compressed, and the message."""


class Envelopes:
    """The messages of one request, which comes in any pieces."""

    __slots__ = ("_held", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._held = bytearray()

    def take(self, chunk: bytes, *, end: bool) -> list[Message]:
        """The messages that have become complete.

        Raises:
            TooLarge: one is over the limit; nothing of it is kept.
            InvalidRequest: flags that are not valid in a request; or it ends within a message.
        """
        self._held += chunk
        found, at, held = [], 0, self._held
        while len(held) - at >= PREFIX_BYTES:
            flags, size = PREFIX.unpack_from(held, at)
            self._check(flags, size)
            start, stop = at + PREFIX_BYTES, at + PREFIX_BYTES + size
            if stop > len(held):
                break
            found.append((bool(flags & COMPRESSED), bytes(held[start:stop])))
            at = stop
        del held[:at]
        if end and held:
            raise invalid("", "the request ends in the middle of a message")
        return found

    def _check(self, flags: int, size: int) -> None:
        if flags & ~COMPRESSED:
            raise invalid("", f"envelope flags {flags:#04x} are not valid in a request")
        if size > self.max_bytes:
            raise TooLarge(f"the message is over the limit of {self.max_bytes} bytes")


def envelope(flags: int, payload: bytes) -> bytes:
    """A message after its five bytes."""
    return PREFIX.pack(flags, len(payload)) + payload


def gunzip(encoding: str, payload: bytes, max_bytes: int) -> bytes:
    """A compressed message. Raises UnexpectedCompression, InvalidRequest, TooLarge."""
    if encoding != "gzip":
        raise UnexpectedCompression("a message is marked compressed, but no header names the encoding")
    return gzipping.decompress_sync(payload, max_bytes)
