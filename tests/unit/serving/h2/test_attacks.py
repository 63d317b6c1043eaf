"""The known attacks on HTTP/2, and what becomes of each: a bounded number of frames, then ENHANCE_YOUR_CALM."""

from __future__ import annotations

import time

import pytest

from serving.h2 import frames, hpack
from serving.h2.frames import ErrorCode, frame
from serving.h2.machine import Http2Machine
from serving.h2.state import HEADERS, REFUSED
from tests.support.h2_peer import (
    DONE,
    MIB,
    OK,
    REQUEST,
    all_events,
    data,
    fault,
    goaways,
    opened,
    ping,
    request,
    resets,
    sent,
    server,
    tell,
)

CREDIT = 5_000
CALM = "ENHANCE_YOUR_CALM"


def flood(machine: Http2Machine, one: bytes, times: int = 2 * CREDIT) -> int:
    """Send `one` again and again; return how many were taken before the connection ended."""
    for number in range(times):
        if fault(tell(machine, one)) == CALM:
            return number
        machine.outgoing.take()
    return times


def test_rapid_reset_cve_2023_44487_ends_after_a_thousand_streams() -> None:
    machine = server()
    said = b"".join(request(i) + frames.reset(i, ErrorCode.CANCEL) for i in range(1, 40_000, 2))
    events = tell(machine, said)
    assert fault(events) == CALM
    assert [kind for kind, *_ in events].count(HEADERS) < CREDIT // 5 * 1.1
    assert goaways(sent(machine))[-1][1] is ErrorCode.ENHANCE_YOUR_CALM


def test_rapid_reset_a_packet_at_a_time_ends_after_five_thousand_streams() -> None:
    machine = server()
    stream_id = 1
    while not fault(tell(machine, request(stream_id), frames.reset(stream_id, ErrorCode.CANCEL))):
        stream_id += 2
        assert stream_id // 2 <= CREDIT
    assert goaways(sent(machine))[-1][1] is ErrorCode.ENHANCE_YOUR_CALM


def test_rapid_reset_by_faults_on_its_own_streams_ends_too() -> None:
    machine = server()
    stream_id = 1
    while not fault(tell(machine, request(stream_id) + frames.window_update(stream_id, 0))):
        stream_id += 2
        assert stream_id // 2 <= CREDIT
    assert goaways(sent(machine))[-1][1] is ErrorCode.ENHANCE_YOUR_CALM


def test_streams_over_the_limit_are_refused_and_a_flood_of_them_ends() -> None:
    machine = server(max_streams=10)
    for stream_id in range(1, 21, 2):
        opened(machine, stream_id, end=False)
    assert not tell(machine, request(21))
    assert resets(sent(machine)) == {21: ErrorCode.REFUSED_STREAM}
    events = tell(machine, b"".join(request(i) for i in range(23, 30_000, 2)))
    assert fault(events) == CALM
    assert len(machine.streams) == 10


def test_continuation_flood_cve_2024_27316_is_cut_at_twice_the_limit_of_headers() -> None:
    machine = server(max_header_bytes=4_096)
    tell(machine, frame(frames.HEADERS, 0, 1, b""))
    assert flood(machine, frame(frames.CONTINUATION, 0, 1, b"\x82" * 100)) <= 82


def test_continuation_flood_with_empty_frames_runs_out_of_credit() -> None:
    machine = server()
    tell(machine, frame(frames.HEADERS, 0, 1, hpack.encode(REQUEST)))
    assert flood(machine, frame(frames.CONTINUATION, 0, 1)) <= CREDIT


def test_hpack_bomb_costs_neither_memory_nor_time_and_gets_an_answer() -> None:
    machine = server()
    seed = b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4_000
    tell(machine, frame(frames.HEADERS, 5, 1, hpack.encode(REQUEST) + seed))
    before = time.process_time()
    events = tell(machine, *[frame(frames.HEADERS, 5, i, hpack.encode(REQUEST) + b"\xbe" * 16_000) for i in (3, 5, 7)])
    assert time.process_time() - before < 0.5
    assert [(kind, what) for kind, _, what, _ in events] == [(REFUSED, None)] * 3


