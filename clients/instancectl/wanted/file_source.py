"""The wanted state from a file: proto3 JSON of hq.v1.Instance, as YAML or JSON. Read again when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from hqcli.documents import BadDocument
from hqctl.manifests.documents import read_documents
from hqpb.v1.instance_pb2 import Instance
from instancectl.clock import Clock
from instancectl.wanted.desired import Desired, from_instance
from instancectl.wanted.source import Asked, Trouble, Update

_LOOK_S = 1.0


class FileSource:
    """One file with one instance. `node` is used where the file names none."""

    def __init__(self, path: Path, node: str, clock: Clock) -> None:
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
                yield self._read()
            await self._clock.sleep(_LOOK_S)

    def _read(self) -> Update:
        try:
            return Asked(read(self._path, self._node))
        except BadDocument as error:
            return Trouble(f"{error}; waiting for a corrected file")

    def _stamp(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return 0, 0, 0
        return found.st_ino, found.st_mtime_ns, found.st_size


def read(path: Path, node: str) -> Desired:
    """What a file asks for. Raises BadDocument: with a line for each fault."""
    return from_instance(read_one(path), node)


def read_one(path: Path) -> Instance:
    """The one instance in a file. Raises BadDocument."""
    documents = read_documents((str(path),))
    if len(documents) != 1:
        raise BadDocument(f"{path}: holds {len(documents)} instances; give a file with exactly one")
    return documents[0].instance
