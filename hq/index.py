"""Buckets of instances by one field, listed in order of ids."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator

from hq.entry import Entry


class Bucket:
    """Instances by id. Sorted when it is read, not when it changes: uploads come in bursts, reads are many."""

    __slots__ = ("_members", "_order")

    def __init__(self) -> None:
        self._members: dict[str, Entry] = {}
        self._order: list[str] | None = []

    def __len__(self) -> int:
        return len(self._members)

    def get(self, instance_id: str) -> Entry | None:
        return self._members.get(instance_id)

    def put(self, entry: Entry) -> None:
        """Add an instance or replace it."""
        instance_id = entry.traits.id
        if instance_id not in self._members:
            order = self._order
            if order is not None and (not order or order[-1] < instance_id):
                order.append(instance_id)
            else:
                self._order = None
        self._members[instance_id] = entry

    def drop(self, instance_id: str) -> None:
        """Take an instance out; nothing happens if it is not there."""
        if self._members.pop(instance_id, None) is not None:
            self._order = None

    def order(self) -> list[str]:
        """The ids in order. Nearly free if no instance came or went since the last time."""
        if self._order is None:
            self._order = sorted(self._members)
        return self._order

    def entries(self, after: str = "") -> Iterator[Entry]:
        """All with greater ids, in order of ids."""
        order = self.order()
        if after:
            order = order[bisect.bisect_right(order, after) :]
        return map(self._members.__getitem__, order)

    def unordered(self) -> Iterable[Entry]:
        return self._members.values()


class Index:
    """Buckets by the words that a field may hold. An empty bucket is dropped."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def words(self) -> Iterable[str]:
        """The words that at least one instance has."""
        return self._buckets.keys()

    def bucket(self, word: str) -> Bucket | None:
        return self._buckets.get(word)

    def move(self, before: Iterable[str], after: Iterable[str], instance_id: str, entry: Entry | None) -> None:
        """File an instance under the words in `after`, and no more under those that only `before` has."""
        kept = set(after)
        for word in before:
            if word not in kept:
                self._drop(word, instance_id)
        if entry is not None:
            for word in kept:
                bucket = self._buckets.get(word)
                if bucket is None:
                    bucket = self._buckets[word] = Bucket()
                bucket.put(entry)

    def _drop(self, word: str, instance_id: str) -> None:
        bucket = self._buckets.get(word)
        if bucket is not None:
            bucket.drop(instance_id)
            if not len(bucket):
                del self._buckets[word]
