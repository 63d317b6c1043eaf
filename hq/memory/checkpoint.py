"""The instances that a replica held when it stopped, as bytes: to read them takes a fifth of working them out again.

A file is a line that says who can read it, then blocks: their length, a digest, and what `marshal` makes of plain
tuples. The first block is the head, all others are instances in order of ids. There is nothing in it that etcd does not
hold; secrets are left out. Whether to believe it is not known here: `store/kept.py` asks the store.
"""

from __future__ import annotations

import hashlib
import marshal
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Final, NamedTuple

from hq.memory.entry import Entry
from store.kept import Footing

_FORMAT: Final = 1  # of what Entry.kept makes
# marshal writes for its own version of Python.
_LINE: Final = f"hq checkpoint {_FORMAT} {sys.implementation.cache_tag}\n".encode()
_BLOCK: Final = struct.Struct("<I16s")
_LARGEST: Final = 256 << 20


class Damaged(Exception):
    """The file is not what was written, or not for this version."""


class Head(NamedTuple):
    """What a file holds, and when.

    Attributes:
        prefix: of the keys in the store.
        epoch, version: of the store, when everything up to this version was in memory.
        footing: what the store must still show.
        instances, keys, stored_bytes: of all instances: how many, their keys in the store, the bytes of their records.
    """

    prefix: bytes
    epoch: str
    version: int
    footing: Footing
    instances: int
    keys: int
    stored_bytes: int


def write(file: BinaryIO, head: Head, parts: Iterable[Sequence[Entry]]) -> None:
    """Write all of it. Raises OSError."""
    file.write(_LINE)
    _write_block(file, (*head[:3], tuple(head.footing), *head[4:]))
    for part in parts:
        _write_block(file, [entry.kept() for entry in part])


def read_head(file: BinaryIO) -> Head:
    """The head, from the beginning of a file. Raises Damaged, OSError."""
    line = file.readline(len(_LINE) + 80)
    if line != _LINE:
        raise Damaged(f"it begins with {line[:60]!r} and not with {_LINE!r}")
    prefix, epoch, version, footing, *counts = _read_block(file)
    return Head(prefix, epoch, version, Footing(*footing), *counts)


def read(file: BinaryIO, head: Head) -> Iterator[list[tuple[Any, ...]]]:
    """What Entry.kept made of all instances, behind the head. Raises Damaged, also if there are fewer; OSError."""
    left = head.instances
    while left > 0:
        part = _read_block(file)
        left -= len(part) or left + 1
        yield part
    if left or file.read(1):
        raise Damaged("it holds more or fewer instances than it says")


def _write_block(file: BinaryIO, what: Any) -> None:
    data = marshal.dumps(what)
    file.write(_BLOCK.pack(len(data), _digest(data)))
    file.write(data)


def _read_block(file: BinaryIO) -> Any:
    begun = file.read(_BLOCK.size)
    if len(begun) < _BLOCK.size:
        raise Damaged("it ends too early")
    size, digest = _BLOCK.unpack(begun)
    data = file.read(min(size, _LARGEST))
    if len(data) != size or _digest(data) != digest:  # before anything is made of it: marshal trusts its input
        raise Damaged("a digest in it does not fit what it is of")
    return marshal.loads(data)  # nosec B302  # the file is its owner's alone


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
