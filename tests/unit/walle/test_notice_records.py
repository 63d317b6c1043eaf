"""A notice is a record of its cause: counted, sent again after a pause, acknowledged, and gone in the end."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from control.errors import Refused
from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, at
from walle.notices import delivery_id
from walle.work.book import NOTICE, Notice
from walle.work.notice_records import (
    GIVE_UP_MS,
    KEEP_ACKNOWLEDGED_MS,
    KEEP_MS,
    MAX_RECORDS,
    QUIET_MS,
    acknowledge_notice,
    next_delivery,
    surplus,
    take_delivery,
    take_notice,
    undeliverable,
)
from wallepb.v1.project_pb2 import SEVERITY_CRITICAL, SEVERITY_ERROR, SEVERITY_WARNING, NoticeRecord, Severity
from wallepb.v1.service_pb2 import AcknowledgeNoticeRequest

MINUTE_MS = 60_000
BOTH = ("a@x", "b@x")


class Notices:
    """The records of one store."""

    def __init__(self) -> None:
        self.book, self.now_ms = DictBook(), NOW_MS

    def say(
        self, text: str = "h1: reboot: no", severity: Severity = SEVERITY_ERROR, to: Collection[str] = BOTH, **more: str
    ) -> NoticeRecord:
        take_notice(self.book, Notice(severity, "web", text, "h1", **more), to, at(self.now_ms))
        return max(self.all, key=lambda one: one.last_ms)

    def deliver(self, record: NoticeRecord) -> None:
        for address in list(record.pending):
            take_delivery(self.book, record, address, over=True)

    def acknowledge(self, record: NoticeRecord) -> None:
        order = AcknowledgeNoticeRequest(notice=record.id, reason="on it")
        acknowledge_notice(self.book, order, "alice", at(self.now_ms))

    @property
    def all(self) -> list[NoticeRecord]:
        names = [name for kind, name in self.book.records if kind == NOTICE.name]
        return [one for name in names if (one := self.book.get(NOTICE, name)) is not None]


def test_all_notices_of_a_cause_are_one_record_with_first_and_last_time_and_a_count() -> None:
    notices = Notices()
    for text in ("rack r1: 5 of 8", "rack r1: 6 of 8", "rack r1: 7 of 8"):
        notices.say(text, cause="rack r1")
        notices.now_ms += MINUTE_MS
    (record,) = notices.all
    assert (record.text, record.count) == ("rack r1: 7 of 8", 3)
    assert record.last.seconds - record.first.seconds == 120
    notices.say("another text")
    assert len(notices.all) == 2


def test_a_repeated_notice_is_sent_with_pauses_from_a_minute_to_an_hour() -> None:
    notices, sent = Notices(), list[int]()
    for _ in range(24 * 60):
        record = notices.say()
        if record.pending and record.due_ms <= notices.now_ms:
            sent.append((notices.now_ms - NOW_MS) // MINUTE_MS)
            notices.deliver(record)
        notices.now_ms += MINUTE_MS
    assert sent[:5] == [0, 1, 3, 7, 15]
    assert len(sent) < 32, "an hour is the longest pause"
    assert notices.all[0].count == 24 * 60


def test_a_worse_or_critical_notice_does_not_wait() -> None:
    notices = Notices()
    for severity in (SEVERITY_WARNING, SEVERITY_ERROR, SEVERITY_CRITICAL, SEVERITY_CRITICAL):
        record = notices.say(severity=severity, cause="fuse")
        assert (list(record.pending), record.due_ms) == ([*BOTH], notices.now_ms)
        notices.deliver(record)
        notices.now_ms += 1


@pytest.mark.parametrize("severity", [SEVERITY_ERROR, SEVERITY_CRITICAL])
def test_a_worse_notice_during_a_delivery_is_delivered_separately(severity: Severity) -> None:
    """With the ID of the delivery under way, receivers would drop it as a repetition."""
    notices = Notices()
    sent = notices.say(severity=SEVERITY_WARNING, cause="fuse")
    notices.say("it is worse", severity=severity, cause="fuse")
    notices.deliver(sent)
    (record,) = notices.all
    assert (list(record.pending), record.text) == ([*BOTH], "it is worse")
    assert delivery_id(record) != delivery_id(sent)


def test_an_id_of_a_delivery_is_never_used_again() -> None:
    """After a quiet day or the end of a record, rounds begin at one again; receivers drop IDs that they know."""
    notices, ids = Notices(), list[str]()
    for pause_ms in (0, 2 * MINUTE_MS, QUIET_MS + 1, KEEP_MS + 1):
        notices.now_ms += pause_ms
        for old in surplus(notices.all, notices.now_ms):
            notices.book.delete(NOTICE, old.id)
        record = notices.say()
        ids.append(delivery_id(record))
        notices.deliver(record)
    assert len(set(ids)) == 4, ids


def test_a_failing_address_is_given_up_after_a_day_and_does_not_delay_others() -> None:
    notices, sent, given_up = Notices(), list[int](), list[int]()
    for minute in range(26 * 60):
        record = notices.say()
        if "a@x" in record.pending and record.due_ms <= notices.now_ms:
            sent.append(minute)
            take_delivery(notices.book, record, "a@x", over=True)
        given_up += [minute] if undeliverable(notices.all, notices.now_ms) else []
        notices.now_ms += MINUTE_MS
    assert sent[:5] == [0, 1, 3, 7, 15]
    assert len(sent) < 34, "an hour is the longest pause"
    assert given_up[0] == 24 * 60 + 1


def test_an_acknowledged_notice_is_sent_again_only_when_worse_or_after_a_quiet_day() -> None:
    for worse, pause_ms in ((SEVERITY_CRITICAL, MINUTE_MS), (SEVERITY_ERROR, QUIET_MS + MINUTE_MS)):
        notices = Notices()
        notices.acknowledge(notices.say(cause="fuse"))
        notices.now_ms += MINUTE_MS
        record = notices.say(cause="fuse")
        assert (record.acknowledged_by, record.count, list(record.pending)) == ("alice", 2, [])
        with pytest.raises(Refused, match="alice acknowledged it already"):
            notices.acknowledge(record)
        notices.now_ms += pause_ms
        record = notices.say(severity=worse, cause="fuse")
        assert not record.HasField("acknowledged")
        assert list(record.pending) == [*BOTH]


def test_an_address_gets_critical_notices_first_and_then_the_oldest() -> None:
    notices, order = Notices(), list[str]()
    for text, severity in (("old", SEVERITY_ERROR), ("new", SEVERITY_ERROR), ("fuse", SEVERITY_CRITICAL)):
        notices.say(text, severity)
        notices.now_ms += 1
    while record := next_delivery("a@x", notices.all, notices.now_ms):
        order.append(record.text)
        take_delivery(notices.book, record, "a@x", over=True)
    assert order == ["fuse", "old", "new"]
    assert all(list(one.pending) == ["b@x"] for one in notices.all)


def test_a_late_delivery_does_not_complete_a_newer_round() -> None:
    notices = Notices()
    sent = notices.say(severity=SEVERITY_CRITICAL, to=["a@x"])
    notices.deliver(sent)
    notices.say(severity=SEVERITY_CRITICAL, to=["a@x"])
    take_delivery(notices.book, sent, "a@x", over=True)
    assert list(notices.all[0].pending) == ["a@x"]


def test_the_problem_of_an_address_is_shown_until_a_delivery_succeeds() -> None:
    notices = Notices()
    record = notices.say()
    take_delivery(notices.book, record, "b@x", "no answer", over=False)
    take_delivery(notices.book, record, "a@x", over=True)
    assert (notices.all[0].problem, list(notices.all[0].pending)) == ("b@x: no answer", ["b@x"])
    take_delivery(notices.book, record, "b@x", over=True)
    assert not notices.all[0].problem


def test_a_notice_is_undeliverable_after_a_day_without_delivery() -> None:
    notices = Notices()
    record = notices.say()
    assert not undeliverable([record], notices.now_ms + GIVE_UP_MS)
    assert undeliverable([record], notices.now_ms + GIVE_UP_MS + 1) == [record]


def test_old_notices_are_removed_and_over_the_limit_the_oldest_not_critical() -> None:
    notices = Notices()
    notices.acknowledge(notices.say("known"))
    notices.say("open")
    now_ms = NOW_MS + KEEP_ACKNOWLEDGED_MS + 1
    assert [one.text for one in surplus(notices.all, now_ms)] == ["known"]
    assert {one.text for one in surplus(notices.all, NOW_MS + KEEP_MS + 1)} == {"known", "open"}
    many = [NoticeRecord(id=str(n), severity=SEVERITY_ERROR, last_ms=NOW_MS + n) for n in range(MAX_RECORDS)]
    many[0].severity = SEVERITY_CRITICAL
    assert [one.id for one in surplus([*many, NoticeRecord(id="x", last_ms=now_ms)], now_ms)] == ["1"]
    of_one = [NoticeRecord(id=f"w{n}", project="web", last_ms=NOW_MS + n) for n in range(MAX_RECORDS)]
    of_another = [NoticeRecord(id=f"m{n}", project="mail", last_ms=NOW_MS - n) for n in range(3)]
    assert [one.id for one in surplus([*of_one, *of_another], now_ms)] == ["w0", "w1", "w2"], "nobody pushes others out"