FLOODS = {
    "PING": ping(),
    "PING ACK": frame(frames.PING, frames.ACK, 0, bytes(8)),
    "SETTINGS": frames.settings({}),
    "SETTINGS of windows": frames.settings({frames.INITIAL_WINDOW_SIZE: 1}),
    "SETTINGS ACK": frame(frames.SETTINGS, frames.ACK, 0),
    "empty DATA": data(1),
    "DATA of padding": frame(frames.DATA, frames.PADDED, 1, b"\3\0\0\0"),
    "DATA on a stream that was reset": data(3, b"late"),
    "RST_STREAM": frames.reset(3, ErrorCode.CANCEL),
    "WINDOW_UPDATE of the connection": frames.window_update(0, 1),
    "WINDOW_UPDATE of a stream": frames.window_update(1, 1),
    "WINDOW_UPDATE of a stream that is gone": frames.window_update(3, 1),
    "PRIORITY": frame(frames.PRIORITY, 0, 1, b"\0\0\0\0\1"),
    "PRIORITY of no stream": frame(frames.PRIORITY, 0, 101, b"\0\0\0\0\1"),
    "GOAWAY": frames.goaway(0, 0),
    "an unknown kind": frame(77, 0, 0, b"strange"),
}


@pytest.mark.parametrize("one", FLOODS.values(), ids=FLOODS.keys())
def test_a_flood_of_frames_that_carry_nothing_ends(one: bytes) -> None:
    machine = server()
    opened(machine, 1, end=False)
    machine.reset(opened(machine, 3), ErrorCode.CANCEL)
    assert CREDIT - 10 <= flood(machine, one) <= CREDIT


def test_a_flood_writes_no_more_than_its_credit() -> None:
    machine = server()
    tell(machine, ping() * 100_000)
    assert machine.outgoing.size < 20 * CREDIT


def test_settings_that_resize_the_windows_of_many_streams_do_not_stop_the_loop() -> None:
    machine = server()
    tell(machine, b"".join(request(i, end=False) for i in range(1, 20_000, 2)))
    assert len(machine.streams) == 10_000
    many = b"".join(frames.SETTING.pack(frames.INITIAL_WINDOW_SIZE, 65_535 + i % 2) for i in range(2_730))
    before = time.process_time()
    tell(machine, frame(frames.SETTINGS, 0, 0, many))
    assert time.process_time() - before < 0.3, "within one frame"
    before = time.process_time()
    tell(machine, b"".join(frames.settings({frames.INITIAL_WINDOW_SIZE: 65_535 + i % 2}) for i in range(1_000)))
    assert time.process_time() - before < 0.3, "within one packet"


def test_data_behind_a_window_of_0_waits_and_is_not_framed() -> None:
    machine = server()
    tell(machine, frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
    for stream_id in range(1, 201, 2):
        machine.outgoing.answer(opened(machine, stream_id), OK, b"x" * 1_000, DONE)
    for _ in range(10):
        machine.pump()
    assert machine.outgoing.waiting == 100_000
    assert not [f for f in sent(machine) if f.kind == frames.DATA]
    tell(machine, *[frames.reset(stream_id, ErrorCode.CANCEL) for stream_id in range(1, 201, 2)])
    assert machine.outgoing.waiting == 0
    assert not machine.streams


def test_each_window_update_costs_credit_even_for_a_byte() -> None:
    machine = server()
    tell(machine, frames.settings({frames.INITIAL_WINDOW_SIZE: 0}))
    machine.outgoing.answer(opened(machine, 1), OK, b"x" * MIB, DONE)
    for number in range(30_000):
        if fault(tell(machine, frames.window_update(1, 1))):
            break
        machine.pump()
        assert len([f for f in sent(machine) if f.kind == frames.DATA]) == 1, number
    assert machine.outgoing.waiting == MIB - 30_000, "each byte earns more than its window cost"


def test_a_turn_takes_no_more_new_streams_than_its_limit() -> None:
    machine = server()
    machine.receive(b"".join(request(i) for i in range(1, 2_001, 2)))
    assert len(machine.events(16)) == 16
    assert machine.is_behind
    assert len(all_events(machine)) == 984
