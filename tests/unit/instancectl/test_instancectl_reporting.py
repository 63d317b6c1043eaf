"""When instancectl reports, and how it numbers and marks its reports."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from instancectl.reports.schedule import COALESCE_S, Schedule
from instancectl.reports.subject import ReportSubject, SubjectId

INTERVAL_S = 180.0
SUBJECT = SubjectId("i-1", "node-1", "r1")


def reported_at(now: float, hint_s: float = 100.0) -> Schedule:
    schedule = Schedule(INTERVAL_S, random.Random(1))
    schedule.begin_report(now)
    schedule.record_acceptance(now, hint_s)
    return schedule


def test_the_first_report_is_due_at_once() -> None:
    assert Schedule(INTERVAL_S, random.Random(1)).due_in_s(5.0) == 0.0


def test_without_news_the_next_report_is_due_when_the_server_says() -> None:
    assert reported_at(0.0, 170.0).due_in_s(0.0) == 170.0


def test_without_a_hint_the_interval_is_jittered() -> None:
    assert 0.9 * INTERVAL_S <= reported_at(0.0, 0.0).due_in_s(0.0) <= INTERVAL_S


def test_news_are_reported_within_a_second() -> None:
    schedule = reported_at(0.0)
    schedule.add_news(50.0)
    assert 0.0 < schedule.due_in_s(50.0) <= 1.0


def test_news_of_the_same_second_share_a_report() -> None:
    schedule = reported_at(0.0)
    for now in (0.2, 0.3, 0.4):
        schedule.add_news(now)
    assert schedule.due_in_s(0.4) == COALESCE_S - 0.4
    schedule.begin_report(1.0)
    schedule.record_acceptance(1.0, 100.0)
    assert schedule.due_in_s(1.0) == 100.0


def test_urgent_news_does_not_wait_after_an_earlier_report() -> None:
    schedule = reported_at(0.0)
    schedule.add_news(0.2, at_once=True)
    assert schedule.due_in_s(0.2) == 0.0


def test_urgent_news_does_not_shorten_a_back_off() -> None:
    schedule = reported_at(0.0)
    schedule.begin_report(10.0)
    schedule.record_failure(14.0)
    schedule.add_news(14.0, at_once=True)
    assert schedule.due_in_s(14.0) >= 2.0


def test_a_change_of_readiness_is_urgent_unless_it_changed_within_the_last_second() -> None:
    subject = ReportSubject(SUBJECT, said(ready=False))
    assert subject.says(said(ready=True), 10.0)
    assert not subject.says(said(ready=False), 10.9)
    assert subject.says(said(ready=True), 11.0)


def test_a_change_of_anything_but_readiness_is_not_urgent() -> None:
    subject = ReportSubject(SUBJECT, said(ready=True))
    assert not subject.says(said(ready=True, reason="StillReady"), 10.0)


def said(*, ready: bool, reason: str = "Ready") -> model.RevisionStatus:
    status = model.CONDITION_STATUS_TRUE if ready else model.CONDITION_STATUS_FALSE
    return model.RevisionStatus(id="r1", ready=model.Condition(status=status, reason=reason))


def test_a_failure_does_not_lose_the_news() -> None:
    schedule = reported_at(0.0)
    schedule.add_news(10.0)
    schedule.begin_report(10.0)
    schedule.record_failure(12.0)
    assert schedule.due_in_s(12.0) <= 2.0


@given(st.lists(st.floats(0.001, 30.0), min_size=1, max_size=40), st.integers())
def test_a_back_off_never_exceeds_the_time_it_has_been_failing_nor_the_interval(
    tries_take_s: list[float], seed: int
) -> None:
    schedule = Schedule(INTERVAL_S, random.Random(seed))
    now = began_to_fail = 1000.0
    for takes_s in tries_take_s:
        schedule.begin_report(now)
        now += takes_s
        schedule.record_failure(now)
        wait_s = schedule.due_in_s(now)
        assert wait_s <= min(now - began_to_fail, INTERVAL_S) + 1e-6
        now += wait_s


def test_a_report_waits_as_long_as_the_server_asks() -> None:
    schedule = reported_at(0.0)
    schedule.begin_report(10.0)
    schedule.record_failure(10.01, retry_delay_s=3.0)
    assert schedule.due_in_s(10.01) >= 3.0


def test_after_a_partly_accepted_report_news_do_not_wait_for_the_retry() -> None:
    schedule = reported_at(0.0)
    schedule.begin_report(10.0)
    schedule.record_failure(100.0, partly=True)
    schedule.add_news(100.0)
    assert schedule.due_in_s(100.0) <= 1.0


# --- incarnation, sequence, unsettled -----------------------------------------------------------------------------


def status(word: str) -> model.RevisionStatus:
    return model.RevisionStatus(id="r1", ready=model.Condition(message=word))


def begun(word: str = "a") -> ReportSubject:
    subject = ReportSubject(SUBJECT, status(word))
    subject.begin(pb.BeginReportingResponse(incarnation=77, uid=5))
    return subject


def test_reports_carry_the_incarnation_and_count() -> None:
    subject = begun()
    first, second = subject.next_report(), subject.next_report()
    assert [r.revision.incarnation for r in (first, second)] == [77, 77]
    assert [r.revision.sequence for r in (first, second)] == [1, 2]
    assert first.uid == 5


def test_a_report_is_unsettled_while_one_with_other_content_is_unanswered() -> None:
    subject = begun("a")
    subject.next_report()
    subject.status = status("b")
    assert subject.next_report().unsettled
    subject.status = status("a")
    last = subject.next_report()
    assert last.unsettled
    subject.record_acceptance(last)
    assert not subject.next_report().unsettled


def test_repeating_the_same_content_is_settled() -> None:
    subject = begun("a")
    subject.next_report()
    assert not subject.next_report().unsettled


def test_a_report_that_was_surely_not_stored_leaves_the_next_one_settled() -> None:
    subject = begun("a")
    subject.record_refusal(subject.next_report())
    subject.status = status("b")
    assert not subject.next_report().unsettled


def test_a_status_is_news_until_hq_accepted_it() -> None:
    subject = begun("a")
    news = [subject.is_news]
    subject.record_acceptance(subject.next_report())
    news.append(subject.is_news)
    subject.status = status("b")
    assert [*news, subject.is_news] == [True, False, True]


def test_an_answer_to_an_older_report_does_not_settle_the_newer_one() -> None:
    subject = begun("a")
    older = subject.next_report()
    subject.status = status("b")
    subject.next_report()
    subject.record_acceptance(older)
    assert subject.is_news


def test_a_new_incarnation_counts_from_one_and_reports_everything() -> None:
    subject = begun("a")
    subject.record_acceptance(subject.next_report())
    subject.begin(pb.BeginReportingResponse(incarnation=78, uid=5))
    assert subject.is_news
    assert subject.next_report().revision.sequence == 1
