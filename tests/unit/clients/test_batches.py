"""Batches are split so that each fits in a request."""

from __future__ import annotations

import pytest

from hqclient.batches import split_batches

HALF = 1 << 19


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ([], []),
        ([1, 1, 1, 1], [[1, 1, 1], [1]]),
        ([HALF, HALF, 1], [[HALF, HALF], [1]]),
        ([1, 4 * HALF, 1], [[1], [4 * HALF], [1]]),
    ],
)
def test_a_batch_is_limited_in_items_and_to_one_mib(sizes: list[int], batches: list[list[int]]) -> None:
    assert list(split_batches(sizes, 3, lambda size: size)) == batches
