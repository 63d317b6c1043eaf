"""What may be sent, and when: windows of streams and of the connection, room, turns and sizes of frames."""

from __future__ import annotations

import random

import pytest

from serving.h2 import frames
from serving.h2.frames import ErrorCode, window_update
from serving.h2.machine import Http2Machine
from serving.h2.state import DATA
from tests.support.h2_peer import (
    DONE,
    MIB,
    OK,
    body,
    data,
    fault,
    is_ended,
    opened,
    request,
    resets,
    sent,
    server,
    tell,
)

MAX = 16_384
INITIAL_WINDOW, MAX_FRAME = frames.INITIAL_WINDOW_SIZE, frames.MAX_FRAME_SIZE


def windows(machine: Http2Machine, stream: int = MIB, connection: int = 64 * MIB) -> None:
    """Open the windows as a client that reads fast does."""
    tell(machine, frames.settings({INITIAL_WINDOW: stream}), window_update(0, connection))
    machine.outgoing.take()


def test_data_beyond_the_window_of_its_stream_waits_and_follows_later() -> None:
    machine = server()
    stream = opened(machine, 1)
    machine.outgoing.answer(stream, OK, b"x" * 100_000, DONE)
    machine.pump()
    first = sent(machine)
    assert len(body(first, 1)) == 65_535
    assert machine.outgoing.waiting == stream.queued == 34_465
    tell(machine, window_update(1, 100_000), window_update(0, 100_000))
    machine.pump()
    rest = sent(machine)
    assert len(body(rest, 1)) == 34_465
    assert is_ended(rest, 1)
    assert not machine.streams


def test_the_window_of_the_connection_holds_all_streams_back() -> None:
    machine = server()
    tell(machine, frames.settings({INITIAL_WINDOW: MIB}))
    for stream_id in (1, 3):
        machine.outgoing.answer(opened(machine, stream_id), OK, b"x" * 60_000, DONE)
    machine.pump()
    assert sum(f.kind == frames.DATA and len(f.payload) for f in sent(machine)) == 65_535
    assert machine.outgoing.window == 0


def test_a_smaller_initial_window_makes_open_windows_negative_and_loses_nothing() -> None:
    machine = server()
    stream = opened(machine, 1)
    machine.outgoing.headers(stream, OK, end=False)
    machine.outgoing.data(stream, b"a" * 60_000)
    tell(machine, frames.settings({INITIAL_WINDOW: 10}))
    assert stream.window == 10 - 60_000
    machine.outgoing.data(stream, b"b" * 20, end=True)
    machine.pump()
    assert body(sent(machine), 1) == b"a" * 60_000
    tell(machine, window_update(1, 59_990))
    machine.pump()
    assert not body(sent(machine), 1), "the window is 0 and not more"
    tell(machine, window_update(1, 20))
    machine.pump()
    rest = sent(machine)
    assert body(rest, 1) == b"b" * 20
    assert is_ended(rest, 1)


def test_an_empty_end_needs_no_window_even_if_it_is_negative() -> None:
    machine = server()
    stream = opened(machine, 1)
    machine.outgoing.headers(stream, OK, end=False)
    machine.outgoing.data(stream, b"a" * 60_000)
    tell(machine, frames.settings({INITIAL_WINDOW: 10}))
    machine.outgoing.data(stream, b"", end=True)
    machine.pump()
    assert is_ended(sent(machine), 1)


def test_an_empty_end_needs_no_room() -> None:
    machine = server()
    stream = opened(machine, 1)
    machine.outgoing.headers(stream, OK, end=False)
    machine.outgoing.room = -1
    machine.outgoing.data(stream, b"", end=True)
    machine.outgoing.room = MIB
    machine.pump()
    assert is_ended(sent(machine), 1)


def test_trailers_wait_for_the_data_before_them() -> None:
    machine = server(room=0)
    machine.outgoing.answer(opened(machine, 1), OK, b"x" * 10, DONE)
    machine.pump()
    assert [f.kind for f in sent(machine)] == [frames.HEADERS]
    machine.outgoing.room = MIB
    machine.pump()
    assert [f.kind for f in sent(machine)] == [frames.DATA, frames.HEADERS]


def test_streams_take_turns_of_64_kib() -> None:
    machine = server(room=0)
    windows(machine)
    for stream_id in range(1, 21, 2):
        machine.outgoing.answer(opened(machine, stream_id), OK, b"x" * 500_000, DONE)
    machine.outgoing.take()
    taken = dict.fromkeys(range(1, 21, 2), 0)
    while machine.outgoing.waiting:
        machine.outgoing.room = 4 * 65_536
        machine.pump()
        for f in sent(machine):
            taken[f.stream_id] += len(f.payload) if f.kind == frames.DATA else 0
        assert max(taken.values()) - min(taken.values()) <= 65_536
    assert set(taken.values()) == {500_000}


def test_a_turn_that_the_window_of_the_connection_cut_short_goes_on_first() -> None:
    machine = server()
    tell(machine, frames.settings({INITIAL_WINDOW: MIB}))
    for stream_id, size in ((1, 57_000), (3, 100_000), (5, 57_000)):
        machine.outgoing.answer(opened(machine, stream_id), OK, b"x" * size, DONE)
    order = []
    while machine.outgoing.waiting:
        machine.pump()
        order += [f.stream_id for f in sent(machine) if f.kind == frames.DATA]
        tell(machine, window_update(0, 32_768))
    assert [one for one, before in zip(order, [0, *order], strict=False) if one != before] == [1, 3, 5, 3]


