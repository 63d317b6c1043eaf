"""The checkpoint of a replica: written when it stops in order, read when it starts, if the store proves it.

What its instances are is `memory/checkpoint.py`, how the store proves it `store/kept.py`. A file that cannot be written
or is not believed costs the next start the time to read everything, and nothing else.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hq import keys as k
from hq.memory import checkpoint
from hq.memory.cache import Cache
from hq.memory.query import Query
from hqpb.v1 import service_pb2
from store.kept import Footing, NotKept

log = logging.getLogger(__name__)


def save(path: Path, cache: Cache, prefix: bytes, footing: Footing | None) -> None:
    """Write all instances to a file, in place of the one that is there; that one goes in any case."""
    began = time.monotonic()
    with suppress(OSError):
        path.unlink()
    if footing is None or not cache.epoch or not cache.is_whole():
        return
    versions = cache.epoch, cache.version
    keys = len(cache) + sum(bool(entry.status_version) for entry in cache.entries())
    stored_bytes = sum(entry.stored_bytes() for entry in cache.entries())
    head = checkpoint.Head(prefix, *versions, footing, len(cache), keys, stored_bytes)
    everything = cache.matching(Query(service_pb2.InstanceFilter()))
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            checkpoint.write(file, head, everything)
        new.replace(path)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        log.warning("no checkpoint at %s, so the next start reads everything: %s", path, error)
        return
    log.info("checkpoint of %d instances at %s, in %.1f s", len(cache), path, time.monotonic() - began)


class Checkpoint:
    """One that lies in a file: what is kept, for a follower."""

    kinds = (k.SPEC, k.STATUS)

    def __init__(self, path: Path, head: checkpoint.Head, cache: Cache) -> None:
        self._path, self._head, self._cache = path, head, cache
        self.epoch, self.version, self.footing, self.key_count = head.epoch, head.version, head.footing, head.keys

    def restore(self) -> Iterator[None]:
        """Take all instances into the cache, part by part. Raises NotKept."""
        try:
            with self._path.open("rb") as file:
                if checkpoint.read_head(file) != self._head:
                    raise NotKept("the file was replaced")
                for part in checkpoint.read(file, self._head):
                    self._cache.recall(part)
                    yield
        except (OSError, checkpoint.Damaged) as error:
            raise NotKept(str(error)) from error
        self._cache.stored_bytes += self._head.stored_bytes


def found(path: Path, cache: Cache, prefix: bytes) -> Checkpoint | None:
    """The one at a path; None: there is none that could be of this store."""
    try:
        with path.open("rb") as file:
            head = checkpoint.read_head(file)
        if head.prefix == prefix:
            return Checkpoint(path, head, cache)
        log.warning("the checkpoint at %s is of prefix %s: reading everything", path, head.prefix.decode())
    except FileNotFoundError:
        log.info("no checkpoint at %s: reading everything", path)
    except (OSError, checkpoint.Damaged) as error:
        log.warning("the checkpoint at %s cannot be read: reading everything: %s", path, error)
    return None
