"""A change: one transaction over records that were read, stored only while this process acts.

What it read must be unchanged, and the epoch, this process's session and its leadership must still hold, else nothing
is stored. An unknown outcome is settled by the session (store/commit.py), never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from google.protobuf.message import Message

from control.errors import NotActing, RecordChanged
from control.memory import Memory
from control.records import MAX_RECORD_BYTES, Kind, M, check_id
from serving.clock import Clock
from serving.errors import NotLoaded, TooLarge
from serving.storage.errors import WriteGuarded
from store.commit import Committer, Conflict
from store.keys import Keys
from store.port import Compare, Write

_SHOWN_S = 5.0


class Changes:
    """Stores changes, one transaction each.

    Attributes:
        doubted: called when a transaction was refused by its guards: another process may have taken over.
    """

    def __init__(self, memory: Memory, names: Keys, committer: Committer, clock: Clock) -> None:
        self.memory, self.names, self.clock = memory, names, clock
        self._committer = committer
        self.doubted: Callable[[], None] = lambda: None

    async def store(self, subject: str, write: Write, guards: tuple[Compare, ...], timeout_s: float) -> int:
        """Store; return the version, once memory shows it.

        Raises:
            RecordChanged: a condition of the write did not hold; memory shows why.
            NotActing: a guard did not hold.
            NotLoaded: memory is incomplete, as while a backup is being restored; nothing was stored.
            StoreUnavailable, StoreFull, DeadlineExceeded, Overloaded, TooLarge, ShuttingDown: nothing was stored.
            OutcomeUnknown: the deadline came before the outcome was settled.
        """
        if why := self.memory.why_incomplete():
            raise NotLoaded(why, 0.5)
        deadline = self.clock.now() + timeout_s
        try:
            version = await self._committer.commit(subject, write, 0, deadline, guards, _touched_keys(write))
        except Conflict as conflict:
            await self.memory.shown_soon(max(conflict.modified.values(), default=0), _SHOWN_S)
            raise RecordChanged(f"{self._changed_names(conflict)} changed meanwhile: read it again and retry") from None
        except WriteGuarded as error:
            self.doubted()
            raise NotActing(f"not stored: another process may have become leader: {error}", 0.1) from error
        await self.memory.shown_soon(version, _SHOWN_S)
        return version

    async def switch(self, kind: Kind[M], record_id: str, message: M | None, timeout_s: float = 5.0) -> None:
        """Put or delete a record unconditionally, from any process. Raises as `store`."""
        key = self.names.of(kind.name, record_id)
        if message is None:
            await self.store("change", Write((), deletes=(key,)), (), timeout_s)
        else:
            await self.store(
                "change", Write((), ((key, message.SerializeToString(deterministic=True)),)), (), timeout_s
            )

    def _changed_names(self, conflict: Conflict) -> str:
        changed = [key for key, modified in conflict.modified.items() if modified > self.memory.version]
        names = [self.names.name(key) for key in changed or conflict.modified]
        return ", ".join(f"{kind} {rest}" for kind, rest in names[:3]) or "a record"


class ActingGuard(Protocol):
    """The comparison in every transaction of the leader."""

    def guard(self) -> Compare:
        """Raises NotActing."""
        ...


class Change:
    """Reads records, changes copies of them, and stores all at once or nothing.

    Reads see this change's own puts. It is made, used and stored by one task; a failed change is
    discarded and made again.
    """

    def __init__(self, changes: Changes, epoch: Callable[[], str], acting: ActingGuard | None) -> None:
        """`acting` None: this process need not be the acting one, but may only create records. Raises NotActing."""
        self._changes, self._epoch_now, self._acting = changes, epoch, acting
        self._epoch = epoch()
        self._guards = (acting.guard(),) if acting is not None else ()
        self._read: dict[bytes, int] = {}
        self._new: dict[bytes, Message | None] = {}  # None: a deletion

    def get(self, kind: Kind[M], record_id: str) -> M | None:
        """A copy of the record, free to modify; None: there is none. Raises Unreadable."""
        key = self._changes.names.of(kind.name, record_id)
        if key in self._new:
            return _copy(self._new[key])  # type: ignore[return-value]
        stored = self._changes.memory.table(kind).stored_record(record_id)
        # The first read counts: a decision based on it must be refused if the record changed before the second.
        version = stored.version if stored else 0
        if self._read.setdefault(key, version) != version:
            raise RecordChanged(f"{kind.name} {record_id} changed meanwhile: read it again and retry")
        return _copy(stored.message) if stored else None

    def records(self, kind: Kind[M]) -> Mapping[str, M]:
        """All of a kind that can be read, by id, with this change's own puts. They are shared: do not change them.

        Unlike what `get` reads they may change before this change is stored, except by events of its own subject.
        """
        found = dict(self._changes.memory.table(kind))
        for key, new in self._new.items():
            name = self._changes.names.name(key)
            if name.kind == kind.name:
                found.pop(name.rest, None)
                if new is not None:
                    found[name.rest] = new  # type: ignore[assignment]
        return found

    def put(self, kind: Kind[M], record_id: str, message: M) -> None:
        """Store this message; the record must have been read by this change. Raises InvalidRequest, TooLarge."""
        check_id(kind.name, record_id)
        key = self._key_read(kind, record_id)
        if self._acting is None and self._read[key]:
            raise NotActing(f"{kind.name} {record_id} exists: only the leader changes it")
        if (size := message.ByteSize()) > MAX_RECORD_BYTES:
            raise TooLarge(f"{kind.name} {record_id} has {size} bytes; the limit is {MAX_RECORD_BYTES}")
        stored = self._changes.memory.table(kind).stored_record(record_id)
        if stored and stored.version == self._read[key] and stored.message == message:
            self._new.pop(key, None)  # no change
        else:
            self._new[key] = _copy(message)

    def delete(self, kind: Kind[M], record_id: str) -> None:
        """Delete the record, which must have been read by this change; nothing happens if there is none."""
        if self._acting is None:
            raise NotActing(f"{kind.name} {record_id}: only the leader deletes it")
        self._new[self._key_read(kind, record_id)] = None

    async def commit(self, timeout_s: float = 5.0) -> int:
        """Store; return the version, once memory shows it. Raises as `Changes.store`."""
        if self._epoch_now() != self._epoch:
            raise NotActing("the store was restored or replaced since this change began; nothing was stored")
        if not self._epoch:
            raise NotLoaded("the store has not been read yet")
        write = self._write()
        if not write.puts and not write.deletes and self._acting is None:
            return self._changes.memory.version
        return await self._changes.store("change", write, self._guards, timeout_s)

    def compare(self, kind: Kind[M], record_id: str) -> None:
        """Store this change only if the record stays as it is now; works also for one that cannot be decoded."""
        key = self._changes.names.of(kind.name, record_id)
        self._read.setdefault(key, self._changes.memory.table(kind).version(record_id))

    def savepoint(self) -> Callable[[], None]:
        """Return a function that undoes all later puts and deletes."""
        before = dict(self._new)

        def restore() -> None:
            self._new = before

        return restore

    def _key_read(self, kind: Kind[M], record_id: str) -> bytes:
        key = self._changes.names.of(kind.name, record_id)
        if key not in self._read:
            raise ValueError(f"{kind.name} {record_id}: get it before it is put or deleted")
        return key

    def _write(self) -> Write:
        when = tuple(Compare(key, "modified", version) for key, version in self._read.items())
        puts = tuple(
            (key, new.SerializeToString(deterministic=True)) for key, new in self._new.items() if new is not None
        )
        gone = tuple(key for key, new in self._new.items() if new is None and self._read[key])
        return Write(when, puts, gone)


def _touched_keys(write: Write) -> frozenset[bytes]:
    return frozenset((*(c.key for c in write.when), *(key for key, _ in write.puts), *write.deletes))


def _copy(message: M | None) -> M | None:
    if message is None:
        return None
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
