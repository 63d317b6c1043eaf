"""Both sides of HTTP/2 and the server's of HTTP/1.1, fed with what a fuzzer has made."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from serving.h1 import machine as h1
from serving.h2 import hpack, state
from serving.h2.machine import Http2Machine
from serving.h2.outgoing import Http2Stream
from serving.h2.state import Http2Settings
from tests.support.h2_peer import DONE, OK, REQUEST, all_events, plain, written

_BLOCK = hpack.encode(REQUEST)
_SETTINGS = Http2Settings()
_MOST_H1 = 32 * 1024

Read = tuple[list[tuple[Any, ...]], bytes]


def pieces(rng: Random, said: bytes) -> list[bytes]:
    """The same bytes, cut anywhere."""
    cuts = sorted([int(rng.random() * (len(said) + 1)) for _ in range(rng.randrange(1, 5))])
    return [said[i:j] for i, j in zip([0, *cuts], [*cuts, len(said)], strict=True)]


def spoken(said: bytes) -> list[bytes]:
    """Byte by byte."""
    return [said[i : i + 1] for i in range(len(said))]


def server() -> Http2Machine:
    """One that waits for a client."""
    return Http2Machine(_SETTINGS)


def client_with_calls() -> Http2Machine:
    """One that waits for the answers to four requests, of which two are not complete."""
    machine = Http2Machine(_SETTINGS, is_client=True)
    for number in range(4):
        machine.open(_BLOCK, end=number % 2 == 0)
    machine.outgoing.take()
    return machine


def read(machine: Http2Machine, parts: Iterable[bytes]) -> Read:
    """What the bytes mean, and what is written for it. The driver says nothing."""
    events: list[state.Event] = []
    for part in parts:
        machine.receive(part)
        events += all_events(machine)
    found = plain(events)
    failed = [kind for kind, *_ in found].count(state.FAILED)
    assert failed == machine.failed, "a connection fails once, or not at all"
    assert not failed or found[-1][0] == state.FAILED, "something came behind the fault"
    return found, written(machine)


def drive(machine: Http2Machine, parts: Iterable[bytes], rng: Random) -> None:
    """Answer, consume and reset at random, with little room; the books must balance all the time."""
    for part in parts:
        machine.outgoing.room = rng.choice((0, 1, 100, 100_000))
        machine.receive(part)
        for kind, stream, what, _ in all_events(machine):
            if stream is None or stream.id not in machine.streams:
                continue
            if kind == state.DATA:
                machine.acknowledge_bytes(stream, len(what))
            if not machine.is_client and kind in (state.HEADERS, state.REFUSED):
                _answer(machine, stream, rng)
        machine.pump()
        check_books(machine)


def _answer(machine: Http2Machine, stream: Http2Stream, rng: Random) -> None:
    out, size = machine.outgoing, rng.choice((0, 1, 20, 70_000))
    how = rng.randrange(5)
    if how == 0:
        out.answer(stream, OK, bytes(size), DONE)
    elif how == 1:
        out.headers(stream, OK, end=False)
        out.data(stream, bytes(size), end=True)
    elif how == 2:
        out.headers(stream, OK, end=False)
        out.data(stream, bytes(size))
        out.trailers(stream, DONE)
    elif how == 3:
        machine.reset(stream, 8)
    else:
        out.headers(stream, OK, end=True)


def check_books(machine: Http2Machine) -> None:
    """Nothing is counted twice, or forgotten."""
    out, streams = machine.outgoing, machine.streams.values()
    assert out.waiting == sum(stream.queued for stream in streams), "what waits is miscounted"
    assert all(stream.queued == sum(map(len, stream.queue or ())) for stream in streams), "a queue is miscounted"
    assert out.room >= 0, "more was made than there was room for"
    assert out.window >= 0, "more was sent than the connection's window allows"
    assert len(streams) <= machine.settings.max_streams
    assert machine._window >= 0 or machine.failed
    if out.window > 0 and out.room > 0:
        assert not any(stream.queued and stream.window > 0 for stream in streams), "a stream was forgotten"


def read_http1(parts: Iterable[bytes]) -> list[tuple[Any, ...]]:
    """What the bytes of HTTP/1.1 mean: consecutive pieces of a body are one."""
    machine = h1.Http1Machine(_MOST_H1)
    found: list[tuple[Any, ...]] = []
    for part in parts:
        for kind, what, end in machine.receive(part):
            assert not (found and found[-1][0] == h1.FAULT), "something came behind the fault"
            if kind == h1.HEAD:
                head = what.head
                shown = head.method, head.target, head.authority, head.fields, head.named, *what[1:]
                found.append((kind, shown, end))
            elif kind == h1.FAULT:
                found.append((kind, what.limit, end))
            elif found and found[-1][0] == h1.BODY and not found[-1][2]:
                found[-1] = kind, found[-1][1] + what, end
            elif what or end:
                found.append((kind, what, end))
    return found
