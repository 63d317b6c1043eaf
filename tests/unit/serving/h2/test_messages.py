"""Requests, answers and trailers: lengths, sizes, and the parts in which they come."""

from __future__ import annotations

import hpack as library
import pytest

from serving.h2 import frames, hpack
from serving.h2.frames import ErrorCode, frame
from serving.h2.state import DATA, HEADERS, REFUSED, RESET, TRAILERS
from tests.support.h2_peer import (
    DONE,
    OK,
    REQUEST,
    Frame,
    Pairs,
    data,
    fault,
    opened,
    request,
    resets,
    sent,
    server,
    tell,
)


def length(text: bytes) -> Pairs:
    return [(b"content-length", text)]


def trailers(stream_id: int, pairs: Pairs, *, end: bool = True) -> bytes:
    flags = frames.END_HEADERS | (frames.END_STREAM if end else 0)
    return frame(frames.HEADERS, flags, stream_id, hpack.encode(pairs))


def blocks(found: list[Frame]) -> list[Pairs]:
    """The header lists of the frames, joined from their parts and read by the library."""
    lists: list[Pairs] = []
    block = b""
    theirs = library.Decoder(1 << 20)
    for f in found:
        if f.kind in (frames.HEADERS, frames.CONTINUATION):
            block += f.payload
            if f.flags & frames.END_HEADERS:
                lists.append([(bytes(n), bytes(v)) for n, v in theirs.decode(block, raw=True)])
                block = b""
    assert not block
    return lists


# --- content-length ---


@pytest.mark.parametrize("parts", [(b"abc",), (b"a", b"", b"bc"), (b"abc", b"")])
def test_a_body_of_the_announced_length_is_accepted(parts: tuple[bytes, ...]) -> None:
    machine = server()
    tell(machine, request(1, length(b"3"), end=False))
    said = [data(1, part, end=number == len(parts)) for number, part in enumerate(parts, 1)]
    events = tell(machine, *said)
    assert b"".join(what for _, _, what, _ in events) == b"abc"
    assert [end for *_, end in events][-1] is True
    assert not resets(sent(machine))


@pytest.mark.parametrize("parts", [(b"ab",), (b"abcd",), (b"abc", b"d"), (b"abcde",), (b"abc", b"de"), (b"",)])
def test_a_body_of_another_length_than_announced_is_a_fault_of_its_stream(parts: tuple[bytes, ...]) -> None:
    machine = server()
    tell(machine, request(1, length(b"3"), end=False))
    said = [data(1, part, end=number == len(parts)) for number, part in enumerate(parts, 1)]
    events = tell(machine, *said)
    assert events[-1][0] == RESET, "the body was taken"
    assert resets(sent(machine)) == {1: ErrorCode.PROTOCOL_ERROR}


def test_after_one_byte_too_many_no_more_is_taken() -> None:
    machine = server()
    tell(machine, request(1, length(b"3"), end=False))
    events = tell(machine, data(1, b"abcd"), data(1, b"x" * 1_000, end=True))
    assert [kind for kind, *_ in events] == [RESET]


def test_trailers_that_come_too_early_for_the_length_are_a_fault() -> None:
    machine = server()
    tell(machine, request(1, length(b"3"), end=False), data(1, b"ab"), trailers(1, [(b"x", b"y")]))
    assert resets(sent(machine)) == {1: ErrorCode.PROTOCOL_ERROR}


@pytest.mark.parametrize("value", [b"", b"x", b"-1", b"+3", b"3, 3", b"0x3", b"9" * 30, b"\xb2"])
def test_a_malformed_length_is_a_fault(value: bytes) -> None:
    machine = server()
    assert not tell(machine, request(1, length(value), end=False))
    assert resets(sent(machine)) == {1: ErrorCode.PROTOCOL_ERROR}


# --- headers that come several times ---


def test_the_pieces_of_a_cookie_are_one_cookie() -> None:
    machine = server()
    pieces = [(b"cookie", b"a=1"), (b"x", b"between"), (b"cookie", b"b=2; c=3"), (b"cookie", b"d=4")]
    ((_, _, head, _),) = tell(machine, request(1, pieces))
    assert head.named[b"cookie"] == b"a=1; b=2; c=3; d=4"


def test_a_list_in_several_headers_is_one_list() -> None:
    machine = server()
    pairs = [(b"accept", b"text/html"), (b"x-own", b"1"), (b"accept", b"*/*;q=0.1"), (b"te", b"trailers")]
    ((_, _, head, _),) = tell(machine, request(1, [*pairs, (b"x-own", b"2"), (b"te", b"trailers")]))
    assert (head.named[b"accept"], head.named[b"x-own"]) == (b"text/html, */*;q=0.1", b"1, 2")
    assert [value for name, value in head.fields if name == b"x-own"] == [b"1", b"2"], "callers get both, too"


@pytest.mark.parametrize("values", [(b"3", b"3"), (b"3", b"4")])
@pytest.mark.parametrize(
    "name", [b"authorization", b"content-length", b"content-type", b"host", b"origin", b"proxy-authorization", b"range"]
)
def test_a_second_value_of_a_single_valued_header_refuses_the_request_by_name(
    name: bytes, values: tuple[bytes, bytes]
) -> None:
    machine = server()
    ((kind, _, why, _),) = tell(machine, request(1, [(name, value) for value in values], end=False))
    assert (kind, str(why)) == (REFUSED, f"2 headers {name.decode()}: send one")
    assert not resets(sent(machine)), "it is for the driver to answer"


def test_a_host_that_differs_from_the_authority_is_refused() -> None:
    machine = server()
    ((kind, _, why, _),) = tell(machine, request(1, [(b"host", b"other")]))
    assert (kind, str(why)) == (REFUSED, "the headers host and :authority differ")


