"""gzip, with bounds: on what may come out of a small input, and on how long the event loop is kept."""

from __future__ import annotations

import asyncio
import zlib
from typing import Final

from serving.errors import TooLarge, invalid

_GZIP: Final = 16 + zlib.MAX_WBITS
_WINDOW_BYTES: Final = 4 * 1024  # of the input at once
_LONG_BYTES: Final = 256 * 1024  # takes milliseconds: done in a thread, where zlib lets go of the interpreter


async def compress(data: bytes, level: int) -> bytes:
    """The data as one gzip member."""
    if len(data) < _LONG_BYTES:
        return compress_sync(data, level)
    return await asyncio.to_thread(compress_sync, data, level)


async def decompress(data: bytes, max_bytes: int) -> bytes:
    """The contents of the gzip members in `data`. Empty stays empty, as in the Connect protocol.

    Raises:
        InvalidRequest: it is not gzip, or cut short.
        TooLarge: more than `max_bytes` would come out; no more than that was ever in memory.
    """
    if not data:
        return data
    return await asyncio.to_thread(decompress_sync, data, max_bytes)


def compress_sync(data: bytes, level: int) -> bytes:
    """`compress`, in this thread."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP)
    return compressor.compress(data) + compressor.flush()


def decompress_sync(data: bytes, max_bytes: int) -> bytes:
    """`decompress`, in this thread."""
    parts: list[bytes] = []
    left_bytes = max_bytes
    at = 0
    while at < len(data):
        member = zlib.decompressobj(_GZIP)
        while not member.eof:
            if at >= len(data):
                raise invalid("", "the gzip data is truncated")
            part, at = _some(member, data, at, left_bytes + 1)
            left_bytes -= len(part)
            if left_bytes < 0:
                raise TooLarge(f"the message has more than {max_bytes} bytes after decompression")
            parts.append(part)
    return b"".join(parts)


def _some(member: zlib._Decompress, data: bytes, at: int, max_bytes: int) -> tuple[bytes, int]:
    """The contents of the next bytes of a member, and where the unread ones begin."""
    # zlib copies what follows a member: to copy all of the rest for each of thousands of small ones would take minutes.
    fed = data[at : at + _WINDOW_BYTES]
    try:
        part = member.decompress(fed, max_bytes)
    except zlib.error as error:
        raise invalid("", f"the body is not valid gzip: {error}") from error
    return part, at + len(fed) - len(member.unused_data)
