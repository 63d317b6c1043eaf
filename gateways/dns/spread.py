"""Which records an address gets where not all can be sent: always the same ones, while they are there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

_SLOTS: Final = 1_024  # a power of two: an odd step reaches them all


class Spread:
    """Orders records separately for each address, the same way in every process.

    Records lie in slots by a digest of their own, and each address goes through the slots in its own order. So a record
    more or less changes one record of a choice, and all records are chosen equally often. A choice costs what it finds,
    however many records there are: who asks can forge many source addresses.
    """

    def __init__(self, records: Sequence[bytes]) -> None:
        self._slots: list[list[int]] = [[] for _ in range(_SLOTS)]
        for number, record in enumerate(records):
            self._slots[_digest(record) % _SLOTS].append(number)

    def order(self, address: str) -> Iterator[int]:
        """The numbers of all records, the preferred ones first."""
        digest = _digest(address.encode())
        at, step = digest >> 32, digest | 1
        for _ in range(_SLOTS):
            yield from self._slots[at % _SLOTS]
            at += step


def _digest(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")
