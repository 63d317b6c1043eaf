"""Delivers notices from their records: a queue for each address, at least once, with back-off."""

from __future__ import annotations

import hashlib
import logging
import random
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from control import Controller
from hqclient.backoff import backoff_limit_s
from walle.fuses.fuse import Moment
from walle.notices import Way, severity_name
from walle.process.storing import Storing
from walle.work.book import NOTICE, Notice, WalleTransaction
from walle.work.notice_records import next_delivery, surplus, take_delivery, undeliverable
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, NoticeRecord

log = logging.getLogger(__name__)

_BACKOFF_S: Final = (5.0, 600.0)  # of an address
_TIDY_EVERY_S: Final = 60.0
_UNSTORED: Final = 1_000
_AT_ONCE: Final = 20  # records in a transaction
_SHARES: Final = 4  # into which a way's deliveries are divided; a project gets one
_ALL: Final = "all"


class _Lane:
    """Deliveries by one way, or to addresses that no way takes. A project has only a share, so that others go on."""

    def __init__(
        self,
        way: Way | None,
        controller: Controller,
        deliver: Callable[[_Lane, str], Awaitable[float | None]],
        keys: Callable[[_Lane], Iterable[str]],
    ) -> None:
        name, workers = (f"notices{way.name}", way.most_at_once) if way is not None else ("notices", 1)
        run = partial(deliver, self)
        self.way = way
        self.deliveries = controller.reconcile(name, run, partial(keys, self), workers=workers, while_closed=True)
        self.addresses: dict[str, str] = {}  # by their key: an address may be too long for one
        self._most = max(1, workers // _SHARES)
        self._under_way: Counter[str] = Counter()  # by project
        self._held: defaultdict[str, set[str]] = defaultdict(set)

    def open_now(self, key: str, waiting: Iterable[NoticeRecord]) -> list[NoticeRecord]:
        """Notices whose project has room. The key runs again when another project has."""
        free = []
        for record in waiting:
            if self._under_way[record.project] < self._most:
                free.append(record)
            else:
                self._held[record.project].add(key)
        return free

    @contextmanager
    def room_of(self, project: str) -> Iterator[None]:
        """Occupy the room of one delivery while it is under way."""
        self._under_way[project] += 1
        try:
            yield
        finally:
            self._under_way[project] -= 1
            for key in self._held.pop(project, ()):
                self.deliveries.trigger(key)


class Outbox:
    """Reconcilers of the acting process; what they send is in the records, so the next one goes on.

    Attributes:
        sent, lost: how many deliveries there were by this process, by severity. Lost are also those never stored.
    """

    def __init__(
        self,
        controller: Controller,
        storing: Storing,
        ways: Sequence[Way],
        now: Callable[[], Moment],
        rng: random.Random,
    ) -> None:
        self._storing, self._now, self._rng = storing, now, rng
        self._records = controller.records(NOTICE)
        self._unstored: deque[Notice] = deque()
        self._failures: Counter[str] = Counter()
        self._paused_until_ms: dict[str, int] = {}
        self.sent: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()
        self._lanes = [_Lane(way, controller, self._deliver, self._keys) for way in (*ways, None)]
        self._storings = controller.reconcile("noticesheard", self._store, lambda: [_ALL], while_closed=True)
        controller.reconcile("noticesold", self._tidy, lambda: [_ALL], while_closed=True)
        self._records.listen(self._trigger)

    def send(self, notices: Iterable[Notice]) -> None:
        """Have notices stored soon that come up again after a kill; decisions store theirs (`Storing.decide`)."""
        self._unstored.extend(notices)
        self._drop_surplus()
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
            batch = [self._unstored.popleft() for _ in range(min(_AT_ONCE, len(self._unstored)))]
            try:
                await self._storing.decide(lambda book, batch=batch: batch)  # type: ignore[misc]
            except BaseException:  # also when this process stops acting: it may act again
                self._unstored.extendleft(reversed(batch))
                self._drop_surplus()
                raise
        return None

    def _drop_surplus(self) -> None:
        """Beyond the bound the oldest go, critical ones last."""
        while len(self._unstored) > _UNSTORED:
            place = next((n for n, one in enumerate(self._unstored) if one.severity != SEVERITY_CRITICAL), 0)
            gone = self._unstored[place]
            del self._unstored[place]
            self.lost[severity_name(gone.severity)] += 1
            log.error("notice not stored: too many wait: %s", gone.text)

    def _keys(self, lane: _Lane) -> list[str]:
        for record in self._records.values():
            self._note_addresses(record)
        return list(lane.addresses)

    def _note_addresses(self, record: NoticeRecord) -> list[tuple[_Lane, str]]:
        found = []
        for address in record.pending:
            lane = next(one for one in self._lanes if one.way is None or one.way.takes(address))
            key = hashlib.sha256(address.encode()).hexdigest()[:16]
            lane.addresses[key] = address
            found.append((lane, key))
        return found

    def _trigger(self, notice_id: str) -> None:
        record = self._records.get(notice_id)
        if record is not None:
            for lane, key in self._note_addresses(record):
                lane.deliveries.trigger(key)

    async def _deliver(self, lane: _Lane, key: str) -> float | None:
        """Deliver one notice to one address. An address that fails or is slow delays only its own notices."""
        address, now_ms = lane.addresses.get(key, ""), self._now().ms
        waiting = [one for one in self._records.values() if address in one.pending]
        record = next_delivery(address, lane.open_now(key, waiting), now_ms)
        if record is None:
            if not waiting:
                self._forget(address)
                lane.addresses.pop(key, None)
            return None
        wait_ms = max(record.due_ms, self._paused_until_ms.get(address, 0)) - now_ms
        if wait_ms > 0:
            return wait_ms / 1000
        if lane.way is None:
            await self._lose(record, [address], "no delivery is configured for such an address")
            return 0.0
        try:
            with lane.room_of(record.project):
                await lane.way.deliver(address, record)
        except OSError as error:
            await self._pause(record, address, str(error))
            return 0.0
        self._forget(address)
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

    def _forget(self, address: str) -> None:
        self._failures.pop(address, None)
        self._paused_until_ms.pop(address, None)

    async def _tidy(self, _: str) -> float:
        now_ms = self._now().ms
        for record in undeliverable(list(self._records.values()), now_ms):
            # Addresses that do not fail have only just been given a newer round.
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
