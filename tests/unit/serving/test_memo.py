"""Parsed requests are remembered: the newest ones, up to a number and up to a size."""

from __future__ import annotations

from collections import Counter

from serving.encoding.parsing import Memo


def test_repeated_requests_are_parsed_once_and_the_cache_is_bounded() -> None:
    parsed: Counter[bytes] = Counter()

    def parse(body: bytes) -> bytes:
        parsed[body] += 1
        return body.upper()

    memo = Memo(parse, size=32)
    for number in range(100):
        body = f"r{number}".encode()
        assert memo(body) == memo(body) == body.upper()
        assert 30 <= len(memo._kept) <= 32 or number < 32
    assert set(parsed.values()) == {1}
    memo(b"r99")
    memo(b"r0")
    assert (parsed[b"r99"], parsed[b"r0"]) == (1, 2)


def test_long_requests_are_not_remembered() -> None:
    memo = Memo(len, size=32)
    assert memo(b"x" * 5_000) == 5_000
    assert not memo._kept


def test_large_requests_are_remembered_within_a_bound_of_bytes() -> None:
    memo: Memo[bytes] = Memo(bytes)
    for number in range(3_000):
        memo(b"%04d" % number * 1_000)
    assert 900_000 < sum(map(len, memo._kept)) <= 1 << 20
    assert memo._bytes == sum(map(len, memo._kept))
