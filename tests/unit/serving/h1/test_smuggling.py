"""Requests that two parsers of HTTP/1.1 could read differently are refused: a proxy sees the same as we do."""

from __future__ import annotations

import pytest

from serving.h1.machine import BODY, FAULT, HEAD, Http1Machine

CHUNKED = b"transfer-encoding: chunked"
END = b"0\r\n\r\n"


def read(said: bytes) -> list[int]:
    """The kinds of events, after a check that they are the same if the bytes come one by one."""
    whole = [kind for kind, _, _ in Http1Machine(32_768).receive(said)]
    machine = Http1Machine(32_768)
    cut = [kind for i in range(len(said)) for kind, _, _ in machine.receive(said[i : i + 1])]
    assert [kind for kind in whole if kind != BODY] == [kind for kind in cut if kind != BODY]
    return whole


def post(*lines: bytes, body: bytes = b"", host: bytes = b"host: x") -> bytes:
    return b"\r\n".join([b"POST /a HTTP/1.1", *([host] if host else []), *lines]) + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "said",
    [
        post(CHUNKED, b"content-length: 5", body=END),
        post(b"content-length: 5", CHUNKED, body=END),
        post(b"content-length: 5", b"content-length: 5", body=b"01234"),
        post(b"content-length: 5", b"content-length: 6", body=b"01234"),
        post(b"content-length: 5, 5", body=b"01234"),
        post(b"content-length: +5", body=b"01234"),
        post(b"content-length: -5", body=b"01234"),
        post(b"content-length: 0x5", body=b"01234"),
        post(b"content-length:", body=b"01234"),
        post(b"content-length: 99999999999999999999", body=b"01234"),
        post(b"transfer-encoding: gzip, chunked", body=END),
        post(b"transfer-encoding: chunked, gzip", body=END),
        post(b"transfer-encoding: chunked, chunked", body=END),
        post(CHUNKED, CHUNKED, body=END),
        post(b"transfer-encoding: gzip", CHUNKED, body=END),
        post(b"transfer-encoding: identity", body=END),
        post(b"transfer-encoding: xchunked", body=END),
        post(b"transfer-encoding: \x0bchunked", body=END),
        post(b"transfer-encoding : chunked", body=END),
        post(b"transfer-encoding:", body=END),
        post(CHUNKED, body=END).replace(b"HTTP/1.1", b"HTTP/1.0"),
    ],
)
def test_a_body_whose_length_can_be_read_in_two_ways_is_refused(said: bytes) -> None:
    assert read(said) == [FAULT]


@pytest.mark.parametrize(
    "body",
    [
        b"1\nx\n0\n\n",
        b"0x1\r\nx\r\n" + END,
        b"-1\r\nx\r\n" + END,
        b"+1\r\nx\r\n" + END,
        b" 1\r\nx\r\n" + END,
        b"1 \r\nx\r\n" + END,
        b"1\r\nxy\r\n" + END,
        b"10000000000000001\r\nx\r\n" + END,
        b"1\r\nx\n" + END,
        b"\r\n" + END,
    ],
)
def test_malformed_chunks_end_the_connection(body: bytes) -> None:
    assert read(post(CHUNKED, body=body))[-1] == FAULT


