"""The client against servers that do what they must not: each call ends, with a status that says why."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from google.rpc import code_pb2 as codes  # type: ignore[import-untyped]

from serving.h2 import frames
from serving.h2.frames import END_STREAM, ErrorCode, frame
from serving.transport.client import Channel
from serving.transport.client_call import CallFailed, Options
from tests.support.sample_instances import eventually
from tests.wire.raw_h2_server import OK_HEAD, PATH, RawPeer, failure, raw_server


@pytest.mark.parametrize(
    "junk",
    [
        frame(frames.DATA, 0, 0, b"x"),
        frame(frames.HEADERS, 4, 7, b"\x88"),
        frame(frames.HEADERS, 4, 1, b"\xff\xff\xff\xff\xff\xff"),
        frame(frames.PUSH_PROMISE, 4, 1, b"\0\0\0\2"),
        frame(frames.WINDOW_UPDATE, 0, 0, b"\0\0\0\0"),
        b"\xff\xff\xff\0\0\0\0\0\1",
        frame(frames.SETTINGS, 0, 0) * 9_000,
    ],
)
async def test_wrong_frames_end_the_connection_and_its_calls(junk: bytes) -> None:
    async def script(peer: RawPeer) -> None:
        peer.greet()
        await peer.request()
        peer.write(junk)
        await peer.rest()
        assert peer.seen[-1][0] == frames.GOAWAY

    async with raw_server(script) as address:
        error = await failure(address)
    assert (error.code, error.is_unprocessed) == (codes.UNAVAILABLE, False)
    assert "protocol error" in error.message


async def test_a_server_of_http_1_is_no_connection() -> None:
    async def script(peer: RawPeer) -> None:
        peer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await asyncio.sleep(0.1)

    async with raw_server(script) as address:
        error = await failure(address)
    assert (error.code, error.is_unprocessed) == (codes.UNAVAILABLE, True)


@pytest.mark.parametrize("closes", [False, True])
async def test_a_server_that_says_nothing_is_no_connection(closes: bool) -> None:
    async def script(peer: RawPeer) -> None:
        if not closes:
            await peer.rest()

    async with raw_server(script) as address:
        error = await failure(address, Options(connect_timeout_s=0.2))
    assert (error.code, error.is_unprocessed) == (codes.UNAVAILABLE, True)
    assert "cannot connect" in error.message


async def test_a_connection_that_is_lost_ends_its_calls() -> None:
    async def script(peer: RawPeer) -> None:
        peer.greet()
        await peer.request()

    async with raw_server(script) as address:
        error = await failure(address)
    assert (error.code, error.is_unprocessed) == (codes.UNAVAILABLE, False)


@pytest.mark.long
async def test_a_server_that_answers_no_ping_is_replaced() -> None:
    async def dead(peer: RawPeer) -> None:
        peer.answers_pings = False
        peer.greet()
        await peer.rest()

    async def alive(peer: RawPeer) -> None:
        peer.greet()
        while True:
            peer.answer(await peer.request(), b"here")

    async with raw_server(dead, alive) as address:
        channel = Channel(address, None, Options(ping_after_s=0.5, ping_timeout_s=0.5))
        with pytest.raises(CallFailed, match="does not answer") as raised:
            await channel.unary(PATH, b"?", 10.0)
        assert (raised.value.code, raised.value.is_unprocessed) == (codes.UNAVAILABLE, False)
        await asyncio.sleep(0.2)  # it had never answered: the next attempt waits
        assert await channel.unary(PATH, b"?", 5.0) == b"here"
        await channel.close()


@pytest.mark.long
async def test_pings_are_few_and_none_goes_without_a_call() -> None:
    peers: list[RawPeer] = []

    async def script(peer: RawPeer) -> None:
        peers.append(peer)
        peer.greet()
        peer.answer(await peer.request(), b"1")
        await peer.rest()

    async with raw_server(script) as address:
        channel = Channel(address, None, Options(ping_after_s=0.2, ping_timeout_s=5.0))
        assert await channel.unary(PATH, b"?", 5.0) == b"1"
        await asyncio.sleep(2.5)
        assert not [one for one in peers[0].seen if one[0] == frames.PING]
        with pytest.raises(CallFailed):
            await channel.unary(PATH, b"?", 5.5)
        assert 1 <= len([one for one in peers[0].seen if one[0] == frames.PING]) <= 2
        await channel.close()


@pytest.mark.parametrize("of_stream", [True, False])
async def test_a_shut_window_holds_requests_back_until_their_deadline(of_stream: bool) -> None:
    async def script(peer: RawPeer) -> None:
        peer.greet({frames.INITIAL_WINDOW_SIZE: 0 if of_stream else 1 << 20})
        await peer.rest()
        codes_seen = [one[3] for one in peer.seen if one[0] == frames.RST_STREAM]
        assert codes_seen == [frames.WORD.pack(ErrorCode.CANCEL)] * 2

    async with raw_server(script) as address:
        channel = Channel(address)
        await eventually(lambda: channel._connection()._is_ready)
        calls = [channel.unary(PATH, b"x" * 100_000, 0.3) for _ in range(2)]
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [getattr(error, "code", None) for error in errors] == [codes.DEADLINE_EXCEEDED] * 2
        connection = channel._current
        assert connection is not None
        assert connection._machine.outgoing.waiting == 0
        assert not connection._machine.streams
        await channel.close()


async def test_a_window_that_opens_lets_the_request_go_on() -> None:
    async def script(peer: RawPeer) -> None:
        peer.greet({frames.INITIAL_WINDOW_SIZE: 10})
        stream, _ = await peer.until(frames.DATA)
        peer.write(frames.window_update(stream, 1_000_000) + frames.window_update(0, 1_000_000))
        await peer.until(frames.DATA, END_STREAM)
        got = b"".join(one[3] for one in peer.seen if one[0] == frames.DATA)
        peer.answer(stream, got[-3:] + b"%d" % len(got))
        await peer.rest()

    async with raw_server(script) as address:
        channel = Channel(address)
        assert await channel.unary(PATH, b"x" * 200_000 + b"end", 5.0) == b"end200008"
        await channel.close()


async def test_an_early_refusal_ends_a_request_that_is_not_sent_yet() -> None:
    async def script(peer: RawPeer) -> None:
        peer.greet()
        stream, _ = await peer.until(frames.HEADERS)
        peer.headers(stream, [*OK_HEAD, ("grpc-status", "8"), ("grpc-message", "too large")], END_STREAM)
        await peer.rest()

    async with raw_server(script) as address:
        channel = Channel(address)
        with pytest.raises(CallFailed, match="too large") as raised:
            await channel.unary(PATH, b"x" * 1_000_000, 5.0)
        assert raised.value.code == codes.RESOURCE_EXHAUSTED
        assert channel._current is not None
        assert channel._current._machine.outgoing.waiting == 0
        await channel.close()


async def test_a_stream_whose_reader_is_slow_holds_no_more_than_its_window() -> None:
    sent = 0

    async def script(peer: RawPeer) -> None:
        nonlocal sent
        peer.greet()
        stream = await peer.request()
        peer.headers(stream, OK_HEAD)
        window = 65_535
        if any(one[0] == frames.WINDOW_UPDATE and one[2] == 0 for one in peer.seen):
            window = 1 << 30
        room = min(window, next(_initial_windows(peer)))
        while True:
            while room >= 1_005:
                peer.message(stream, b"m" * 1_000)
                sent, room = sent + 1, room - 1_005
            of, payload = await peer.until(frames.WINDOW_UPDATE)
            room += frames.WORD.unpack(payload)[0] if of == stream else 0

    async with raw_server(script) as address:
        channel = Channel(address, None, Options(window_bytes=100_000))
        messages = channel.stream(PATH, b"?")
        first = await anext(messages)
        await asyncio.sleep(0.3)
        assert first == b"m" * 1_000
        assert sent <= 101
        for _ in range(1_000):
            assert await anext(messages) == first
        messages.leave()
        await channel.close()


def _initial_windows(peer: RawPeer) -> Iterator[int]:
    for kind, flags, _, payload in peer.seen:
        if kind == frames.SETTINGS and not flags & frames.ACK:
            yield dict(frames.SETTING.iter_unpack(payload))[frames.INITIAL_WINDOW_SIZE]


async def test_a_server_that_turns_everybody_away_is_not_asked_in_a_hurry() -> None:
    connections = 0

    async def script(peer: RawPeer) -> None:
        nonlocal connections
        connections += 1
        peer.greet()
        peer.write(frames.goaway(0, ErrorCode.ENHANCE_YOUR_CALM, "too many"))
        await peer.rest()

    async with raw_server(script) as address:
        channel = Channel(address)
        until = time.monotonic() + 1.0
        while time.monotonic() < until or connections < 2:
            with suppress(CallFailed):
                await channel.unary(PATH, b"?", 1.0)
            await asyncio.sleep(0.001)
        await channel.close()
    assert 2 <= connections <= 12
