"""What everyday clients do for hours never runs into the budgets that end floods."""

from __future__ import annotations

import pytest

from serving.h2 import frames, hpack
from serving.h2.frames import ErrorCode
from serving.h2.machine import Http2Machine
from serving.h2.state import HEADERS, Http2Settings
from tests.support.h2_peer import (
    DONE,
    MIB,
    OK,
    REQUEST,
    all_events,
    data,
    fault,
    opened,
    ping,
    request,
    sent,
    server,
    tell,
    written,
)


def test_a_long_ping_pong_with_a_ping_and_two_window_updates_for_each_answer() -> None:
    machine = server()
    stream = opened(machine, 1, end=False)
    machine.outgoing.headers(stream, OK, end=False)
    for _ in range(20_000):
        events = tell(machine, data(1, b"x" * 10), ping(), frames.window_update(0, 10) + frames.window_update(1, 10))
        assert not fault(events)
        machine.acknowledge_bytes(stream, 10)
        machine.outgoing.data(stream, b"y" * 10)
        machine.pump()
        machine.outgoing.take()


def test_three_thousand_watches_that_are_cancelled_after_they_were_answered() -> None:
    machine = server()
    for _ in range(4):
        first = machine.last_id + 2 if machine.last_id else 1
        ids = range(first, first + 6_000, 2)
        streams = [stream for _, stream, _, _ in tell(machine, b"".join(request(i) for i in ids))]
        for stream in streams:
            assert stream is not None
            machine.outgoing.headers(stream, OK, end=False)
            machine.outgoing.data(stream, b"first")
        assert not fault(tell(machine, b"".join(frames.reset(i, ErrorCode.CANCEL) for i in ids)))
        assert not machine.streams
        machine.outgoing.take()


def test_three_thousand_watches_that_are_cancelled_at_once_when_their_client_ends() -> None:
    machine = server()
    tell(machine, b"".join(request(i) for i in range(1, 6_000, 2)))
    assert not fault(tell(machine, b"".join(frames.reset(i, ErrorCode.CANCEL) for i in range(1, 6_000, 2))))


@pytest.mark.parametrize("every_s", [1, 10, 60])
def test_keepalive_pings_for_a_day(every_s: int) -> None:
    machine = server()
    for _ in range(86_400 // every_s):
        machine.earn(100 * every_s)
        assert not fault(tell(machine, ping()))
        machine.outgoing.take()


def test_a_day_of_heartbeats_one_by_one() -> None:
    machine = server()
    for number in range(20_000):
        stream = opened(machine, 2 * number + 1)
        machine.outgoing.answer(stream, OK, b"ok", DONE)
        machine.settle()
        assert not fault(tell(machine, frames.window_update(0, 2), ping()))
        machine.outgoing.take()


def test_a_large_answer_with_two_windows_for_each_of_its_frames() -> None:
    machine = server()
    stream = opened(machine, 1)
    machine.outgoing.answer(stream, OK, b"x" * (100 * MIB), DONE)
    while machine.streams:
        machine.outgoing.room = MIB
        machine.pump()
        for f in sent(machine):
            if f.kind == frames.DATA:
                size = len(f.payload)
                assert not fault(tell(machine, frames.window_update(0, size), frames.window_update(1, size)))


def test_a_large_request_in_small_frames() -> None:
    machine = server()
    stream = opened(machine, 1, end=False)
    for _ in range(20_000):
        assert not fault(tell(machine, data(1, b"x" * 50)))
        machine.acknowledge_bytes(stream, 50)
    machine.outgoing.take()


def test_our_client_does_not_take_a_busy_server_for_a_flood() -> None:
    client, one = Http2Machine(Http2Settings(), is_client=True), Http2Machine(Http2Settings())
    block = hpack.encode(REQUEST)
    for _ in range(6_000):
        client.outgoing.room = one.outgoing.room = MIB
        client.open(block, end=True)
        for kind, stream, _, _ in tell(one, written(client)):
            if kind == HEADERS:
                assert stream is not None
                one.outgoing.answer(stream, OK, b"x" * 100, DONE)
        one.settle()
        one.ping(b"12345678")
        client.receive(written(one))
        assert not fault(all_events(client))


def test_credit_earned_over_time_is_bounded() -> None:
    machine = server()
    machine.earn(1 << 30)
    assert fault(tell(machine, ping() * 10_001)) == "ENHANCE_YOUR_CALM"