@pytest.mark.parametrize(
    "said",
    [
        post(host=b""),
        post(b"host: x"),
        post(b"Host: y"),
        post(b" folded: x"),
        post(b"a: b\r\n\tc"),
        post(b"a: b\nc: d"),
        post(b"a: b\rc: d"),
        post(b"a: b\0c"),
        post(b"a b: c"),
        post(b": c"),
        post(b"a\0: c"),
        post().replace(b"\r\n", b"\n"),
        b"POST /a HTTP/1.1\r\n host: x\r\n\r\n",
        b"POST /a b HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /a\r\nhost: x\r\n\r\n",
        b"G\xc3\x89T /a HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_a_head_that_breaks_the_grammar_or_lacks_a_single_host_is_refused(said: bytes) -> None:
    assert read(said) == [FAULT]


@pytest.mark.parametrize(
    "name", [b"Authorization", b"Content-Type", b"Origin", b"Proxy-Authorization", b"Range", b"User-Agent"]
)
@pytest.mark.parametrize("second", [b"a", b"b"])
def test_a_second_value_of_a_single_valued_header_is_refused_by_name(name: bytes, second: bytes) -> None:
    said = post(name + b": a", name.lower() + b": " + second)
    assert read(said) == [FAULT]
    ((_, fault, _),) = Http1Machine(1_000).receive(said)
    assert str(fault) == f"2 headers {name.decode().lower()}: send one"


def test_cookies_and_lists_in_several_lines_are_joined() -> None:
    lines = (b"Cookie: a=1", b"Accept: text/html", b"cookie: b=2", b"accept: */*")
    _, begun, _ = Http1Machine(1_000).receive(post(*lines))[0]
    assert begun.head.named == {b"host": b"x", b"cookie": b"a=1; b=2", b"accept": b"text/html, */*"}


@pytest.mark.parametrize("version", [b"HTTP/0.9", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/3.0", b"HTTP/11"])
@pytest.mark.parametrize("method", [b"GET", b"OPTIONS", b"SOURCE"])
def test_another_protocol_or_version_is_refused(method: bytes, version: bytes) -> None:
    assert read(method + b" /a " + version + b"\r\nhost: x\r\n\r\n") == [FAULT]


@pytest.mark.parametrize(
    ("target", "meant"),
    [(b"/a?b=c", b"/a?b=c"), (b"http://x/a?b=c", b"/a?b=c"), (b"https://x", b"/"), (b"//y/a", b"//y/a")],
)
def test_a_target_is_a_path_or_a_whole_address_with_the_host(target: bytes, meant: bytes) -> None:
    _, begun, _ = Http1Machine(1_000).receive(b"GET " + target + b" HTTP/1.1\r\nhost: x\r\n\r\n")[0]
    assert (begun.head.target, begun.head.authority) == (meant, b"x")


@pytest.mark.parametrize("target", [b"http://y/a", b"ftp://x/a", b"http:///a", b"x:80", b"a", b"*", b"http://[x/a"])
def test_any_other_form_of_target_is_refused(target: bytes) -> None:
    assert read(b"GET " + target + b" HTTP/1.1\r\nhost: x\r\n\r\n") == [FAULT]


def test_connect_is_refused() -> None:
    assert read(b"CONNECT x:443 HTTP/1.1\r\nhost: x:443\r\n\r\n") == [FAULT]


@pytest.mark.parametrize("other", [b"websocket", b"h2c", b"HTTP/2.0"])
def test_a_request_to_upgrade_is_answered_without_it_and_nothing_after_it_is_read(other: bytes) -> None:
    said = b"GET /a HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: " + other + b"\r\n\r\n"
    machine = Http1Machine(1_000)
    (_, begun, _), *rest = machine.receive(said + b"GET /b HTTP/1.1\r\nhost: x\r\n\r\n")
    assert not begun.keep_alive
    assert [kind for kind, _, _ in rest] == [BODY]
    assert not machine.receive(b"GET /c HTTP/1.1\r\nhost: x\r\n\r\n")


@pytest.mark.parametrize("body", [(b"content-length: 3", b"abc"), (CHUNKED, END)])
def test_an_upgrade_with_a_body_is_refused(body: tuple[bytes, bytes]) -> None:
    assert read(post(b"connection: upgrade", b"upgrade: websocket", body[0], body=body[1])) == [FAULT]


def test_plain_requests_are_accepted() -> None:
    assert read(post(b"Transfer-Encoding: Chunked", body=b"1;a=b\r\nx\r\n" + END)) == [HEAD, BODY]
    assert read(post(b"content-length: 3", body=b"abc") * 2) == [HEAD, BODY] * 2
