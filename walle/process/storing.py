"""Walle's records in the store: what one decision changes is stored in one transaction. And the ledger's clock."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar, cast

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from control import Change, Controller, EffectIntent, Kind, RecordChanged
from serving.clock import Clock
from walle.fuses.fuse import Moment
from walle.notices import addresses_for
from walle.work.book import HOST, LEDGER_TIME, WORD, Notice, WalleTransaction
from walle.work.notice_records import take_notice
from wallepb.v1.host_pb2 import Host
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, SEVERITY_ERROR, InstallationWord, LedgerTime, Recipient

log = logging.getLogger(__name__)

T = TypeVar("T")
M = TypeVar("M", bound=Message)
_ATTEMPTS: Final = 5
_LEVELS: Final = {SEVERITY_ERROR: logging.ERROR, SEVERITY_CRITICAL: logging.ERROR}


class Storing:
    """Transactions of the acting process. All raise the kit's errors; nothing was stored, unless the error says so."""

    def __init__(
        self, controller: Controller, now: Callable[[], Moment], recipients: Callable[[str], Iterable[Recipient]]
    ) -> None:
        """`recipients`: who is notified about a project; the empty name stands for all projects."""
        self._controller, self._now, self._recipients = controller, now, recipients
        self._hosts = controller.records(HOST)

    def host(self, name: str) -> Host | None:
        return self._hosts.get(name)

    def why_nothing_begins(self) -> str:
        return self._controller.why_nothing_begins()

    async def transact(self, decide: Callable[[WalleTransaction], T]) -> T:
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

    async def decide(self, decide: Callable[[WalleTransaction], Sequence[Notice]]) -> None:
        """`transact`, with the notices in the same transaction: a process that dies now has lost none."""

        def take(book: WalleTransaction) -> Sequence[Notice]:
            notices, now = decide(book), self._now()
            for notice in notices:
                take_notice(book, notice, addresses_for(self._recipients(notice.project), notice.severity), now)
            return notices

        for notice in await self.transact(take):
            level = _LEVELS.get(notice.severity, logging.INFO)
            log.log(level, "%s: %s", notice.project or "all", " ".join(notice.text.split()))

    async def intend(self, decide: Callable[[WalleTransaction], bool]) -> EffectIntent | None:
        change = self._controller.change()
        return await self._controller.intend(change) if decide(change) else None


class _Noting:
    """A change that knows whether it changes anything: most looks at a host do not, and so cost no transaction."""

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


class Draft:
    """A transaction that is never stored: shows, at any process, what a decision would do to the records in memory."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._put: dict[tuple[str, str], Message | None] = {}

    def get(self, kind: Kind[M], record_id: str, /) -> M | None:
        key, copy = (kind.name, record_id), kind.message()
        found = self._put[key] if key in self._put else self._controller.records(kind).get(record_id)
        if found is None:
            return None
        copy.CopyFrom(cast("M", found))
        return copy

    def put(self, kind: Kind[M], record_id: str, message: M, /) -> None:
        self._put[kind.name, record_id] = message

    def delete(self, kind: Kind[M], record_id: str, /) -> None:
        self._put[kind.name, record_id] = None


STORED_EVERY_S = 30.0
_ONE = "time"


class LedgerClock:
    """Milliseconds that only processes of this installation move on.

    While none runs it stands still, so windows get longer, never shorter.
    """

    def __init__(self, controller: Controller, on_word: Callable[[str], object]) -> None:
        """`on_word`: called with the installation's word, once it is known."""
        self._controller, self._clock = controller, controller.clock
        self._words: Mapping[str, InstallationWord] = controller.records(WORD)
        self._on_word = on_word
        controller.records(WORD).listen(self._take_word)
        self._stored: Mapping[str, LedgerTime] = controller.records(LEDGER_TIME)
        self._base_ms, self._base_s = 0, self._clock.now()
        controller.reconcile("ledgertime", self._store, lambda: [_ONE])

    def _take_word(self, key: str) -> None:
        if (known := self._words.get(key)) is not None:
            self._on_word(known.word)

    def now(self) -> Moment:
        ms = self._base_ms + int((self._clock.now() - self._base_s) * 1000)
        stored = self._stored.get(_ONE)
        if stored is not None and stored.at_ms > ms:
            self._base_ms, self._base_s, ms = stored.at_ms, self._clock.now(), stored.at_ms
        return Moment(ms, wall(self._clock))

    async def _store(self, key: str) -> float:
        change = self._controller.change()
        change.get(LEDGER_TIME, key)
        change.put(LEDGER_TIME, key, LedgerTime(at_ms=self.now().ms))
        # A record of its own: an older version that acts meanwhile rewrites the time.
        if change.get(WORD, key) is None:
            change.put(WORD, key, InstallationWord(word=secrets.token_hex(4)))
        await change.commit()
        return STORED_EVERY_S


def wall(clock: Clock) -> Timestamp:
    stamp = Timestamp()
    stamp.FromMilliseconds(clock.wall_ms())
    return stamp
