"""All records of a controller in memory, in step with the store: the sink of the follower."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, Protocol

from google.protobuf.message import Message

from control.records import Kind, M, Records
from store.keys import RESTORE, Keys
from store.port import Batch, KeyChange, Record, Unavailable

log = logging.getLogger(__name__)

STILL_LOADING: Final = "this process is still loading: retry, or use another process"


class Observer(Protocol):
    """Called with each batch before memory shows it."""

    def __call__(self, batch: Batch, *, collapsed: bool) -> None: ...


class Memory:
    """Tables by kind.

    Attributes:
        version: everything up to this store revision is included.
        restoring: a backup is being restored, so the store is incomplete.
        before, after: called with each batch, before and after memory shows it.
        forget: called when everything is reread, perhaps from another history.
    """

    def __init__(self, names: Keys) -> None:
        self._names = names
        self._tables: dict[str, Records[Message]] = {}
        self.version = 0
        self.restoring = False
        self.before: list[Observer] = []
        self.after: list[Callable[[Batch], None]] = []
        self.forget: list[Callable[[], None]] = []
        self._moved = asyncio.Event()
        self._resets = 0
        self._is_sealed = False

    def table(self, kind: Kind[M]) -> Records[M]:
        """The table of a kind, made at the first call. Raises ValueError after the first listing."""
        table = self._tables.get(kind.name)
        if table is None:
            if self._is_sealed:  # otherwise it would look empty
                raise ValueError(f"kind {kind.name} is not followed: declare it before the controller runs")
            of_kind: Records[Any] = Records(kind, lambda record_id: self._names.of(kind.name, record_id).decode())
            table = self._tables[kind.name] = of_kind
        elif table.kind != kind:
            raise ValueError(f"two kinds of records are named {kind.name}")
        return table  # type: ignore[return-value]

    def seal(self) -> None:
        """Call before tables are filled: from then on no more can be made."""
        self._is_sealed = True

    async def wait_for_version(self, version: int) -> None:
        """Return when everything up to a version is in, however long it takes. Raises Unavailable on a new epoch."""
        resets = self._resets
        while self.version < version:
            await self._moved.wait()
            if self._resets != resets:
                raise Unavailable("the store was restored or replaced")

    async def shown_soon(self, version: int, timeout_s: float) -> None:
        """Wait likewise, but return when the time is over, too, or on a new epoch."""
        if self.version < version:
            with suppress(TimeoutError, Unavailable):
                async with asyncio.timeout(timeout_s):
                    await self.wait_for_version(version)

    def why_incomplete(self) -> str:
        """Why this is not all that the store has; empty: nothing says so."""
        if self.restoring:
            return "a restore is in progress or was interrupted: wait for it, or complete it with `hq restore`"
        return "" if self.version else STILL_LOADING

    # --- the follower's sink ----------------------------------------------------------------------------------------

    def reset(self) -> None:
        for forget in self.forget:
            forget()
        for table in self._tables.values():
            table.clear()
        self.restoring = False
        self._resets += 1
        self._move(0)

    def load(self, records: list[Record]) -> None:
        for record in records:
            self._take(KeyChange(record.key, record.value, record.created, record.modified))

    def on_listing_complete(self, revision: int) -> None:
        self._move(revision)
        for table in self._tables.values():
            for record_id in list(table.ids()):
                table.tell(record_id)

    def apply(self, batch: Batch, *, collapsed: bool) -> None:
        for observe in self.before:
            observe(batch, collapsed=collapsed)
        told = [self._take(change) for change in batch.changes]
        self._move(batch.revision)
        for table, record_id in filter(None, told):
            table.tell(record_id)
        for tell in self.after:
            tell(batch)

    def connection(self, up: bool) -> None:
        log.info("the watch on the store is %s", "open" if up else "closed")

    def version_of(self, key: bytes) -> int | None:
        kind, record_id = self._names.name(key)
        table = self._tables.get(kind)
        return table.version(record_id) if table is not None else None

    def mend(self, changes: list[KeyChange], revision: int) -> None:
        for table, record_id in filter(None, [self._take(change) for change in changes]):
            table.tell(record_id)

    def keys(self) -> Iterable[bytes]:
        for name, table in self._tables.items():
            yield from (self._names.of(name, record_id) for record_id in table.ids())

    def _take(self, change: KeyChange) -> tuple[Records[Message], str] | None:
        kind, record_id = self._names.name(change.key)
        if kind == RESTORE:
            self.restoring = change.value is not None
        table = self._tables.get(kind)
        if table is None:
            return None
        table.take(record_id, change.value, change.revision)
        return table, record_id

    def _move(self, version: int) -> None:
        self.version = version
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
