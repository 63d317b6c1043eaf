"""Where the wanted state comes from: the updates of a source, the state so far, and a source that reads a file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hqcli.documents import BadDocument
from hqcli.instances import read_documents
from hqpb.v1.instance_pb2 import Instance
from instancectl.clock import InstancectlClock
from instancectl.wanted.desired import Desired, from_instance

log = logging.getLogger(__name__)
_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class DesiredUpdate:
    """This is wanted. `afresh`: the instance was recreated (new uid), so nothing of the earlier one may stay."""

    desired: Desired
    afresh: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The instance was deleted, or (`moved`) lives on another node now: then its data stay where they are."""

    moved: bool
    message: str


@dataclass(frozen=True, slots=True)
class SourceTrouble:
    """The source cannot be read or cannot be trusted. The last wanted state still holds."""

    message: str


Update = DesiredUpdate | Gone | SourceTrouble


class DesiredSource(Protocol):
    """A source of the wanted state."""

    def updates(self) -> AsyncGenerator[Update, None]:
        """Yield the wanted state, then every change. Never ends by itself."""
        ...

    def look_again(self) -> None:
        """Read the source again soon: there is reason to think that it changed."""
        ...


class Wishes:
    """Follows a source. If it cannot be read at the start, the last good copy is used.

    Args:
        last_good: the wanted state when the source was last read; None: it never was.
        changed: called after each update.

    Attributes:
        last_good: as above, kept up to date.
        gone: the instance was deleted or moved; None: it was not.
        trouble: why the source cannot be read or trusted; empty: it can.
    """

    def __init__(self, source: DesiredSource, last_good: Desired | None, changed: Callable[[], None]) -> None:
        self.last_good = last_good
        self.gone: Gone | None = None
        self.trouble = ""
        self._source = source
        self._changed = changed
        self._next: DesiredUpdate | None = None
        self._is_known = False

    def look_again(self) -> None:
        """Read the source again soon: there is reason to think that it changed."""
        self._source.look_again()

    async def follow(self) -> None:
        """Read the source until cancelled."""
        async with aclosing(self._source.updates()) as updates:
            async for update in updates:
                self._apply_update(update)
                self._changed()

    async def hear_once(self) -> None:
        """Read the source once."""
        async with aclosing(self._source.updates()) as updates:
            self._apply_update(await anext(updates))

    def take(self) -> DesiredUpdate | None:
        """Return the wanted state, if it was not taken yet."""
        asked, self._next = self._next, None
        if asked is not None:
            self.last_good = asked.desired
            self._is_known = True
        return asked

    def _apply_update(self, update: Update) -> None:
        match update:
            case DesiredUpdate():
                overtaken = self._next is not None and self._next.afresh
                self._next = DesiredUpdate(update.desired, update.afresh or overtaken)
                self.trouble = ""
            case Gone():
                self.gone = update
            case SourceTrouble():
                self._set_trouble(update.message)

    def _set_trouble(self, message: str) -> None:
        if message != self.trouble:
            log.warning("%s", message)
        self.trouble = message
        if not self._is_known and self._next is None and self.last_good is not None:
            log.warning("continuing with the last good copy, version %d", self.last_good.version)
            self._next = DesiredUpdate(self.last_good)


class FileSource:
    """One file with one instance. `node` is used if the file names none."""

    def __init__(self, path: Path, node: str, clock: InstancectlClock) -> None:
        self._path = path
        self._node = node
        self._clock = clock
        self._asked = asyncio.Event()

    def look_again(self) -> None:
        self._asked.set()

    async def updates(self) -> AsyncGenerator[Update, None]:
        seen: tuple[int, int, int] | None = None
        while True:
            found = self._stamp()
            if found != seen or self._asked.is_set():
                seen = found
                self._asked.clear()
                yield self._read_update()
            await self._clock.sleep(_LOOK_S)

    def _read_update(self) -> Update:
        try:
            return DesiredUpdate(read_desired(self._path, self._node))
        except BadDocument as error:
            return SourceTrouble(f"{error}; waiting for a corrected file")

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0, 0
        return found.st_ino, found.st_mtime_ns, found.st_size


def read_desired(path: Path, node: str) -> Desired:
    """Read the wanted state from a file. Raises BadDocument: with a line for each fault."""
    return from_instance(read_instance(path), node)


def read_instance(path: Path) -> Instance:
    """The one instance in a file. Raises BadDocument."""
    documents = read_documents((str(path),))
    if len(documents) != 1:
        raise BadDocument(f"{path}: holds {len(documents)} instances; give a file with exactly one")
    return documents[0].instance
