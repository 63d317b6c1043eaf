"""What peers say, made at random: conversations that are valid, and the same spoiled. A seed says it all."""

from __future__ import annotations

from functools import lru_cache
from random import Random
from typing import Final

import hpack

from serving.h2 import frames
from serving.h2.frames import frame

_NAMES: Final = (b"x-trace", b"authorization", b"grpc-timeout", b"cookie", b"te", b"host", b"content-type", b"Upper")
_VALUES: Final = (b"", b"1", b"trailers", b"x", b"Bearer " + b"t" * 60, b"v" * 900, b" space", b"application/grpc")
_STATUSES: Final = (b"200", b"100", b"103", b"204", b"404", b"abc")
_huffman: Final = lru_cache(64)(hpack.Encoder().huffman_coder.encode)


class Talk:
    """One side of an HTTP/2 connection, frame by frame; mostly as the RFC has it."""

    def __init__(self, rng: Random, *, is_server: bool) -> None:
        self._rng, self._is_server = rng, is_server
        self._encoder = hpack.Encoder()
        self._next_id = 1
        self._open: list[int] = []

    def frames(self) -> list[bytes]:
        """The whole conversation, from the greeting."""
        rng = self._rng
        first = b"" if self._is_server else frames.PREFACE
        said = [first + frames.settings(self._settings())]
        if self._is_server:
            self._open, self._next_id = [1, 3, 5, 7], 9
        says = (
            *((self._headers, 5), (self._data, 5), (self._trailers, 1), (self._reset, 1), (self._window, 2)),
            *(
                (self._ping, 1),
                (self._more_settings, 1),
                (self._priority, 1),
                (self._goaway, 0.2),
                (self._strange, 0.3),
            ),
        )
        kinds, weights = [kind for kind, _ in says], [weight for _, weight in says]
        return said + [kind() for kind in rng.choices(kinds, weights, k=rng.randrange(1, 14))]

    def _stream(self) -> int:
        return self._rng.choice(self._open) if self._open else self._next_id

    def _settings(self) -> dict[int, int]:
        rng = self._rng
        chosen = {1: 4_096, 2: 0, 3: 100, 4: rng.choice((0, 1, 100, 65_535, 1 << 20)), 5: 16_384, 6: 8_192, 99: 1}
        return {name: chosen[name] for name in rng.sample([*chosen], rng.randrange(4))}

    def _headers(self) -> bytes:
        rng = self._rng
        if self._is_server:
            stream_id = self._stream()
            pairs = [(b":status", rng.choices(_STATUSES, (20, 1, 1, 1, 1, 0.2))[0])]
        else:
            stream_id, self._next_id = self._next_id, self._next_id + 2 * rng.choice((1, 1, 1, 2))
            self._open.append(stream_id)
            method = rng.choice((b"POST", b"GET"))
            pairs = [(b":method", method), (b":scheme", b"http"), (b":path", b"/a"), (b":authority", b"x")]
        pairs += [(rng.choice(_NAMES[:5]), rng.choice(_VALUES[1:6:2])) for _ in range(rng.randrange(4))]
        if rng.random() < 0.2:
            pairs.append((b"content-length", b"%d" % rng.randrange(5)))
        return self._block(stream_id, pairs, end=rng.random() < 0.5)

    def _trailers(self) -> bytes:
        return self._block(self._stream(), [(b"grpc-status", b"0")], end=True)

    def _block(self, stream_id: int, pairs: list[tuple[bytes, bytes]], *, end: bool) -> bytes:
        rng = self._rng
        if rng.random() < 0.1:
            self._encoder.header_table_size = rng.choice((0, 100, 4_096))
        block = self._encoder.encode(pairs, huffman=rng.random() < 0.5)
        flags, before, behind = frames.END_STREAM if end else 0, b"", b""
        if rng.random() < 0.15:
            flags, before = flags | frames.WITH_PRIORITY, rng.choice((b"\0\0\0\0\x10", b"\x80\0\0\1\x10"))
        if rng.random() < 0.15:
            behind = bytes(rng.randrange(9))
            flags, before = flags | frames.PADDED, bytes((len(behind),)) + before
        if rng.random() < 0.7:
            return frame(frames.HEADERS, flags | frames.END_HEADERS, stream_id, before + block + behind)
        cuts = sorted(rng.choices(range(len(block) + 1), k=rng.randrange(1, 4)))
        parts = [block[i:j] for i, j in zip([0, *cuts], [*cuts, len(block)], strict=True)]
        said = [frame(frames.HEADERS, flags, stream_id, before + parts[0] + behind)]
        said += [frame(frames.CONTINUATION, 0, stream_id, part) for part in parts[1:-1]]
        return b"".join(said) + frame(frames.CONTINUATION, frames.END_HEADERS, stream_id, parts[-1])

    def _data(self) -> bytes:
        rng, flags, before, behind = self._rng, 0, b"", b""
        if rng.random() < 0.2:
            behind = bytes(rng.randrange(9))
            flags, before = frames.PADDED, bytes((len(behind),))
        stream_id = self._stream()
        if rng.random() < 0.3:
            flags |= frames.END_STREAM
            if stream_id in self._open:
                self._open.remove(stream_id)
        return frame(frames.DATA, flags, stream_id, before + bytes(rng.choice((0, 1, 3, 100))) + behind)

    def _reset(self) -> bytes:
        stream_id = self._stream()
        if stream_id in self._open and self._rng.random() < 0.8:
            self._open.remove(stream_id)
        return frames.reset(stream_id, self._rng.randrange(16))

    def _window(self) -> bytes:
        return frames.window_update(self._rng.choice((0, self._stream())), self._rng.choice((1, 100, 65_535)))

    def _ping(self) -> bytes:
        return frame(frames.PING, self._rng.randrange(2), 0, self._rng.randbytes(8))

    def _more_settings(self) -> bytes:
        return frames.settings(self._settings()) if self._rng.random() < 0.7 else frame(frames.SETTINGS, 1, 0)

    def _priority(self) -> bytes:
        return frame(frames.PRIORITY, 0, self._stream(), b"\0\0\0\0\x10")

    def _goaway(self) -> bytes:
        return frames.goaway(self._stream(), self._rng.randrange(14), "why")

    def _strange(self) -> bytes:
        rng = self._rng
        return frame(rng.randrange(10, 256), rng.randrange(256), rng.randrange(8), rng.randbytes(rng.randrange(9)))


