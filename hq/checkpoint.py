"""The checkpoint of a replica: written at an orderly stop, read at the next start if the store proves it.

Its format is in `memory/checkpoint_format.py`, how the store proves it in `store/kept.py`. A file that cannot be
written, or is rejected, costs the next start the time to read everything, and nothing else.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from hq import keys as k
from hq.memory.cache import Cache
from hq.memory.checkpoint_format import CheckpointHead, CheckpointReader, CheckpointWriter, Damaged
from hq.memory.history import History, VersionEvents, steps_from_tuples
from hq.memory.query import Query
from hqpb.v1 import service_pb2
from serving.process import long_lived
from store.kept import Footing, NotKept

log = logging.getLogger(__name__)

_NEW = ".new"
_OVER = object()
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO or a link would be somebody else's


def save(
    path: Path,
    cache: Cache,
    history: History,
    prefix: bytes,
    footing: Footing | None,
    silence: tuple[bytes, ...] = (),
) -> None:
    """Write all instances and the history to a file, in place of an existing one, which is removed in any case."""
    began = time.monotonic()
    _drop(path, *_unfinished_files(path))
    if footing is None or footing.modified > cache.version or not cache.epoch or not cache.is_whole():
        log.warning("no checkpoint at %s: records are in quarantine (hqctl quarantine), or memory is incomplete", path)
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made, name = tempfile.mkstemp(_NEW, f"{path.name}.", path.parent)  # for this user only
        with os.fdopen(made, "wb") as file:
            _write(file, cache, history, prefix, footing, silence)
        Path(name).replace(path)
    except (OSError, ValueError) as error:
        log.warning("no checkpoint at %s, so the next start reads everything: %s", path, error)
        _drop(*_unfinished_files(path))
        return
    log.info("checkpoint of %d instances at %s, in %.1f s", len(cache), path, time.monotonic() - began)


def _unfinished_files(path: Path) -> Iterable[Path]:
    """Unfinished files of this name, whose writer was killed or failed."""
    return path.parent.glob(f"{path.name}.*{_NEW}")


def _drop(*paths: Path) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink()


def _write(
    file: BinaryIO, cache: Cache, history: History, prefix: bytes, footing: Footing, silence: tuple[bytes, ...]
) -> None:
    keys = len(cache) + sum(bool(entry.status_version) for entry in cache.entries())
    stored_bytes = sum(entry.stored_bytes() for entry in cache.entries())
    sizes = len(cache), keys, stored_bytes, len(history), history.complete_after
    writer = CheckpointWriter(file, CheckpointHead(prefix, cache.epoch, cache.version, footing, *sizes, silence))
    for part in cache.matching(Query(service_pb2.InstanceFilter())):
        writer.add([entry.as_tuple() for entry in part])
    for steps in history.step_tuples():
        writer.add(steps)


class Checkpoint:
    """A checkpoint in a file: a follower's `kept`."""

    kinds = (k.SPEC, k.STATUS)

    def __init__(
        self,
        path: Path,
        head: CheckpointHead,
        cache: Cache,
        history: History,
        take: Callable[[tuple[bytes, ...]], None],
    ) -> None:
        self._path, self._head, self._cache, self._history, self._take = path, head, cache, history, take
        self._steps: list[VersionEvents] = []
        self.epoch, self.version, self.footing, self.key_count = head.epoch, head.version, head.footing, head.keys

    def restore(self) -> Iterator[None]:
        """Take all instances into the cache, part by part. Raises NotKept."""
        try:
            with _open_trusted(self._path) as file:
                reader = CheckpointReader(file)
                if reader.head != self._head:
                    raise NotKept("the file was replaced")
                yield from _each_long_lived(reader.parts(self._head.instances, self._cache.recall))
                self._steps.clear()
                yield from reader.parts(self._head.steps, lambda part: self._steps.extend(steps_from_tuples(part)))
                reader.end()
        except (OSError, Damaged) as error:
            raise NotKept(str(error)) from error
        self._cache.stored_bytes += self._head.stored_bytes

    def finish(self) -> None:
        """Let watches resume from where they could before, and silence go on."""
        self._take(self._head.silence)
        self._history.recall(self._head.complete_after, self._steps)
        self._steps.clear()


def _each_long_lived(parts: Iterator[None]) -> Iterator[None]:
    """Take each part, and spare what it makes from garbage collection."""
    while True:
        with long_lived():
            is_over = next(parts, _OVER) is _OVER
        if is_over:
            return
        yield


def find_checkpoint(
    path: Path,
    cache: Cache,
    history: History,
    prefix: bytes,
    take_silence: Callable[[tuple[bytes, ...]], None] = lambda _: None,
) -> Checkpoint | None:
    """The checkpoint at a path; None: there is none that could be of this store."""
    try:
        with _open_trusted(path) as file:
            head = CheckpointReader(file).head
        if head.prefix == prefix:
            return Checkpoint(path, head, cache, history, take_silence)
        log.warning("the checkpoint at %s is of prefix %s: reading everything", path, head.prefix.decode())
    except FileNotFoundError:
        log.info("no checkpoint at %s: reading everything", path)
    except (OSError, Damaged) as error:
        log.warning("the checkpoint at %s cannot be read: reading everything: %s", path, error)
    return None


def _open_trusted(path: Path) -> BinaryIO:
    """Open it for reading, if nobody else can have written it. Raises Damaged, OSError."""
    file = os.fdopen(os.open(path, _FLAGS), "rb")
    state = os.fstat(file.fileno())
    if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o022:
        file.close()
        raise Damaged("it is not a plain file that belongs to this user, writable by nobody else")
    return file
