"""The healer's transactions over the kit: what a decision puts is stored as one change, or decided anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from google.protobuf.message import Message

from control import Change, Controller, Intent, Kind, RecordChanged
from walle.work.book import HOST, Book
from wallepb.v1.host_pb2 import Host

T = TypeVar("T")
M = TypeVar("M", bound=Message)
_ATTEMPTS: Final = 5


class Storing:
    """Transactions of the acting process. All raise what the kit raises; nothing was stored then, unless it says so."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._hosts = controller.records(HOST)

    def host(self, name: str) -> Host | None:
        return self._hosts.get(name)

    def why_nothing_begins(self) -> str:
        return self._controller.why_nothing_begins()

    async def transact(self, decide: Callable[[Book], T]) -> T:
        for attempt in range(_ATTEMPTS):
            book = _Noting(self._controller.change())
            result = decide(book)
            try:
                if book.is_changed:
                    await book.change.commit()
            except RecordChanged:
                if attempt + 1 == _ATTEMPTS:
                    raise
            else:
                return result
        raise AssertionError("unreachable")

    async def intend(self, decide: Callable[[Book], bool]) -> Intent | None:
        change = self._controller.change()
        return await self._controller.intend(change) if decide(change) else None


class _Noting:
    """A change that knows whether it changes anything: most looks at a host do not, and cost no transaction."""

    def __init__(self, change: Change) -> None:
        self.change, self.is_changed = change, False
        self._read: dict[tuple[str, str], Message | None] = {}

    def get(self, kind: Kind[M], record_id: str, /) -> M | None:
        found = self.change.get(kind, record_id)
        self._read.setdefault((kind.name, record_id), self.change.get(kind, record_id))
        return found

    def put(self, kind: Kind[M], record_id: str, message: M, /) -> None:
        self.is_changed |= self._read.get((kind.name, record_id)) != message
        self.change.put(kind, record_id, message)

    def delete(self, kind: Kind[M], record_id: str, /) -> None:
        self.is_changed = True
        self.change.delete(kind, record_id)
