"""Records: protobuf messages of one kind below one prefix, kept in memory by following the store.

Reads need no I/O. Messages in memory are shared: to modify one use a `Change`, which copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from control.errors import Unreadable
from serving.errors import invalid

M = TypeVar("M", bound=Message)
MAX_ID_BYTES = 512
MAX_RECORD_BYTES = 512 << 10


@dataclass(frozen=True, slots=True)
class Kind(Generic[M]):
    """A kind of records: `Kind("task", cms_pb2.Task)` is stored at `<prefix>task/<id>`.

    Attributes:
        name: lower-case word, unique among the controller's kinds and the store's own keys.
        message: class of the records.
    """

    name: str
    message: type[M]


class Stored(NamedTuple, Generic[M]):
    """A record as the store has it. `message` is shared and must not be changed; `version` grows with each change."""

    message: M
    version: int


Listener = Callable[[str], None]


class Records(Mapping[str, M]):
    """All records of one kind, by id. Iterates over those that can be read.

    Attributes:
        unreadable: why, by id, of those that cannot be decoded.
    """

    def __init__(self, kind: Kind[M], key: Callable[[str], str] = str) -> None:
        """`key`: a record's key in the store, by its id."""
        self.kind, self.key = kind, key
        self._stored: dict[str, Stored[M]] = {}
        self._versions_unreadable: dict[str, int] = {}
        self.unreadable: dict[str, str] = {}
        self._listeners: list[Listener] = []

    def __getitem__(self, record_id: str) -> M:
        """Raises KeyError: there is none; Unreadable."""
        self._check_readable(record_id)
        return self._stored[record_id].message

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    def __contains__(self, record_id: object) -> bool:
        return record_id in self._stored or record_id in self.unreadable

    def stored_record(self, record_id: str) -> Stored[M] | None:
        """The record with its version; None: there is none. Raises Unreadable."""
        self._check_readable(record_id)
        return self._stored.get(record_id)

    def version(self, record_id: str) -> int:
        """The version of a record, even of one that cannot be decoded; 0: there is none."""
        stored = self._stored.get(record_id)
        return stored.version if stored else self._versions_unreadable.get(record_id, 0)

    def listen(self, listener: Listener) -> None:
        """Call `listener(id)` after each change of a record, and for each record after a (re)load. It must not fail."""
        self._listeners.append(listener)

    # --- for the follower ------------------------------------------------------------------------------------------

    def clear(self) -> None:
        self._stored.clear()
        self.unreadable.clear()
        self._versions_unreadable.clear()

    def take(self, record_id: str, value: bytes | None, version: int) -> None:
        """Take over a change from the watch or a listing; None: a deletion. `tell` notifies listeners later."""
        self._stored.pop(record_id, None)
        self.unreadable.pop(record_id, None)
        self._versions_unreadable.pop(record_id, None)
        if value is None:
            return
        try:
            self._stored[record_id] = Stored(self.kind.message.FromString(value), version)
        except DecodeError as error:
            self.unreadable[record_id] = str(error) or "it cannot be decoded"
            self._versions_unreadable[record_id] = version

    def tell(self, record_id: str) -> None:
        for listener in self._listeners:
            listener(record_id)

    def ids(self) -> Iterator[str]:
        """Ids of all records, readable or not."""
        yield from self._stored
        yield from self.unreadable

    def _check_readable(self, record_id: str) -> None:
        if record_id in self.unreadable:
            why = self.unreadable[record_id]
            raise Unreadable(
                f"{self.kind.name} {record_id} cannot be read: {why}: repair or delete the key {self.key(record_id)}"
            )


def check_id(kind: str, record_id: str) -> None:
    """Raises InvalidRequest if it cannot be a key."""
    if not record_id or len(record_id.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES or not record_id.isprintable():
        raise invalid(f"{kind}.id", f"{record_id[:40]!r}: write 1 to {MAX_ID_BYTES} bytes, printable characters only")