def test_a_stream_without_window_does_not_hold_up_the_others() -> None:
    machine = server(room=0)
    tell(machine, window_update(0, MIB))
    for stream_id in (1, 3):
        machine.outgoing.answer(opened(machine, stream_id), OK, b"x" * 200_000, DONE)
    tell(machine, window_update(3, 200_000))
    machine.outgoing.room = MIB
    machine.pump()
    found = sent(machine)
    assert (len(body(found, 1)), len(body(found, 3))) == (65_535, 200_000)


@pytest.mark.parametrize("most", [16_384, 40_000])
def test_no_frame_is_longer_than_the_peer_takes(most: int) -> None:
    machine = server()
    windows(machine)
    tell(machine, frames.settings({MAX_FRAME: most}))
    machine.outgoing.take()
    machine.outgoing.answer(opened(machine, 1), OK, b"x" * 100_000, DONE)
    machine.pump()
    found = sent(machine)
    assert max(len(f.payload) for f in found) == most
    assert body(found, 1) == b"x" * 100_000


def test_a_body_of_exactly_one_frame_is_sent_in_one() -> None:
    machine = server()
    machine.outgoing.answer(opened(machine, 1), OK, b"x" * 16_384, DONE)
    assert [len(f.payload) for f in sent(machine) if f.kind == frames.DATA] == [16_384]


def test_a_window_over_the_maximum_ends_its_stream_or_the_connection() -> None:
    machine = server()
    opened(machine, 1)
    assert not fault(tell(machine, window_update(1, frames.MAX_WINDOW)))
    assert resets(sent(machine)) == {1: ErrorCode.FLOW_CONTROL_ERROR}
    assert fault(tell(machine, window_update(0, frames.MAX_WINDOW))) == "FLOW_CONTROL_ERROR"


def test_a_sender_is_held_to_the_windows_that_it_was_given() -> None:
    machine = server(window_bytes=100)
    opened(machine, 1, end=False)
    assert not fault(tell(machine, data(1, b"x" * 100)))
    tell(machine, data(1, b"x"))
    assert resets(sent(machine)) == {1: ErrorCode.FLOW_CONTROL_ERROR}


def test_the_window_of_a_stream_opens_as_its_data_is_consumed() -> None:
    machine = server(window_bytes=100)
    stream = opened(machine, 1, end=False)
    tell(machine, data(1, b"x" * 100))
    assert sent(machine) == []
    machine.acknowledge_bytes(stream, 60)
    assert [(f.kind, f.stream_id, f.payload) for f in sent(machine)] == [(8, 1, b"\0\0\0\x3c")]
    assert [kind for kind, *_ in tell(machine, data(1, b"x" * 60))] == [DATA]


def test_padding_counts_for_the_window_and_is_given_back_at_once() -> None:
    machine = server(window_bytes=300)
    opened(machine, 1, end=False)
    padded = frames.frame(frames.DATA, frames.PADDED, 1, b"\xfa" + b"x" + bytes(250))
    ((_, stream, payload, _),) = tell(machine, padded)
    assert payload == b"x"
    assert stream is not None
    assert stream.credit == 300 - 1
    assert [(f.stream_id, f.payload) for f in sent(machine)] == [(1, b"\0\0\0\xfb")]


def test_data_on_streams_that_are_gone_still_opens_the_window_of_the_connection() -> None:
    machine = server()
    machine.reset(opened(machine, 1, end=False), ErrorCode.CANCEL)
    machine.outgoing.take()
    for _ in range(200):
        assert not fault(tell(machine, data(1, b"x" * 16_384)))
    assert all(f.kind == frames.WINDOW_UPDATE and not f.stream_id for f in sent(machine))


def test_a_reset_drops_the_waiting_data_of_its_stream_only() -> None:
    machine = server(room=0)
    windows(machine)
    first, second = opened(machine, 1), opened(machine, 3)
    for stream in (first, second):
        machine.outgoing.answer(stream, OK, b"x" * 1_000, DONE)
    tell(machine, frames.reset(1, ErrorCode.CANCEL))
    assert machine.outgoing.waiting == 1_000
    machine.outgoing.room = MIB
    machine.pump()
    found = sent(machine)
    assert (len(body(found, 1)), len(body(found, 3))) == (0, 1_000)
    assert not fault(tell(machine, request(5)))


@pytest.mark.parametrize("size", [MAX - 5, MAX - 4, MAX, 2 * MAX - 5, 2 * MAX - 4, 58_000])
def test_a_long_answer_is_framed_completely_and_counts_against_its_windows(size: int) -> None:
    """The frames that windows allow are made at once; every byte and every window is counted."""
    machine = server()
    windows(machine)
    stream = opened(machine, 1)
    out, room, window = machine.outgoing, machine.outgoing.room, machine.outgoing.window
    payload = random.Random(size).randbytes(size)
    out.answer(stream, OK, payload, DONE, lead=b"12345")
    assert out.size == sum(map(len, out.frames))
    found = sent(machine)
    assert body(found, 1) == b"12345" + payload
    assert max(len(frame.payload) for frame in found) <= MAX
    assert len(found) == 2 + -(-(size + 5) // MAX)
    assert [frame.kind for frame in (found[0], found[-1])] == [frames.HEADERS] * 2
    assert is_ended(found, 1)
    assert (room - out.room, window - out.window) == (size + 5, size + 5)