# --- trailers ---


def test_trailers_end_a_request() -> None:
    machine = server()
    tell(machine, request(1, end=False))
    assert [(k, w, e) for k, _, w, e in tell(machine, data(1, b"a"), trailers(1, [(b"x", b"y")]))] == [
        (DATA, b"a", False),
        (TRAILERS, [(b"x", b"y")], True),
    ]


@pytest.mark.parametrize(("pairs", "end"), [([(b":path", b"/b")], True), ([(b"Up", b"x")], True), ([], False)])
def test_trailers_with_pseudo_headers_or_without_an_end_are_a_fault(pairs: Pairs, *, end: bool) -> None:
    machine = server()
    tell(machine, request(1, end=False), trailers(1, pairs, end=end))
    assert resets(sent(machine)) == {1: ErrorCode.PROTOCOL_ERROR}


# --- lists of headers that are large ---


def test_a_large_header_list_is_sent_in_continuations() -> None:
    machine = server()
    pairs = [(b":status", b"200"), *((b"x-%d" % number, b"v" * 1_000) for number in range(40))]
    machine.outgoing.headers(opened(machine, 1), hpack.encode(pairs), end=True)
    found = sent(machine)
    assert [f.kind for f in found] == [frames.HEADERS, frames.CONTINUATION, frames.CONTINUATION]
    assert max(len(f.payload) for f in found) <= 16_384
    assert [f.flags for f in found] == [frames.END_STREAM, 0, frames.END_HEADERS]
    assert blocks(found) == [pairs]


@pytest.mark.parametrize("where", ["head", "trailers", "both"])
def test_a_whole_answer_with_large_headers_or_trailers_keeps_to_the_size_of_frames(where: str) -> None:
    machine = server()
    large = (b"x-large", b"v" * 20_000)
    head = [(b":status", b"200"), *([large] if where != "trailers" else [])]
    ending = [(b"grpc-status", b"0"), *([large] if where != "head" else [])]
    machine.outgoing.answer(opened(machine, 1), hpack.encode(head), b"body", hpack.encode(ending))
    found = sent(machine)
    assert max(len(f.payload) for f in found) <= 16_384
    assert blocks(found) == [head, ending]


def test_a_header_list_in_continuations_is_read_as_one() -> None:
    machine = server()
    block = library.Encoder().encode([*REQUEST, (b"x", b"v" * 500)])
    parts = [block[i : i + 50] for i in range(0, len(block), 50)]
    said = [frame(frames.HEADERS, 0, 1, parts[0]), *(frame(frames.CONTINUATION, 0, 1, part) for part in parts[1:])]
    ((kind, _, head, end),) = tell(machine, *said, frame(frames.CONTINUATION, frames.END_HEADERS, 1))
    assert (kind, head.named[b"x"], end) == (HEADERS, b"v" * 500, False)


@pytest.mark.parametrize("between", [data(1, b"x"), frames.window_update(0, 1), frame(frames.CONTINUATION, 4, 3)])
def test_no_frame_may_come_between_the_parts_of_a_header_list(between: bytes) -> None:
    machine = server()
    assert fault(tell(machine, frame(frames.HEADERS, 0, 1, hpack.encode(REQUEST)), between)) == "PROTOCOL_ERROR"


def test_a_header_list_over_the_limit_is_dropped_and_the_table_stays_right() -> None:
    machine, theirs = server(max_header_bytes=4_096), library.Encoder()
    large = theirs.encode([*REQUEST, (b"x-kept", b"1"), *((b"x", b"v" * 500) for _ in range(20))])
    small = theirs.encode([*REQUEST, (b"x-kept", b"1")])
    events = tell(machine, frame(frames.HEADERS, 5, 1, large), frame(frames.HEADERS, 5, 3, small))
    assert [what and what.named for _, _, what, _ in events] == [None, {b"x-kept": b"1"}]


# --- the table ---


def test_a_smaller_table_of_the_peer_is_confirmed_in_the_next_block_only() -> None:
    machine = server()
    theirs = library.Decoder()
    theirs.max_allowed_table_size = 0
    tell(machine, frames.settings({frames.HEADER_TABLE_SIZE: 0}))
    machine.outgoing.take()
    for stream_id in (1, 3):
        machine.outgoing.answer(opened(machine, stream_id), OK, b"x", DONE)
    found = [f.payload for f in sent(machine) if f.kind == frames.HEADERS]
    assert found[0] == b"\x20" + OK
    assert found[1:] == [DONE, OK, DONE]
    assert [[bytes(n) for n, _ in theirs.decode(block, raw=True)] for block in found[:1]] == [[b":status"]]


# --- answers before the end of the request ---


def test_an_early_answer_ends_the_request_without_an_error() -> None:
    machine = server()
    machine.outgoing.answer(opened(machine, 1, end=False), OK, b"enough", DONE)
    machine.settle()
    assert resets(sent(machine)) == {1: ErrorCode.NO_ERROR}
    assert not machine.streams
    assert not fault(tell(machine, data(1, b"x" * 100), data(1, b"", end=True))), "it was under way already"


def test_an_early_answer_that_waits_for_a_window_is_sent_before_the_reset() -> None:
    machine = server(room=0)
    machine.outgoing.answer(opened(machine, 1, end=False), OK, b"enough", DONE)
    machine.settle()
    assert not resets(sent(machine))
    machine.outgoing.room = 100
    machine.pump()
    assert [f.kind for f in sent(machine)] == [frames.DATA, frames.HEADERS, frames.RST_STREAM]
