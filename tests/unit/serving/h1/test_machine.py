"""HTTP/1.1 requests as events, however they are cut."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.h1.machine import BODY, FAULT, HEAD, Begun, Http1Fault, Http1Machine
from tests.fuzz.sides import pieces, read_http1, spoken
from tests.fuzz.talk import http1, spoiled_bytes

SEEDS = st.integers(0, 1 << 60)
GET = b"GET /a?b HTTP/1.1\r\nhost: x\r\nCookie: c\r\n\r\n"
CHUNKED = b"POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"


def begun(said: bytes) -> Begun:
    """Parse `said`; return the head of its first request."""
    kind, what, _ = Http1Machine(32_768).receive(said)[0]
    assert kind == HEAD, what
    assert isinstance(what, Begun)
    return what


def kinds(*parts: bytes, limit: int = 32_768) -> list[int]:
    machine = Http1Machine(limit)
    return [kind for part in parts for kind, _, _ in machine.receive(part)]


def last_fault(*parts: bytes, limit: int = 32_768) -> Http1Fault:
    machine = Http1Machine(limit)
    events = [event for part in parts for event in machine.receive(part)]
    kind, what, end = events[-1]
    assert (kind, end) == (FAULT, True), "it was taken"
    assert isinstance(what, Http1Fault)
    return what


@settings(max_examples=8 * settings().max_examples)
@given(SEEDS)
def test_requests_mean_the_same_however_they_are_cut(seed: int) -> None:
    rng = Random(seed)
    said = http1(rng)
    assert read_http1(pieces(rng, said)) == read_http1([said]) == read_http1(spoken(said))


@settings(max_examples=12 * settings().max_examples)
@given(SEEDS)
def test_spoiled_requests_raise_nothing_and_are_read_alike_however_they_are_cut(seed: int) -> None:
    rng = Random(seed)
    said = spoiled_bytes(rng, http1(rng))
    assert read_http1(pieces(rng, said)) == read_http1([said]) == read_http1(spoken(said))


@given(st.binary(max_size=100))
def test_random_bytes_are_no_request_and_raise_nothing(said: bytes) -> None:
    assert read_http1([said]) == read_http1(spoken(said))


def test_a_request_has_its_parts() -> None:
    one = begun(GET)
    head = one.head
    assert (head.method, head.target, head.authority) == (b"GET", b"/a?b", b"x")
    assert head.fields == [(b"host", b"x"), (b"cookie", b"c")]
    assert one == (head, True, False, False)


@pytest.mark.parametrize(
    ("lines", "keeps", "is_old"),
    [
        (b"HTTP/1.1\r\nhost: x", True, False),
        (b"HTTP/1.1\r\nhost: x\r\nconnection: close", False, False),
        (b"HTTP/1.0\r\nhost: x", False, True),
        (b"HTTP/1.0", False, True),
        (b"HTTP/1.0\r\nconnection: keep-alive", True, True),
    ],
)
def test_version_and_connection_header_decide_whether_a_connection_stays_open(
    lines: bytes, *, keeps: bool, is_old: bool
) -> None:
    one = begun(b"GET / " + lines + b"\r\n\r\n")
    assert (one.keep_alive, one.is_old) == (keeps, is_old)


def test_an_expect_100_continue_header_is_noticed() -> None:
    assert begun(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\nExpect: 100-Continue\r\n\r\n").expects_continue


def test_a_body_comes_in_pieces_and_ends_once() -> None:
    machine = Http1Machine(1_000)
    machine.receive(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\n")
    assert machine.is_reading_body
    assert machine.receive(b"ab") == [(BODY, b"ab", False)]
    assert machine.receive(b"cde") == [(BODY, b"cde", True)]
    assert not machine.is_reading_body


def test_a_long_body_is_not_taken_for_long_headers() -> None:
    said = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n" + b"x" * 5_000
    assert kinds(said + GET, limit=500) == [HEAD, BODY, HEAD, BODY]
    assert kinds(said[:2_000], said[2_000:] + GET[:10], GET[10:], limit=500)[-2:] == [HEAD, BODY]


@given(SEEDS)
def test_trailers_are_dropped_and_do_not_become_headers_of_the_next_request(seed: int) -> None:
    trailing = b"1\r\na\r\n0\r\nauthorization: other\r\nx-b: 2\r\n\r\n"
    found = read_http1(pieces(Random(seed), CHUNKED + trailing + GET))
    heads = [what for kind, what, _ in found if kind == HEAD]
    assert [head[3] for head in heads] == [
        [(b"host", b"x"), (b"transfer-encoding", b"chunked")],
        [(b"host", b"x"), (b"cookie", b"c")],
    ]


# --- heads that come again ---


@settings(max_examples=8 * settings().max_examples)
@given(SEEDS)
def test_a_repeated_request_is_read_as_the_first_time(seed: int) -> None:
    rng = Random(seed)
    said = rng.choice((spoiled_bytes(rng, http1(rng)), http1(rng)))
    assert read_http1([said, said, *pieces(rng, said), said]) == read_http1([said * 4])


def posted(token: bytes, body: bytes) -> bytes:
    head = b"POST /a HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %b\r\ncontent-length: %d\r\n\r\n"
    return head % (token, len(body)) + body


def test_each_request_has_its_own_token_and_body_whatever_came_before() -> None:
    machine, rng = Http1Machine(32_768), Random(7)
    for _ in range(2_000):
        token, body = rng.choice((b"a", b"b", b"c", b"%d" % rng.randrange(40))), rng.randbytes(rng.randrange(3))
        (_, told, _), *rest = machine.receive(posted(token, body))
        assert told.head.named[b"authorization"] == b"Bearer " + token
        assert rest == [(BODY, body, True)]


def test_a_remembered_head_may_come_with_part_of_its_body_or_before_another_request() -> None:
    machine, said = Http1Machine(32_768), posted(b"t", b"abc")
    assert [kind for kind, _, _ in machine.receive(said)] == [HEAD, BODY]
    assert machine.receive(said[:-2])[1:] == [(BODY, b"a", False)]
    assert machine.receive(said[-2:]) == [(BODY, b"bc", True)]
    assert [what for kind, what, _ in machine.receive(said + said) if kind == BODY] == [b"abc", b"abc"]
    assert [kind for kind, _, _ in machine.receive(said + b"nonsense\r\n\r\n")] == [HEAD, BODY, FAULT]


def test_the_memory_for_heads_is_bounded_and_long_ones_are_not_remembered() -> None:
    machine = Http1Machine(32_768)
    for number in range(100):
        machine.receive(posted(b"%d" % number, b""))
        machine.receive(posted(b"t" * 2_000, b""))
    assert sum(map(len, machine._known)) <= 4 * 1_024


# --- limits ---


@pytest.mark.parametrize(
    "said",
    [
        b"GET /" + b"a" * 2_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"b" * 2_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 300 + b"\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a" * 2_000,
        b"GET / HTTP/1.1\r\nhost: x\r\na:" + b" " * 2_000,
    ],
    ids=["target", "value", "many", "endless name", "endless space"],
)
def test_headers_over_the_limit_are_refused_however_they_come(said: bytes) -> None:
    assert last_fault(said, limit=1_000).limit == "max_header_bytes"
    assert last_fault(*[said[i : i + 100] for i in range(0, len(said), 100)], limit=1_000).limit == "max_header_bytes"


def test_no_more_than_a_hundred_requests_may_come_at_once() -> None:
    assert kinds(GET * 100) == [HEAD, BODY] * 100
    assert str(last_fault(GET * 101)) == "too many pipelined requests"


def test_data_after_the_last_request_is_dropped() -> None:
    close = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    assert kinds(close + GET, GET) == [HEAD, BODY]
    assert kinds(b"nonsense\r\n\r\n", GET) == [FAULT]
