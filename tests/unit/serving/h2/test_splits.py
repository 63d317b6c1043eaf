"""However the bytes come, they mean the same; and whatever they are, nothing raises."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from serving.h2.machine import Http2Machine
from serving.h2.state import FAILED, Http2Settings
from tests.fuzz.sides import client_with_calls, drive, pieces, read, spoken
from tests.fuzz.talk import Talk, spoiled
from tests.support.h2_peer import sent, tell

SEEDS = st.integers(0, 1 << 60)


@settings(max_examples=4 * settings().max_examples)
@given(SEEDS)
def test_a_server_reads_the_same_however_a_conversation_is_cut(seed: int) -> None:
    rng = Random(seed)
    said = b"".join(Talk(rng, is_server=False).frames())
    assert read(Http2Machine(Http2Settings()), pieces(rng, said)) == read(Http2Machine(Http2Settings()), [said])


@settings(max_examples=4 * settings().max_examples)
@given(SEEDS)
def test_a_client_reads_the_same_however_a_conversation_is_cut(seed: int) -> None:
    rng = Random(seed)
    said = b"".join(Talk(rng, is_server=True).frames())
    assert read(client_with_calls(), pieces(rng, said)) == read(client_with_calls(), [said])


@settings(max_examples=8 * settings().max_examples)
@given(SEEDS)
def test_a_spoiled_conversation_raises_nothing_and_reads_the_same_however_it_is_cut(seed: int) -> None:
    rng = Random(seed)
    is_server = rng.random() < 0.5
    said = spoiled(rng, Talk(rng, is_server=is_server).frames(), Talk(rng, is_server=is_server).frames())
    make = client_with_calls if is_server else lambda: Http2Machine(Http2Settings())
    assert read(make(), pieces(rng, said)) == read(make(), [said])
    drive(make(), pieces(rng, said), rng)


@given(SEEDS)
def test_bytes_one_by_one_are_read_as_all_at_once(seed: int) -> None:
    said = b"".join(Talk(Random(seed), is_server=False).frames())
    assert read(Http2Machine(Http2Settings()), spoken(said)) == read(Http2Machine(Http2Settings()), [said])


@given(st.binary(max_size=100))
def test_random_bytes_are_not_http2_and_fail_once(said: bytes) -> None:
    machine = Http2Machine(Http2Settings())
    events = tell(machine, said, said)
    assert [kind for kind, *_ in events] in ([], [FAILED])


def test_nothing_is_read_after_a_fault() -> None:
    machine = Http2Machine(Http2Settings())
    assert len(tell(machine, b"GET / HTTP/1.1\r\n\r\n")) == 1
    before = len(sent(machine))
    assert tell(machine, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == []
    assert before
    assert not sent(machine)
