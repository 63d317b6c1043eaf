"""A client's machine and a server's, with any windows and at any pace: all that is said arrives, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving.h2 import hpack, state
from serving.h2.machine import Http2Machine
from serving.h2.outgoing import Http2Stream
from serving.h2.state import Http2Settings
from tests.fuzz.sides import check_books
from tests.support.h2_peer import DONE, OK, REQUEST, all_events, written

_BLOCK = hpack.encode(REQUEST)


@dataclass
class Side:
    machine: Http2Machine
    pipe: bytearray = field(default_factory=bytearray)  # what it has written, and the other side has not read
    got: dict[int, bytes] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    held: list[tuple[Http2Stream, int]] = field(default_factory=list)  # read, and not reported as consumed


class Pair:
    """A client with calls, and a server that echoes each of them when it is complete."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.client = Side(Http2Machine(self._settings(), is_client=True))
        self.server = Side(Http2Machine(self._settings()))
        self.asked: dict[int, bytes] = {}
        self.step(0, 1_000)  # each knows the windows of the other: before that, 65,535 bytes may come to every stream

    def _settings(self) -> Http2Settings:
        window = self._rng.choice((1, 30, 1_000, 65_535, 1 << 20))
        return Http2Settings(window_bytes=window, connection_window_bytes=self._rng.choice((65_535, 70_000, 1 << 20)))

    def ask(self) -> None:
        machine, body = self.client.machine, self._rng.randbytes(self._rng.choice((0, 1, 20, 2_000)))
        stream = machine.open(_BLOCK, end=not body)
        self.asked[stream.id] = body
        for at in range(0, len(body), 700):
            machine.outgoing.data(stream, body[at : at + 700], end=at + 700 >= len(body))

    def step(self, room: int, most: int) -> None:
        """Let each side write what it may, and read up to `most` bytes of what the other wrote."""
        for side, other in ((self.client, self.server), (self.server, self.client)):
            side.machine.outgoing.room = room
            side.machine.pump()
            side.pipe += written(side.machine)
            part = bytes(side.pipe[:most])
            del side.pipe[:most]
            other.machine.receive(part)
            for event in all_events(other.machine):
                self._heard(other, event)
            check_windows(side.machine)

    def _heard(self, side: Side, event: state.Event) -> None:
        kind, stream, what, end = event
        assert kind not in (state.FAILED, state.RESET), what
        if stream is None:
            return
        if kind == state.DATA:
            side.got[stream.id] = side.got.get(stream.id, b"") + what
            side.held.append((stream, len(what)))
        if end:
            side.ended.add(stream.id)
            if side is self.server:
                self._echo(stream, side.got.get(stream.id, b""))

    def _echo(self, stream: Http2Stream, body: bytes) -> None:
        out = self.server.machine.outgoing
        if self._rng.random() < 0.5:
            out.answer(stream, OK, body, DONE)
            return
        out.headers(stream, OK, end=False)
        for at in range(0, len(body), 900):
            out.data(stream, body[at : at + 900])
        if self._rng.random() < 0.5:
            out.trailers(stream, DONE)
        else:
            out.data(stream, b"", end=True)

    def consume(self, share: float) -> None:
        for side in (self.client, self.server):
            kept = []
            for stream, size in side.held:
                if self._rng.random() < share:
                    side.machine.acknowledge_bytes(stream, size)
                else:
                    kept.append((stream, size))
            side.held = kept

    @property
    def is_quiet(self) -> bool:
        sides = (self.client, self.server)
        outs = [side.machine.outgoing for side in sides]
        return not any(side.pipe or side.held for side in sides) and not any(out.frames or out.is_ready for out in outs)


def check_windows(machine: Http2Machine) -> None:
    check_books(machine)
    assert all(s.window >= 0 and s.credit >= 0 for s in machine.streams.values()), "a window is negative"


@settings(max_examples=4 * settings().max_examples)
@given(st.integers(0, 1 << 60))
@pytest.mark.long
def test_every_call_is_echoed_whole_whatever_the_windows_and_the_pace(seed: int) -> None:
    rng = Random(seed)
    pair = Pair(rng)
    for _ in range(30):
        if rng.random() < 0.4:
            pair.ask()
        pair.step(rng.choice((0, 1, 500, 100_000)), rng.choice((0, 5, 100, 10_000)))
        pair.consume(rng.random())
    for _ in range(100_000):
        pair.consume(1.0)
        pair.step(1 << 20, 1 << 20)
        if pair.is_quiet:
            break
    for stream_id, body in pair.asked.items():
        assert pair.server.got.get(stream_id, b"") == body == pair.client.got.get(stream_id, b"")
    assert pair.server.ended == pair.client.ended == set(pair.asked)
    assert not pair.client.machine.streams
    assert not pair.server.machine.streams
