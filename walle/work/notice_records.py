"""Notices as records: one for each cause, sent again only after a pause. Each function of a book is one transaction."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from control.errors import Refused
from walle.fuses.fuse import Moment
from walle.healing.backoff import pause_ms
from walle.work.book import NOTICE, Notice, WalleTransaction, stored_record
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, NoticeRecord
from wallepb.v1.service_pb2 import AcknowledgeNoticeRequest

_DAY_MS: Final = 86_400_000
QUIET_MS: Final = _DAY_MS  # a cause that did not come up for so long starts over
GIVE_UP_MS: Final = _DAY_MS
KEEP_MS: Final = 14 * _DAY_MS
KEEP_ACKNOWLEDGED_MS: Final = _DAY_MS
MAX_RECORDS: Final = 2_000


def take_notice(book: WalleTransaction, notice: Notice, addresses: Collection[str], now: Moment) -> None:
    """Count a notice in the record of its cause, and have it sent: at once if new, worse or critical, else later.

    `addresses`: who hears it.
    """
    cause = "\0".join((notice.project, notice.host, notice.cause or notice.text))
    notice_id = hashlib.sha256(cause.encode()).hexdigest()[:16]
    before = book.get(NOTICE, notice_id)
    is_new = before is None or now.ms - before.last_ms > QUIET_MS
    # A critical notice asks a person to act each time: only the last one was acknowledged.
    is_loud = (
        is_new or notice.severity == SEVERITY_CRITICAL or (before is not None and before.severity < notice.severity)
    )
    record = NoticeRecord(id=notice_id, first=now.wall) if is_new or before is None else before
    record.severity, record.text = notice.severity, notice.text
    record.project, record.host = notice.project, notice.host
    record.count, record.last_ms = record.count + 1, now.ms
    record.last.CopyFrom(now.wall)
    if is_loud:
        _clear_acknowledgement(record)
    if addresses and not record.HasField("acknowledged"):
        _plan_delivery(record, addresses, now.ms, is_loud=is_loud)
    book.put(NOTICE, notice_id, record)


def _plan_delivery(record: NoticeRecord, addresses: Collection[str], now_ms: int, *, is_loud: bool) -> None:
    """Begin a round for all addresses, at once or after the pause.

    Within the pause no address is added: those that lack the last round get it with the present text, and an address
    that takes nothing does not have the others hear every repetition.
    """
    due_ms = record.due_ms + pause_ms(record.rounds)
    if record.pending and not is_loud and now_ms < due_ms:
        return
    # Also while a delivery is under way: it carries an older text, and must not count for the new round.
    record.due_ms, record.rounds = (now_ms if is_loud else max(now_ms, due_ms)), record.rounds + 1
    if not record.pending:
        record.owed_since_ms = record.due_ms
    pending = sorted({*record.pending, *addresses})
    del record.pending[:]
    record.pending.extend(pending)


def acknowledge_notice(book: WalleTransaction, order: AcknowledgeNoticeRequest, by: str, now: Moment) -> None:
    """Acknowledge a notice: it is not sent to those who did not get it yet. Raises Refused: there is none."""
    record = stored_record(book, NOTICE, order.notice)
    if record.HasField("acknowledged"):
        raise Refused(f"notice {record.id}: {record.acknowledged_by} acknowledged it already")
    record.acknowledged_by, record.acknowledged_reason = by, order.reason
    record.acknowledged.CopyFrom(now.wall)
    del record.pending[:]
    record.problem = ""
    book.put(NOTICE, record.id, record)


def next_delivery(address: str, records: Iterable[NoticeRecord], now_ms: int) -> NoticeRecord | None:
    """Return the notice that the address gets next: critical ones first, then the oldest; perhaps it is not due yet."""
    waiting = (one for one in records if address in one.pending)
    return min(waiting, key=lambda one: (one.due_ms > now_ms, -one.severity, one.due_ms, one.id), default=None)


def take_delivery(book: WalleTransaction, sent: NoticeRecord, address: str, problem: str = "", *, over: bool) -> None:
    """Note one try to deliver a notice. `over`: the address got it, or never will; a newer round is still sent.

    `problem`: why the address did not get it.
    """
    record = book.get(NOTICE, sent.id)
    if record is None:
        return
    if over and record.rounds == sent.rounds and address in record.pending:
        record.pending.remove(address)
    if problem or record.problem.startswith(f"{address}: "):
        record.problem = f"{address}: {problem}" if problem else ""
    book.put(NOTICE, record.id, record)


def undeliverable(records: Iterable[NoticeRecord], now_ms: int) -> list[NoticeRecord]:
    """Notices that an address has not taken for a day, in any round."""
    return [one for one in records if one.pending and now_ms - one.owed_since_ms > GIVE_UP_MS]


def surplus(records: Collection[NoticeRecord], now_ms: int) -> list[NoticeRecord]:
    """Notices to delete: old ones, and beyond MAX_RECORDS the oldest of projects with many, critical ones last."""
    old = [one for one in records if now_ms - one.last_ms > _keep_ms(one)]
    gone = {one.id for one in old}
    places, newer = dict[str, int](), Counter[str]()  # the newest of each project has place 0
    kept = sorted((one for one in records if one.id not in gone), key=lambda one: -one.last_ms)
    for one in kept:
        places[one.id] = newer[one.project]
        newer[one.project] += 1
    kept.sort(key=lambda one: (_is_critical(one), -places[one.id], one.last_ms))
    return old + kept[: max(0, len(kept) - MAX_RECORDS)]


def _keep_ms(record: NoticeRecord) -> int:
    return KEEP_ACKNOWLEDGED_MS if record.HasField("acknowledged") else KEEP_MS


def _is_critical(record: NoticeRecord) -> bool:
    return record.severity == SEVERITY_CRITICAL


def _clear_acknowledgement(record: NoticeRecord) -> None:
    for field in ("acknowledged", "acknowledged_by", "acknowledged_reason"):
        record.ClearField(field)
