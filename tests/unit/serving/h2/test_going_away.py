"""The graceful end of a connection: two GOAWAYs, and no accepted call is lost."""

from __future__ import annotations

from serving.h2 import frames, hpack
from serving.h2.frames import ErrorCode
from serving.h2.machine import Http2Machine
from serving.h2.state import DATA, GOAWAY, HEADERS, PONG, Http2Settings
from tests.support.h2_peer import (
    DONE,
    OK,
    REQUEST,
    data,
    fault,
    goaways,
    is_ended,
    opened,
    ping,
    request,
    sent,
    server,
    tell,
    written,
)


def test_after_the_warning_streams_are_still_served() -> None:
    machine = server()
    machine.go_away(soon=True)
    assert goaways(sent(machine)) == [(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR)]
    assert [kind for kind, *_ in tell(machine, request(1))] == [HEADERS]
    machine.go_away()
    assert goaways(sent(machine)) == [(1, ErrorCode.NO_ERROR)]


def test_streams_above_the_last_id_are_ignored_and_those_below_are_finished() -> None:
    machine = server()
    stream = opened(machine, 1, end=False)
    machine.go_away()
    machine.outgoing.take()
    assert not tell(machine, request(3))
    assert [kind for kind, *_ in tell(machine, data(1, b"x", end=True))] == [DATA]
    machine.outgoing.answer(stream, OK, b"x", DONE)
    assert is_ended(sent(machine), 1)


def test_the_body_of_a_call_after_the_goaway_does_not_end_calls_under_way() -> None:
    machine = server()
    opened(machine, 1, end=False)
    machine.go_away()
    late = [request(3, end=False), data(3, b"x"), frames.window_update(3, 9), data(3, b"", end=True)]
    assert not tell(machine, *late, request(5, end=False), frames.reset(5, ErrorCode.CANCEL))
    assert not machine.failed
    assert [kind for kind, *_ in tell(machine, data(1, b"x", end=True))] == [DATA]


def test_the_headers_of_a_call_after_the_goaway_still_change_the_table() -> None:
    machine = server()
    opened(machine, 1, end=False)
    machine.go_away()
    kept = hpack.encode(REQUEST) + b"\x40\x01a\x01b"
    assert not tell(machine, frames.frame(frames.HEADERS, 5, 3, kept))
    assert machine._decoder.table_bytes == 34


def test_the_last_stream_id_of_a_goaway_never_rises() -> None:
    machine = server()
    opened(machine, 1)
    machine.go_away()
    tell(machine, request(3))
    machine.go_away(ErrorCode.ENHANCE_YOUR_CALM)
    assert [last for last, _ in goaways(sent(machine))] == [1, 1]


def test_the_goaway_of_a_fault_names_the_last_stream() -> None:
    machine = server()
    opened(machine, 1)
    assert fault(tell(machine, frames.frame(frames.DATA, 0, 0, b"x"))) == "PROTOCOL_ERROR"
    assert goaways(sent(machine)) == [(1, ErrorCode.PROTOCOL_ERROR)]


def test_a_client_gets_both_goaways_of_a_graceful_end_and_its_answer() -> None:
    client, one = Http2Machine(Http2Settings(), is_client=True), Http2Machine(Http2Settings())
    client.open(hpack.encode(REQUEST), end=True)
    ((_, stream, _, _),) = tell(one, written(client))
    assert stream is not None
    one.go_away(soon=True)
    one.ping(b"draining")
    assert [(kind, what) for kind, _, what, _ in tell(client, written(one))] == [(GOAWAY, frames.MAX_STREAM_ID)]
    assert [(kind, what) for kind, _, what, _ in tell(one, written(client))] == [(PONG, b"draining")]
    one.go_away()
    one.outgoing.room = 100
    one.outgoing.answer(stream, OK, b"x", DONE)
    kinds = [kind for kind, *_ in tell(client, written(one))]
    assert kinds[0] == GOAWAY
    assert not client.streams
    one.settle()
    assert not one.streams


def test_a_ping_is_answered_while_the_connection_ends() -> None:
    machine = server()
    machine.go_away()
    machine.outgoing.take()
    tell(machine, ping())
    assert [(f.kind, f.flags, f.payload) for f in sent(machine)] == [(frames.PING, frames.ACK, b"12345678")]
