"""Checkpoints: state that an earlier process saved, proved against the store before it is used.

No file is trusted by itself. The store must have the same epoch, must show what was applied last,
at its revision and with the same value, and must still hold its history from there on: the watch begins after it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from store.keys import Keys, prefix_end
from store.port import Compacted, FutureRevision, Record, Store

_REPLACED = "the store was replaced while this process was stopped"


class Footing(NamedTuple):
    """The changes applied last, as they are saved: of the value only a digest, for it may be a secret.

    Attributes:
        key, created, modified, digest: of the last put.
        at: a revision at which it is there.
        gone: the key of a deletion after it, and its revision; None: there was none.
    """

    key: bytes
    created: int
    modified: int
    digest: bytes
    at: int
    gone: tuple[bytes, int] | None

    async def find_put(self, store: Store) -> Record | None:
        """The put, if it is there unchanged. Raises Compacted, FutureRevision, Unavailable."""
        found, _ = await store.get(self.key, revision=self.at)
        same = found is not None and footing_of(found, self.at, self.gone) == self
        return found if same else None


def footing_of(put: Record, at: int, gone: tuple[bytes, int] | None) -> Footing:
    """Return the proof that the store still has this history: the last put (hashed) and the last deletion."""
    digest = hashlib.blake2b(put.value, digest_size=16).digest()
    return Footing(put.key, put.created, put.modified, digest, at, gone)


class NotKept(Exception):
    """A checkpoint is damaged, or the store does not prove it. Reset the sink, and read everything."""


class StoreCheckpoint(Protocol):
    """All keys of some kinds as they were at a version, with the proof that the store must still show."""

    @property
    def epoch(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def footing(self) -> Footing: ...

    @property
    def kinds(self) -> Sequence[str]: ...

    @property
    def key_count(self) -> int: ...

    def restore(self) -> Iterator[None]:
        """Give it to the sink, part by part. Raises NotKept."""

    def finish(self) -> None:
        """Tell the sink that all is listed."""


async def restore_checkpoint(kept: StoreCheckpoint, store: Store, epoch: str) -> Record:
    """Give a checkpoint to the sink if the store proves it; return its last put. Raises NotKept, Unavailable."""
    if kept.epoch != epoch:
        raise NotKept(f"it is of epoch {kept.epoch}, and the store is in epoch {epoch}")
    try:
        found = await kept.footing.find_put(store)
    except Compacted as error:
        raise NotKept(f"it is too old: {error}") from error
    except FutureRevision as error:
        raise NotKept(f"{_REPLACED}: it has not reached version {kept.version}") from error
    if found is None:
        raise NotKept(f"{_REPLACED}: it shows something else at version {kept.version}")
    for _ in kept.restore():
        await asyncio.sleep(0)
    return found


def other_ranges(kept: StoreCheckpoint, keys: Keys) -> Iterator[tuple[bytes, bytes]]:
    """The ranges of keys that a checkpoint leaves out, each by its start and end."""
    start = keys.prefix
    for kind in sorted(kept.kinds):
        yield start, keys.of(kind, "")
        start = prefix_end(keys.of(kind, ""))
    yield start, keys.end
