"""docs/security.md lists what two parsers could read differently: each row is made here, and is refused."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from serving.h2 import frames, hpack
from serving.h2.frames import ErrorCode
from serving.limiting.admission import Admission
from tests.support.h2_peer import Pairs, data
from tests.wire.fake_table import GET
from tests.wire.raw_http import RawHttp, still_answers

PAGE: Final = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text()
CHUNKED: Final = b"transfer-encoding: chunked\r\n"
END: Final = b"0\r\n\r\n"


def post(*lines: bytes, body: bytes = b"", host: bytes = b"host: x\r\n", version: bytes = b"1.1") -> bytes:
    first = b"POST /%s HTTP/%s\r\n" % (GET.encode(), version)
    return first + host + b"content-type: application/json\r\n" + b"".join(lines) + b"\r\n" + body


def length(value: bytes, body: bytes = b"{}") -> bytes:
    return post(b"content-length: " + value + b"\r\n", body=body)


def coding(value: bytes) -> bytes:
    return post(b"transfer-encoding: " + value + b"\r\n", body=END)


def get(target: bytes, version: bytes = b"HTTP/1.1", method: bytes = b"GET") -> bytes:
    return method + b" " + target + b" " + version + b"\r\nhost: x\r\n\r\n"


TWO: Final = b"content-length: 2\r\n"
SINGLE: Final = (
    "several headers of a kind that has one value, equal ones too: Authorization, Content-Type, Origin, User-Agent and "
    "others of RFC 9110"
)
SINGLES: Final = [(b"authorization", b"x"), (b"content-type", b"application/json"), (b"origin", b"a"), (b"range", b"x")]
H1: Final[dict[str, list[bytes]]] = {
    "Content-Length beside Transfer-Encoding": [post(TWO, CHUNKED, body=END), post(CHUNKED, TWO, body=END)],
    "several Content-Length, equal ones too, or a list of them": [
        post(TWO, TWO, body=b"{}"),
        post(TWO, b"content-length: 3\r\n", body=b"{}"),
        length(b"2, 2"),
    ],
    "a Content-Length that is not made of digits alone, or beyond any size": [
        *map(length, (b"+2", b"-2", b"0x2", b"two", b"", b"2 2")),
        length(b"9" * 20),
    ],
    "any Transfer-Encoding but one `chunked`": [
        *map(coding, (b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"identity", b"xchunked", b"")),
        coding(b"\x0bchunked"),
        post(CHUNKED, CHUNKED, body=END),
    ],
    "Transfer-Encoding in HTTP/1.0": [post(CHUNKED, body=END, version=b"1.0")],
    "a size of a chunk that is not made of hexadecimal digits alone": [
        post(CHUNKED, body=size + b"\r\nx\r\n" + END)
        for size in (b"0x1", b"-1", b"+1", b" 1", b"1 ", b"", b"1g", b"1" * 17)
    ],
    "a chunk that is not as long as it said, or ends otherwise than by CR LF": [
        post(CHUNKED, body=chunk + END) for chunk in (b"1\r\nxy\r\n", b"1\r\nx\n", b"1\nx\r\n")
    ],
    "no Host in HTTP/1.1, or several": [
        post(TWO, host=b"", body=b"{}"),
        post(b"host: x\r\n", TWO, body=b"{}"),
        post(b"Host: y\r\n", TWO, body=b"{}"),
    ],
    SINGLE: [post(b"%s: %s\r\n" % pair, b"%s: x\r\n" % pair[0], TWO, body=b"{}") for pair in SINGLES],
    "a target that is neither a path nor a URL of that Host": [
        *map(get, (b"http://y/a", b"ftp://x/a", b"http:///a", b"x:80", b"a", b"*", b"http://[x/a")),
    ],
    "lines that end with LF or CR alone": [
        post(TWO, body=b"{}").replace(b"\r\n", b"\n"),
        post(b"a: b\nc: d\r\n", TWO, body=b"{}"),
        post(b"a: b\rc: d\r\n", TWO, body=b"{}"),
    ],
    "NUL and other control characters in a header": [
        post(b"a: b" + one + b"c\r\n", TWO, body=b"{}") for one in (b"\0", b"\x01", b"\x7f")
    ],
    "a folded header": [post(b"a: b\r\n c: d\r\n", TWO, body=b"{}"), post(b"a: b\r\n\tc\r\n", TWO, body=b"{}")],
    "a header without a name, or with white space in or behind its name": [
        post(line, TWO, body=b"{}") for line in (b": c\r\n", b"a b: c\r\n", b"a : c\r\n", b"a\t: c\r\n", b" a: c\r\n")
    ],
    "a body with Upgrade": [
        post(b"connection: upgrade\r\nupgrade: websocket\r\n", TWO, body=b"{}"),
        post(b"connection: upgrade\r\nupgrade: h2c\r\n", CHUNKED, body=END),
    ],
    "CONNECT": [get(b"x:443", method=b"CONNECT"), get(b"/livez", method=b"CONNECT")],
    "a version other than HTTP/1.0 and HTTP/1.1": [
        get(b"/livez", version) for version in (b"HTTP/0.9", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/11", b"HTTPS/1.1")
    ],
}

STATUSES: Final = {hpack.encode([(b":status", b"%d" % status)]): status for status in (200, 400)}
START: Final[Pairs] = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/" + GET.encode())]
JSON: Final = (b"content-type", b"application/json")
HEAD: Final[Pairs] = [*START, (b":authority", b"x"), JSON]


def without(name: bytes) -> Pairs:
    return [pair for pair in HEAD if pair[0] != name]


def asked(head: Pairs, *more: bytes, end: bool = True) -> bytes:
    flags = frames.END_HEADERS | (frames.END_STREAM if end else 0)
    return frames.frame(frames.HEADERS, flags, 1, hpack.encode(head)) + b"".join(more)


def with_(*pairs: tuple[bytes, bytes]) -> bytes:
    return asked([*HEAD, *pairs])


def trailing(pairs: Pairs, *, end: bool = True) -> bytes:
    return asked(HEAD, data(1, b"{}"), asked(pairs, end=end), end=False)


H2: Final[dict[str, list[bytes]]] = {
    "headers of the connection: `connection`, `keep-alive`, `proxy-connection`, `transfer-encoding`, `upgrade`, "
    "`te` but for `trailers`": [
        with_((name, value))
        for name, value in (
            (b"connection", b"close"),
            (b"keep-alive", b"5"),
            (b"proxy-connection", b"close"),
            (b"transfer-encoding", b"chunked"),
            (b"upgrade", b"h2c"),
            (b"te", b"gzip"),
        )
    ],
    "upper case and other characters that are none of names": [
        with_((name, b"x")) for name in (b"Host", b"a b", b"a\r\nb", b"a:b", b"", b"\xc3\xa4")
    ],
    "CR, LF and NUL in a value": [with_((b"a", value)) for value in (b"b\rc", b"b\nc", b"b\0c", b"b\r\nhost: y")],
    "a pseudo-header that is missing, comes twice, is not known, or comes behind others": [
        *(asked(without(name)) for name in (b":method", b":scheme", b":path")),
        *(with_((name, b"x")) for name in (b":method", b":path", b":protocol", b":status")),
        asked([*START, (b"a", b"b"), (b":authority", b"x")]),
        asked([START[0], *HEAD]),
    ],
    "a path that does not begin with a slash": [
        asked([*without(b":path")[:2], (b":path", path), (b":authority", b"x")])
        for path in (b"", b"a", b"*", b"http://x/a")
    ],
    "CONNECT over HTTP/2": [
        asked([(b":method", b"CONNECT"), (b":authority", b"x:443")]),
        asked([(b":method", b"CONNECT"), *HEAD[1:]]),
    ],
    "a content-length that is none": [
        with_((b"content-length", value)) for value in (b"+0", b"-1", b"0x0", b"", b"0,0", b"9" * 20)
    ],
    "a body of another length than it said": [
        with_((b"content-length", b"1")),
        asked([*HEAD, (b"content-length", b"1")], data(1, b"{}", end=True), end=False),
        asked([*HEAD, (b"content-length", b"3")], data(1, b"{}", end=True), end=False),
    ],
    "trailers with pseudo-headers, or that do not end the request": [
        trailing([(b":path", b"/b")]),
        trailing([(b"a", b"b")], end=False),
    ],
}

H2_ANSWERED: Final[dict[str, list[bytes]]] = {
    "`:authority` that is not Host, or several Hosts": [
        with_((b"host", b"y")),
        *(asked([*START, (b"host", b"x"), (b"host", second)]) for second in (b"x", b"y")),
        with_((b"host", b"x"), (b"host", b"y")),
    ],
    "several content-length, equal ones too": [
        with_((b"content-length", b"0"), (b"content-length", second)) for second in (b"0", b"1")
    ],
    SINGLE: [with_(pair, (pair[0], b"x")) for pair in SINGLES],
}


def _rows(before: str) -> list[str]:
    """The list behind these words of the page."""
    found = re.search(re.escape(before) + r".*?:\n\n((?:- .*\n)+)", PAGE)
    assert found is not None
    return [line.removeprefix("- ") for line in found[1].splitlines()]


def test_the_page_lists_what_is_made_here_and_nothing_else() -> None:
    assert _rows("Over HTTP/1.1 each of these is a 400, and the connection is closed") == [*H1]
    assert _rows("Over HTTP/2 the stream is reset, and the connection goes on") == [*H2]
    assert _rows("Over HTTP/2 each of these is a 400, and the connection goes on") == [*H2_ANSWERED]


@pytest.mark.parametrize("row", H1)
async def test_an_ambiguous_request_over_http_1_is_a_400_and_nothing_behind_it_is_read(
    http: RawHttp, admission: Admission, row: str
) -> None:
    for said in H1[row]:
        async with http.connect() as connection:
            await connection.send(said + get(b"/livez"))
            assert (await connection.answer()).status == 400, said
            assert await connection.hung_up(), said
    assert admission.refused == {"malformed_http": len(H1[row])}
    assert await still_answers(http)


@pytest.mark.parametrize("row", H2)
async def test_an_ambiguous_request_over_http_2_has_its_stream_reset_and_others_are_served(
    http: RawHttp, row: str
) -> None:
    for said in H2[row]:
        assert await _over_h2(http.port, said) == [(1, ErrorCode.PROTOCOL_ERROR), (3, 200)], said


@pytest.mark.parametrize("row", H2_ANSWERED)
async def test_an_ambiguous_request_over_http_2_is_a_400_and_others_are_served(
    http: RawHttp, admission: Admission, row: str
) -> None:
    for said in H2_ANSWERED[row]:
        assert await _over_h2(http.port, said) == [(1, 400), (3, 200)], said
    assert admission.refused == {"malformed_http": len(H2_ANSWERED[row])}


async def _over_h2(port: int, said: bytes) -> Sequence[tuple[int, int]]:
    """How the stream ended that is asked about, and then one that is plain."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    plain = hpack.encode([(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/livez"), (b":authority", b"x")])
    last = frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 3, plain)
    writer.write(frames.PREFACE + frames.settings({}) + said + last)
    found = list[tuple[int, int]]()
    try:
        while len(found) < 2:
            high, low, kind, _, stream_id = frames.FRAME.unpack(await reader.readexactly(frames.HEADER_BYTES))
            payload = await reader.readexactly(high << 8 | low)
            if kind == frames.RST_STREAM:
                found.append((stream_id, int.from_bytes(payload, "big")))
            elif kind == frames.HEADERS:
                found.append((stream_id, STATUSES.get(payload[:1], 0)))
            elif kind == frames.GOAWAY:
                found.append((0, int.from_bytes(payload[4:8], "big")))
    finally:
        writer.close()
    return sorted(found)
