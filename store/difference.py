"""What a listing shows otherwise than it is known, found page by page: of what is the same, only keys are held."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from store.port import Change, Record

_KEYS_PER_TURN = 2_000  # some 2 ms


class Difference:
    """Collects the changes behind a revision.

    Attributes:
        changes: puts that came behind it, a key at most once.
        key_count: how many keys were listed.
    """

    def __init__(self, since: int) -> None:
        self._since = since
        self._unseen: set[bytes] = set()
        self.changes: list[Change] = []
        self.key_count = 0

    async def know(self, keys: Iterable[bytes]) -> None:
        """These were there; before the first page. The loop has turns meanwhile: nobody may change them."""
        left = iter(keys)
        while portion := list(islice(left, _KEYS_PER_TURN)):
            self._unseen.update(portion)
            await asyncio.sleep(0)

    def see(self, records: Sequence[Record]) -> None:
        """A page of the listing."""
        self.key_count += len(records)
        self._unseen.difference_update([record.key for record in records])
        self.changes += [Change(*record) for record in records if record.modified > self._since]

    def gone(self, revision: int) -> Iterator[Change]:
        """What was there and is not listed, when all pages were seen."""
        return (Change(key, None, 0, revision) for key in self._unseen)