def spoiled(rng: Random, said: list[bytes], others: list[bytes]) -> bytes:
    """The same conversation with some frames lost, doubled, swapped or foreign, and some bytes changed."""
    said = [*said]
    for _ in range(rng.choice((0, 0, 1, 2))):
        i, j = rng.randrange(len(said)), rng.randrange(len(said))
        how = rng.randrange(4)
        if how == 0:
            said[i], said[j] = said[j], said[i]
        elif how == 1:
            said.insert(i, said[j])
        elif how == 2:
            said.insert(i + 1, rng.choice(others))
        elif len(said) > 1:
            del said[i]
    return spoiled_bytes(rng, b"".join(said))


def spoiled_bytes(rng: Random, said: bytes) -> bytes:
    """The same with up to three changes, none now and then."""
    data = bytearray(said)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        at = int(rng.random() * (len(data) + 1))
        how = rng.randrange(6)
        if how == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, 13, 10, 32))
        elif how == 2:
            del data[at : at + rng.choice((1, 1, 4, 9))]
        elif how == 3:
            data[at:at] = rng.randbytes(rng.choice((1, 1, 2, 9)))
        elif how == 4:
            data[at:at] = data[at : at + rng.choice((1, 9, 30))]
        elif rng.random() < 0.2:
            del data[at:]
    return bytes(data)


# --- header blocks -------------------------------------------------------------------------------------------


def spoiled_block(rng: Random) -> bytes:
    """A header block of pieces that mean something, or nearly."""
    return b"".join([_field(rng) for _ in range(rng.randrange(1, 6))])


def _field(rng: Random) -> bytes:
    how = rng.random()
    if how < 0.3:
        return bytes((0x80 | rng.choice((rng.randrange(128), rng.randrange(62, 70))),))
    if how < 0.45:
        return bytes((0x40 | rng.randrange(64),)) + _string(rng)
    if how < 0.7:
        return rng.choice((b"\x40", b"\x40", b"\0", b"\x10")) + _string(rng) + _string(rng)
    if how < 0.8:
        return rng.choice(
            (bytes((0x20 | rng.randrange(32),)), b"\x3f" + bytes((rng.randrange(256), rng.randrange(32))))
        )
    if how < 0.9:
        return bytes((rng.choice((0xFF, 0x7F, 0x3F, 0x1F, 0x0F)), *rng.choices((0, 1, 31, 127, 128, 255), k=3)))
    return rng.randbytes(rng.randrange(4))


def _string(rng: Random) -> bytes:
    text, coded = rng.choice((*_NAMES, *_VALUES)), 0
    if rng.random() < 0.5:
        text, coded = _huffman(text) if rng.random() < 0.8 else rng.randbytes(rng.randrange(6)), 0x80
    length = hpack.hpack.encode_integer(len(text), 7)
    return bytes((length[0] | coded,)) + bytes(length[1:]) + text


# --- HTTP/1.1 ------------------------------------------------------------------------------------------------

_LINES: Final = (b"x-a: 1", b"cookie: b", b"connection: close", b"connection: keep-alive", b"expect: 100-continue")
_ODD_LINES: Final = (
    *(b"Host: y", b"transfer-encoding: gzip, chunked", b"transfer-encoding : chunked", b"content-length: 3", b" fold"),
    *(
        b"content-length: +3",
        b"content-length: 3, 3",
        b"upgrade: websocket\r\nconnection: upgrade",
        b"a: b\nc: d",
        b":",
    ),
)


def http1(rng: Random) -> bytes:
    """Some requests on one connection, as RFC 9112 has them, but for a line now and then."""
    return b"".join([_request(rng) for _ in range(rng.randrange(1, 4))])


def _request(rng: Random) -> bytes:
    target = rng.choices((b"/a", b"/a?b=c", b"*", b"http://x/a", b"http://y", b"a:1"), (9, 3, 1, 1, 1, 1))[0]
    method = rng.choices((b"POST", b"GET", b"OPTIONS", b"HEAD", b"CONNECT", b"PRI"), (9, 5, 2, 1, 0.3, 0.3))[0]
    version = rng.choices((b"1.1", b"1.0", b"2.0", b"0.9"), (20, 2, 0.3, 0.3))[0]
    lines = [method + b" " + target + b" HTTP/" + version, b"host: x"]
    lines += [rng.choice(_LINES) for _ in range(rng.randrange(3))]
    lines += [rng.choice(_ODD_LINES)] if rng.random() < 0.15 else []
    body, how = rng.randbytes(rng.choice((0, 1, 3, 20))), rng.randrange(3)
    if how == 1:
        lines.append(b"content-length: %d" % len(body))
    elif how == 2:
        lines.append(b"transfer-encoding: chunked")
        parts = [body[i : i + 7] for i in range(0, len(body), 7)]
        ext, trailer = rng.choice((b"", b"", b";a=b")), rng.choice((b"", b"", b"authorization: trailing\r\n"))
        body = b"".join([b"%x%b\r\n%b\r\n" % (len(part), ext, part) for part in parts]) + b"0\r\n" + trailer + b"\r\n"
    else:
        body = b""
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
