"""Some thousand inputs of the frame fuzzer in every run of the tests; `python -m tests.fuzz.frames` takes its time."""

from __future__ import annotations

import os

import pytest

from tests.fuzz import frames

SEED = int(os.environ.get("HQ_FUZZ_SEED", "20261122"))


@pytest.mark.long
def test_a_spoiled_conversation_neither_raises_nor_reads_differently_in_pieces_nor_breaks_the_accounts() -> None:
    found = frames.run(SEED, range(6_000))
    assert not found, "\n".join(f"{one.kind} {one.number}: {one.what}\n  {one.smallest!r}" for one in found)


@pytest.mark.long
def test_the_same_seed_makes_the_same_conversations() -> None:
    def made(seed: int) -> list[tuple[str, bytes]]:
        return [frames.Maker(seed).make(number) for number in range(8)]

    assert made(1) == made(1) != made(2)


def test_a_finding_is_reduced_to_its_smallest_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(said: bytes, _seed: int) -> None:
        assert not (b"\r\n" in said and b"c" in said), "broken"

    monkeypatch.setitem(frames.CHECKS, "http1", faulty)
    assert sorted(frames.smallest("http1", b"GET / HTTP/1.1\r\ncookie: a\r\n\r\n", 0, "AssertionError: broken")) == [
        10,
        13,
        99,
    ]
