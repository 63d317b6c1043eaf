"""gzip within bounds."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc

import pytest

from serving.encoding import gzipping
from serving.errors import InvalidRequest, TooLarge

MIB = 1024 * 1024


async def test_compressed_data_comes_back_unchanged() -> None:
    for size in (0, 1, 1_000_000):
        data = bytes(range(256)) * (size // 256 + 1)
        assert await gzipping.decompress(await gzipping.compress(data, 1), len(data)) == data


async def test_the_limit_is_inclusive() -> None:
    data = gzip.compress(b"x" * 1_000)
    assert await gzipping.decompress(data, 1_000) == b"x" * 1_000
    with pytest.raises(TooLarge):
        await gzipping.decompress(data, 999)


async def test_the_limit_holds_over_all_members_together() -> None:
    with pytest.raises(TooLarge):
        await gzipping.decompress(gzip.compress(b"x" * 600) * 2, 1_000)


def test_the_time_for_many_small_members_is_linear_in_their_bytes() -> None:
    one = gzip.compress(b"", 1)
    began = time.thread_time()
    assert gzipping.decompress_sync(one * (4 * MIB // len(one)), 1) == b""
    assert time.thread_time() - began < 3  # 0.3 s; copying the rest behind each member: 9 s


async def test_members_that_lie_across_the_pieces_of_input_come_back_whole() -> None:
    parts = [bytes((n,)) * (n * 997 % 9_000) + random.Random(n).randbytes(n * 331 % 9_000) for n in range(20)]
    data = b"".join(map(gzip.compress, parts))
    whole = b"".join(parts)
    assert await gzipping.decompress(data, len(whole)) == whole
    with pytest.raises(TooLarge):
        await gzipping.decompress(data, len(whole) - 1)


async def test_a_bomb_is_never_held_in_memory() -> None:
    bomb = gzip.compress(b"\0" * (100 * MIB), 9)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            await gzipping.decompress(bomb, MIB)
        assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cut", [1, 8, 15])
async def test_data_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(InvalidRequest, match="truncated"):
        await gzipping.decompress(gzip.compress(b"hello")[:-cut], 1_000)
