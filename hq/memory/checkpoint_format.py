"""The instances that a replica held when it stopped, as bytes: reading them takes a fifth of the time of rebuilding.

A file is a line that says which versions can read it, a random word, then blocks: each is its length, a digest of it
and of all before it, and plain tuples encoded by `marshal`. The first block is the head, then come instances in order
of ids, then the history that watches resume from. To lose the file costs only time; secrets are left out. Whether its
contents still hold is decided elsewhere: `store/kept.py` asks the store.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, NamedTuple

from hq.memory.entry import Entry
from hq.memory.frames import Shape
from hq.memory.history import WatchedEvent
from hq.memory.record import Mark, Traits
from store.kept import Footing

_FORMAT: Final = 2  # of what `as_tuple` returns: increase it when the meaning of a field changes
_KEPT: Final = (Traits._fields, Mark.__slots__, Entry.__slots__, WatchedEvent.__slots__, Shape._fields, Footing._fields)
# marshal writes for its own version of Python.
_LINE: Final = b"hq checkpoint %d %s %s\n" % (
    _FORMAT,
    hashlib.blake2b(repr(_KEPT).encode(), digest_size=4).hexdigest().encode(),
    str(sys.implementation.cache_tag).encode(),
)
_BLOCK: Final = struct.Struct("<Q16s")
_WORD_BYTES: Final = 16
_UNREADABLE = (ValueError, TypeError, EOFError, OverflowError, MemoryError, KeyError, AttributeError)


class Damaged(Exception):
    """The file is damaged, or not for this version."""


class CheckpointHead(NamedTuple):
    """The head of a file: how much it holds, and as of when.

    Attributes:
        prefix: of the keys in the store.
        epoch, version: of the store, when everything up to this version was in memory.
        footing: what the store must still show.
        instances, keys, stored_bytes: of all instances: how many, their keys in the store, the bytes of their records.
        steps, complete_after: of the history: how many, and since when.
        silence: who was silent, and for how long: encoded records.
    """

    prefix: bytes
    epoch: str
    version: int
    footing: Footing
    instances: int
    keys: int
    stored_bytes: int
    steps: int
    complete_after: int
    silence: tuple[bytes, ...]


class CheckpointWriter:
    """Writes a file. Raises OSError."""

    def __init__(self, file: BinaryIO, head: CheckpointHead) -> None:
        self._file, self._last = file, os.urandom(_WORD_BYTES)
        file.write(_LINE + self._last)
        self.add((*head[:3], tuple(head.footing), *head[4:]))

    def add(self, block: Any) -> None:
        """Add what `as_tuple` returned for the next instances, in order of ids; then for the steps of the history."""
        data = marshal.dumps(block)
        self._last = _digest(self._last, data)
        self._file.write(_BLOCK.pack(len(data), self._last))
        self._file.write(data)


class CheckpointReader:
    """Reads a file: its head at once. Raises Damaged, OSError."""

    def __init__(self, file: BinaryIO) -> None:
        line = file.readline(len(_LINE) + 80)
        if line != _LINE:
            raise Damaged(f"it begins with {line[:60]!r}, not with {_LINE!r}")
        self._file, self._last = file, file.read(_WORD_BYTES)
        with _damaged_if_unreadable():
            prefix, epoch, version, footing, *counts = self._read_block()
            self.head = CheckpointHead(prefix, epoch, version, Footing(*footing), *counts)

    def parts(self, count: int, take: Callable[[list[tuple[Any, ...]]], None]) -> Iterator[None]:
        """Pass the next `count` items to `take`, part by part. Raises Damaged, also if the parts do not add up."""
        left = count
        while left > 0:
            with _damaged_if_unreadable():
                part = self._read_block()
                left -= len(part) or left + 1
                take(part)
            yield
        if left:
            raise Damaged("its parts do not match its table of contents")

    def end(self) -> None:
        """Raises Damaged: more data follow."""
        if self._file.read(1):
            raise Damaged("there are bytes after its end")

    def _read_block(self) -> Any:
        begun = self._file.read(_BLOCK.size)
        if len(begun) < _BLOCK.size:
            raise Damaged("it is truncated")
        size, digest = _BLOCK.unpack(begun)
        data = self._file.read(size)
        if len(data) != size or _digest(self._last, data) != digest:  # before anything is made of it
            raise Damaged("a digest in it does not match")
        self._last = digest
        return marshal.loads(data)  # nosec B302  # nobody else can write the file: its opener checked


@contextmanager
def _damaged_if_unreadable() -> Iterator[None]:
    try:
        yield
    except _UNREADABLE as error:
        raise Damaged(f"its contents cannot be decoded: {error!r}") from error


def _digest(last: bytes, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16, key=last).digest()
