"""Buckets hold many instances in order, and lend them to readers."""

from __future__ import annotations

import itertools
import random

import pytest

from hq.memory.bucket import Bucket
from hq.memory.entry import Entry
from tests.support.cache_entries import entry


def listed(bucket: Bucket, after: str = "") -> list[Entry]:
    return [one for block in bucket.lend(after) for one in block]


@pytest.mark.parametrize("count", [0, 1, 512, 1_024, 1_025, 5_000])
@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_a_bucket_is_in_order_of_ids_however_it_was_filled(count: int, order: str) -> None:
    entries = [entry(f"i-{number:05d}") for number in range(count)]
    given = entries[:: -1 if order == "descending" else 1]
    if order == "shuffled":
        random.Random(count).shuffle(given)
    bucket = Bucket()
    for one in given:
        if not bucket.append(one):
            bucket.put(one)
    assert listed(bucket) == entries
    assert len(bucket) == count
    for after in ("", "i-00000", "i-00511", "i-00512", "i-00700x", "i-04999", "z"):
        assert listed(bucket, after) == [one for one in entries if one.traits.id > after]


def test_a_bucket_follows_any_changes_and_lent_entries_do_not_change() -> None:
    chance = random.Random(7)
    bucket = Bucket()
    model: dict[str, Entry] = {}
    pool = [entry(f"i-{number:04d}") for number in range(3_000)]
    again = [entry(f"i-{number:04d}", version=2) for number in range(3_000)]
    lent: list[tuple[list[object], list[Entry]]] = []
    for turn in range(12_000):
        number = chance.randrange(3_000)
        if chance.random() < (0.35 if turn < 6_000 else 0.7):
            bucket.drop(pool[number].traits.id)
            model.pop(pool[number].traits.id, None)
        else:
            one = chance.choice((pool, again))[number]
            bucket.put(one)
            model[one.traits.id] = one
        if turn % 1_500 == 0:
            lent.append((list(bucket.lend()), [model[i] for i in sorted(model)]))
    assert listed(bucket) == [model[i] for i in sorted(model)]
    assert len(bucket) == len(model)
    for blocks, as_it_was in lent:
        assert [one for block in blocks for one in block] == as_it_was  # type: ignore[attr-defined]


def test_dropping_an_absent_instance_changes_nothing() -> None:
    bucket = Bucket()
    bucket.drop("x")
    bucket.put(entry("b"))
    for absent in ("a", "c", "bb"):
        bucket.drop(absent)
    assert len(bucket) == 1
    bucket.drop("b")
    assert listed(bucket) == listed(bucket, "a") == []


@pytest.mark.parametrize("parts", [(3, 0, 2), (600, 600, 600), (1_500, 1), (1, 1_500)])
def test_a_bucket_takes_many_at_once_in_order_or_among_others(parts: tuple[int, ...]) -> None:
    in_order, mixed, ids = Bucket(), Bucket(), iter(range(sum(parts)))
    for count in parts:
        entries = [entry(f"i-{number:05d}") for number in itertools.islice(ids, count)]
        in_order.extend(entries)
        in_order.lend()
    for start in (1, 0):
        mixed.extend([entry(f"i-{number:05d}") for number in range(start, sum(parts), 2)])
    for bucket in (in_order, mixed):
        found = [one.traits.id for block in bucket.lend() for one in block]
        assert found == [f"i-{number:05d}" for number in range(sum(parts))]
        assert len(bucket) == len(found)
