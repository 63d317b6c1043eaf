"""Delivers notices from their records: a queue for each address, at least once, with back-off."""

from __future__ import annotations

import hashlib
import logging
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from control import Controller
from hqclient.backoff import backoff_limit_s
from walle.fuses.fuse import Moment
from walle.notices import Way, severity_name
from walle.process.storing import Storing
from walle.work.book import NOTICE, Notice, WalleTransaction
from walle.work.notice_records import next_delivery, surplus, take_delivery, undeliverable
from wallepb.v1.project_pb2 import NoticeRecord

log = logging.getLogger(__name__)

_BACKOFF_S: Final = (5.0, 600.0)  # of an address
_TIDY_EVERY_S: Final = 60.0
_UNSTORED: Final = 1_000
_AT_ONCE: Final = 20  # records in a transaction
_ALL: Final = "all"


class Outbox:
    """Reconcilers of the acting process; what they send is in the records, so the next one goes on.

    Attributes:
        sent, lost: how many deliveries there were by this process, by severity.
    """

    def __init__(
        self,
        controller: Controller,
        storing: Storing,
        ways: Sequence[Way],
        now: Callable[[], Moment],
        rng: random.Random,
    ) -> None:
        self._storing, self._ways, self._now, self._rng = storing, ways, now, rng
        self._records = controller.records(NOTICE)
        self._unstored: deque[Notice] = deque(maxlen=_UNSTORED)
        self._failures: Counter[str] = Counter()
        self._paused_until_ms: dict[str, int] = {}
        self.sent: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._addresses: dict[str, str] = {}  # by the key of their reconciler: an address may be too long for one
        self._deliveries = controller.reconcile("notices", self._deliver, self._keys, workers=32, while_closed=True)
        self._storings = controller.reconcile("noticesheard", self._store, lambda: [_ALL], while_closed=True)
        controller.reconcile("noticesold", self._tidy, lambda: [_ALL], while_closed=True)
        self._records.listen(self._trigger)

    def send(self, notices: Iterable[Notice]) -> None:
        """Have notices stored soon. For what shows again after a kill; decisions store theirs (`Storing.decide`)."""
        self._unstored.extend(notices)
        if self._unstored:
            self._storings.trigger(_ALL)

    def waiting(self) -> Counter[str]:
        """How many deliveries are still to be made, by severity."""
        count: Counter[str] = Counter()
        for record in self._records.values():
            count[severity_name(record.severity)] += len(record.pending)
        return count

    async def _store(self, _: str) -> float | None:
        while self._unstored:
            batch = list(self._unstored)[:_AT_ONCE]
            await self._storing.decide(lambda book, batch=batch: batch)  # type: ignore[misc]
            for _done in batch:
                self._unstored.popleft()
        return None

    def _keys(self) -> list[str]:
        for record in self._records.values():
            self._note_addresses(record)
        return list(self._addresses)

    def _note_addresses(self, record: NoticeRecord) -> list[str]:
        keys = [hashlib.sha256(address.encode()).hexdigest()[:16] for address in record.pending]
        self._addresses.update(zip(keys, record.pending, strict=True))
        return keys

    def _trigger(self, notice_id: str) -> None:
        record = self._records.get(notice_id)
        if record is not None:
            for key in self._note_addresses(record):
                self._deliveries.trigger(key)

    async def _deliver(self, key: str) -> float | None:
        """One notice to one address. An address that fails or is slow delays nothing but its own."""
        address, now_ms = self._addresses[key], self._now().ms
        record = next_delivery(address, self._records.values(), now_ms)
        if record is None:
            self._forget(key, address)
            return None
        wait_ms = max(record.due_ms, self._paused_until_ms.get(address, 0)) - now_ms
        if wait_ms > 0:
            return wait_ms / 1000
        way = next((way for way in self._ways if way.takes(address)), None)
        if way is None:
            await self._lose(record, [address], "no delivery is configured for such an address")
            return 0.0
        try:
            await way.deliver(address, record)
        except OSError as error:
            await self._pause(record, address, str(error))
            return 0.0
        self._forget(key, address, keep_key=True)
        self.sent[severity_name(record.severity)] += 1
        await self._storing.transact(lambda book: take_delivery(book, record, address, over=True))
        return 0.0

    async def _pause(self, record: NoticeRecord, address: str, why: str) -> None:
        self._failures[address] += 1
        pause_s = backoff_limit_s(self._failures[address], *_BACKOFF_S) * self._rng.uniform(0.5, 1.0)
        self._paused_until_ms[address] = self._now().ms + int(pause_s * 1000)
        log.warning("notice to %s not delivered yet: %s: %s", address, why, record.text)
        await self._storing.transact(lambda book: take_delivery(book, record, address, why, over=False))

    async def _lose(self, record: NoticeRecord, addresses: Sequence[str], why: str) -> None:
        def take(book: WalleTransaction) -> None:
            for address in addresses:
                take_delivery(book, record, address, why, over=True)

        await self._storing.transact(take)
        self.lost[severity_name(record.severity)] += len(addresses)
        log.error("notice to %s not delivered: %s: %s", ", ".join(addresses), why, record.text)

    def _forget(self, key: str, address: str, *, keep_key: bool = False) -> None:
        self._failures.pop(address, None)
        self._paused_until_ms.pop(address, None)
        if not keep_key:
            self._addresses.pop(key, None)

    async def _tidy(self, _: str) -> float:
        now_ms = self._now().ms
        for record in undeliverable(list(self._records.values()), now_ms):
            # The others have only just been given a newer round.
            if failing := [one for one in record.pending if one in self._failures]:
                await self._lose(record, failing, "it was not taken for a day")
        gone = surplus(list(self._records.values()), now_ms)
        for first in range(0, len(gone), _AT_ONCE):
            await self._delete(gone[first : first + _AT_ONCE])
        return _TIDY_EVERY_S

    async def _delete(self, gone: Sequence[NoticeRecord]) -> None:
        def delete(book: WalleTransaction) -> list[NoticeRecord]:
            # What came up again meanwhile stays.
            over = [one for one in gone if book.get(NOTICE, one.id) == one]
            for one in over:
                book.delete(NOTICE, one.id)
            return over

        for one in await self._storing.transact(delete):
            self.lost[severity_name(one.severity)] += len(one.pending)
