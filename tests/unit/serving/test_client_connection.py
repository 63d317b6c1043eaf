"""A client's connection without a socket: whatever the server's bytes are, each call ends once, and nothing is left."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.h2 import frames, hpack
from serving.h2.frames import frame
from serving.transport.client_call import CallFailed, ClientCall, Options
from serving.transport.client_connection import ClientConnection


class FakeTransport:
    """Keeps what is written, and notes when it is closed."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str) -> None:
        return None


def connected() -> tuple[ClientConnection, FakeTransport]:
    connection, transport = ClientConnection("there", Options(), lambda *_: None), FakeTransport()
    connection.connection_made(cast("Any", transport))
    connection.data_received(frames.settings({frames.MAX_CONCURRENT_STREAMS: 5}))
    assert connection._is_ready
    return connection, transport


def _headers(fields: list[tuple[bytes, bytes]], stream: int, flags: int) -> bytes:
    return frame(frames.HEADERS, flags, stream, hpack.encode(fields))


_STREAMS = st.integers(0, 15)
_HEAD = [(b":status", b"200"), (b"content-type", b"application/grpc")]
_FRAMES = st.one_of(
    st.builds(lambda s, f: _headers(_HEAD, s, f), _STREAMS, st.sampled_from([4, 5])),
    st.builds(lambda s, c: _headers([(b"grpc-status", c)], s, 5), _STREAMS, st.sampled_from([b"0", b"5", b"x"])),
    st.builds(
        lambda s, n: frame(frames.DATA, 0, s, b"\0" + n.to_bytes(4, "big") + b"x" * n), _STREAMS, st.integers(0, 50)
    ),
    st.builds(lambda s: frames.reset(s, 8), _STREAMS),
    st.builds(lambda s: frames.goaway(s, 0), _STREAMS),
    st.builds(lambda s, n: frames.window_update(s, n), _STREAMS, st.integers(0, 1 << 31)),
    st.builds(lambda n: frames.settings({frames.INITIAL_WINDOW_SIZE: n}), st.integers(0, 1 << 17)),
    st.builds(lambda n: frames.settings({frames.MAX_CONCURRENT_STREAMS: n}), st.integers(0, 3)),
    st.builds(frame, st.integers(0, 12), st.integers(0, 255), _STREAMS, st.binary(max_size=40)),
    st.binary(max_size=30),
)


@given(st.lists(st.one_of(_FRAMES, st.integers(0, 9)), max_size=40))
def test_every_call_ends_once_whatever_comes(script: list[bytes | int]) -> None:
    """In the script, bytes arrive, 0 to 7 start a call, and other numbers cancel the oldest."""

    async def play() -> None:
        connection, calls = connected()[0], list[ClientCall]()
        for step in script:
            _do(step, connection, calls)
            await asyncio.sleep(0)
        connection.connection_lost(None)
        await connection.lost
        assert all(call.is_over and call.timer is None and not call.body for call in calls)
        machine = connection._machine
        assert (machine.streams, connection._waiting, machine.outgoing.waiting) == ({}, {}, 0)
        for call in calls:
            await _drained(call)

    asyncio.run(play())


def _do(step: bytes | int, connection: ClientConnection, calls: list[ClientCall]) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(step, bytes):
        connection.data_received(step)
    elif step >= 8 and calls:
        connection.leave(calls[0])
    elif not connection.is_retired:
        arguments = (b"\x83", b"x" * (30_000 if step & 1 else 3), loop.time() + 60 if step & 2 else None, 40)
        calls.append(ClientCall(*arguments))
        connection.start(calls[-1])


async def _drained(call: ClientCall) -> None:
    try:
        async with asyncio.timeout(1):
            while True:
                await anext(call)
    except (StopAsyncIteration, CallFailed):
        return


async def test_frames_of_one_turn_of_the_loop_leave_in_one_write() -> None:
    connection, transport = connected()
    await asyncio.sleep(0)
    transport.written.clear()
    writes: list[int] = []
    transport.write = lambda data: writes.append(len(data))  # type: ignore[method-assign]
    for _ in range(5):
        connection.start(ClientCall(b"\x83", b"?", None, 10))
    await asyncio.sleep(0)
    assert writes == [5 * (9 + 1 + 9 + 6)]
    connection._machine.streams.clear()
    connection.connection_lost(None)


async def test_ids_that_run_out_retire_the_connection() -> None:
    connection, _ = connected()
    connection._machine._next_id = frames.MAX_STREAM_ID - 4
    calls, retired = [], []
    for _ in range(2):
        calls.append(ClientCall(b"\x83", b"?", None, 10))
        connection.start(calls[-1])
        retired.append(connection.is_retired)
    assert retired == [False, True]
    assert not any(call.is_over for call in calls)
    connection.connection_lost(None)
    for call in calls:
        with pytest.raises(CallFailed):
            await anext(call)


@pytest.mark.parametrize(
    ("error", "words"),
    [(None, "by the peer"), (ConnectionResetError(), "by the peer"), (OSError("no route"), "no route")],
)
async def test_a_connection_that_is_lost_says_why(error: Exception | None, words: str) -> None:
    connection, _ = connected()
    call = ClientCall(b"\x83", b"x", None, 40)
    connection.start(call)
    connection.connection_lost(error)

    with pytest.raises(CallFailed, match=f"the connection to there was closed: {words}$"):
        await anext(call)
