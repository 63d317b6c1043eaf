"""What fails for a whole day: bounded calls, one notice for each change of state, no write without a change.

Waiting is no failure: a CMS that says in-process is polled without a bound.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.support.walle.hosts import NOW_MS
from tests.support.walle.one_day import URLS, OneDay
from walle.approval.protocol import CmsAnswer, CmsFailure, UnknownTask, event_of
from walle.executors.port import ExecutorFailure, Unfit, WorkProgress
from walle.healing.backoff import PAUSE_MS, Backoff
from walle.process.parts import CmsEvents
from walle.work.book import Notice
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    HOST_STATUS_READY,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_FAILED,
    STAGE_APPROVAL,
    STAGE_REQUESTED,
    VERDICT_IN_PROCESS,
    VERDICT_OK,
    VERDICT_REJECTED,
    OperationKind,
    Stage,
)

REJECTED = CmsAnswer(VERDICT_REJECTED, "not today")
IN_PROCESS = CmsAnswer(VERDICT_IN_PROCESS, "busy")
PROVISIONAL = CmsAnswer(VERDICT_OK, provisional=True)
REFUSED = ExecutorFailure("POST https://bmc: ConnectError: connection refused")
SELF_SIGNED = ExecutorFailure("GET https://bmc: ConnectError: certificate verify failed: self-signed certificate")
HOURLY = 40  # tries a day with pauses from 1 min to 1 h
ONE_CMS, BOTH = URLS[:1], URLS


def no_executor(kind: OperationKind) -> Any:
    raise Unfit(f"no executor is configured for {kind}")


def says(*urls: str, **answers: CmsAnswer | CmsFailure) -> Callable[[OneDay], None]:
    def arrange(day: OneDay) -> None:
        for url in urls:
            day.cms[url].says.update(answers)

    return arrange


def works(seen: WorkProgress = WorkProgress.DONE, **failures: Exception) -> Callable[[OneDay], None]:
    def arrange(day: OneDay) -> None:
        day.machine.seen, day.machine.fails = seen, failures

    return arrange


class Waits(NamedTuple):
    """A failure that is waited out, with limits on each kind of call except polls, on notices and on writes."""

    arrange: Callable[[OneDay], None]
    calls: int
    notices: int
    writes: int
    check: str = "UNREACHABLE"


WAITS = {
    "a CMS rejects the dry run": Waits(says(*ONE_CMS, dry_run=REJECTED), 2 * HOURLY, 1, 3),
    "both CMSs reject the dry run": Waits(says(*BOTH, dry_run=REJECTED), 2 * HOURLY, 1, 3),
    "the first CMS does not answer": Waits(says(*ONE_CMS, all=CmsFailure("no answer")), HOURLY, 1, 2),
    "the second CMS does not answer": Waits(says(URLS[1], all=CmsFailure("no answer")), 2 * HOURLY, 1, 2),
    "no CMS takes a task": Waits(says(*BOTH, create=CmsFailure("HTTP 500")), 2 * HOURLY, 2, 6),
    "no CMS knows a task that it took": Waits(
        says(*BOTH, poll=UnknownTask("no"), create=IN_PROCESS), 2 * HOURLY, 0, 5 * HOURLY
    ),
    "CMSs take back what they are asked to confirm": Waits(
        says(*BOTH, poll=PROVISIONAL, create=PROVISIONAL, confirm=IN_PROCESS), 2 * HOURLY, 0, 12 * HOURLY
    ),
    "a host without an address has a wrong record": Waits(works(before=Unfit("no address")), HOURLY, 1, 250, "dns"),
    "the name server does not answer": Waits(works(begin=REFUSED, look=REFUSED), 6 * HOURLY, 1, 500, "dns"),
    "updates of records have no effect": Waits(works(WorkProgress.NOT_BEGUN), 20 * HOURLY, 1, 500, "dns"),
    "a record is never right for its check": Waits(works(), HOURLY, 1, 250, "dns"),
}


@pytest.mark.long
@pytest.mark.timeout(120)
@pytest.mark.parametrize("case", WAITS)
def test_a_failure_of_a_day_is_retried_with_growing_pauses_and_reported_once(case: str) -> None:
    arrange, calls, notices, writes, check = WAITS[case]
    day = OneDay(check)
    arrange(day)
    day.live()
    tries = day.calls.copy()
    tries.pop("poll", None)
    assert max(tries.values()) <= calls, tries
    assert min(tries.values()) >= 1
    assert len(day.notices) <= notices, day.notices
    assert day.writes <= writes
    assert day.host.status == HOST_STATUS_READY


def test_a_rejected_dry_run_is_retried_after_half_a_minute_to_a_minute() -> None:
    day = OneDay()
    says(*ONE_CMS, dry_run=REJECTED)(day)
    day.live(until=lambda: day.calls["dry_run"] == 2)
    writes = day.writes
    took_ms = day.live(until=lambda: day.calls["dry_run"] == 4)
    assert PAUSE_MS[0] // 2 <= took_ms <= PAUSE_MS[0] + 10_000
    assert writes <= 3
    assert day.writes == 3  # begun, rejected, over; the second time nothing is stored


def test_a_repair_begins_once_its_dry_run_is_no_longer_rejected() -> None:
    day = OneDay()
    says(*ONE_CMS, dry_run=REJECTED)(day)
    day.live(until=lambda: day.calls["dry_run"] == 8)
    day.cms[URLS[0]].says.clear()
    day.live(until=lambda: day.calls["begin"] == 1, longest_ms=2 * PAUSE_MS[1])
    assert day.calls["begin"] == 1
    assert [notice.text for notice in day.notices] == ["h1: reboot: a dry run was rejected: http://a: not today"]


def test_a_process_that_takes_over_asks_a_rejecting_cms_once_and_reports_nothing_again() -> None:
    day = OneDay()
    says(*ONE_CMS, dry_run=REJECTED)(day)
    day.live(longest_ms=PAUSE_MS[1])
    calls, writes = day.calls["dry_run"], day.writes
    day.restart()
    day.live(longest_ms=PAUSE_MS[0] // 2)
    assert (day.calls["dry_run"], day.writes, len(day.notices)) == (calls + 2, writes, 1)


@pytest.mark.long
@pytest.mark.parametrize("answer", [IN_PROCESS, CmsFailure("no answer")], ids=["in-process", "away"])
@pytest.mark.parametrize("stage", [STAGE_REQUESTED, STAGE_APPROVAL])
def test_a_cms_that_decides_later_or_is_away_is_waited_for_without_bound(
    answer: CmsAnswer | CmsFailure, stage: Stage
) -> None:
    day = OneDay()
    says(*BOTH, create=answer, poll=answer)(day)
    if stage == STAGE_REQUESTED:
        says(*BOTH, dry_run=answer if isinstance(answer, CmsFailure) else REJECTED)(day)
    day.live(longest_ms=6 * PAUSE_MS[1])
    assert day.host.status == HOST_STATUS_READY
    assert not day.calls["before"]
    says(*BOTH, dry_run=CmsAnswer(VERDICT_OK), create=CmsAnswer(VERDICT_OK), poll=CmsAnswer(VERDICT_OK))(day)
    day.live(until=lambda: day.calls["begin"] == 1, longest_ms=2 * PAUSE_MS[1])
    assert day.calls["begin"] == 1


ENDS = {
    "the BMC is dead": (works(before=REFUSED), 3),
    "the BMC has a certificate of its own": (works(before=SELF_SIGNED), 3),
    "the BMC dies when it is told": (works(WorkProgress.NOT_BEGUN, begin=REFUSED), 3),
    "the BMC dies after it was told": (works(look=REFUSED), 1),
    "no executor is configured": (lambda day: setattr(day, "executor", no_executor), 0),
    "the work fails": (works(WorkProgress.FAILED), 1),
    "the work is ordered to no effect": (works(WorkProgress.NOT_BEGUN), 3),
}


@pytest.mark.parametrize("case", ENDS)
def test_work_that_cannot_be_done_is_followed_by_the_next_step_and_at_last_the_host_is_dead(case: str) -> None:
    arrange, tries = ENDS[case]
    day = OneDay()
    arrange(day)

    day.live(until=lambda: day.host.HasField("operation"))
    reboot_ms = day.live(until=lambda: day.host.operation.kind == OPERATION_KIND_REDEPLOY)
    redeploy_ms = day.live(until=lambda: day.host.status == HOST_STATUS_DEAD)
    assert max(reboot_ms, redeploy_ms) <= PAUSE_MS[1]  # half an hour, and the pause in which that ends
    assert not any(cms.tasks_ for cms in day.cms.values()), "the approval is held"
    assert max(day.calls["before"], day.calls["begin"]) == 2 * tries
    said = [notice.text for notice in day.notices]
    assert len(said) == 3, said
    assert "given up" in said[0]
    assert "next step begins: redeploy" in said[0]
    assert "given up" in said[1]
    assert said[2].startswith("h1 is dead")
    calls, writes = day.calls.copy(), day.writes
    day.live(longest_ms=PAUSE_MS[1])
    assert (day.calls, day.writes) == (calls, writes)


DNS_FIXES = [case for case in WAITS if WAITS[case].check == "dns"]


@pytest.mark.parametrize("case", DNS_FIXES)
def test_a_failing_dns_fix_ends_within_half_an_hour_with_a_notice_and_no_cms_is_asked(case: str) -> None:
    """It is the only step of its check and takes no machine away: no step follows, and the host is not dead."""
    day = OneDay("dns")
    WAITS[case].arrange(day)
    day.live(until=lambda: day.host.HasField("dns_operation"))
    took_ms = day.live(until=lambda: not day.host.HasField("dns_operation"))
    assert took_ms <= 1_800_000 + PAUSE_MS[0]
    assert max(day.calls["before"], day.calls["begin"]) <= 3
    ended = day.host.history[-1]
    assert (ended.kind, ended.outcome) == (OPERATION_KIND_DNS_FIX, OUTCOME_FAILED)
    assert [notice.text for notice in day.notices] == [f"h1: dns-fix: {ended.message}"]
    assert not day.calls.keys() & {"dry_run", "create", "poll", "confirm"}
    assert not any(cms.tasks_ for cms in day.cms.values())
    assert day.host.status == HOST_STATUS_READY
    assert not day.host.HasField("operation")


def test_without_an_executor_no_cms_is_asked_and_the_notice_says_what_to_configure() -> None:
    day = OneDay()
    day.executor = no_executor
    day.live(until=lambda: day.host.status == HOST_STATUS_DEAD)
    assert not day.calls
    assert "no executor is configured for" in day.notices[0].text


def test_failures_to_prepare_add_up_even_if_the_cms_withdraws_its_ok_in_between() -> None:
    day = OneDay()
    works(before=REFUSED)(day)
    day.live(until=lambda: day.calls["before"] == 2)
    says(*ONE_CMS, poll=IN_PROCESS)(day)
    day.live(until=lambda: day.host.operation.stage == STAGE_APPROVAL)
    says(*ONE_CMS, poll=CmsAnswer(VERDICT_OK))(day)
    day.live(until=lambda: day.host.operation.kind == OPERATION_KIND_REDEPLOY)
    assert day.calls["before"] == 3


def test_between_tries_to_confirm_an_ok_is_polled_so_that_it_does_not_lapse() -> None:
    day = OneDay()
    says(*BOTH, poll=PROVISIONAL, create=PROVISIONAL, confirm=CmsFailure("HTTP 500"))(day)
    day.live(until=lambda: day.calls["confirm"] == 12)
    polls = day.calls["poll"]
    day.live(longest_ms=120_000)
    assert day.calls["confirm"] == 12
    assert day.calls["poll"] - polls >= 2 * 10


def test_pauses_double_from_one_minute_to_one_hour_with_jitter() -> None:
    backoff, now_ms, pauses = Backoff(random.Random(1)), NOW_MS, []
    for _ in range(12):
        began_ms = now_ms
        backoff.note("h1", "poll", now_ms, failed=True)
        while not backoff.may_try("h1", "poll", now_ms):
            now_ms += 1000
        pauses.append(now_ms - began_ms)
    longest = [min(PAUSE_MS[0] * 2**n, PAUSE_MS[1]) for n in range(12)]
    assert all(most / 2 <= pause <= most + 1000 for pause, most in zip(pauses, longest, strict=True)), pauses
    assert len(set(pauses[-6:])) > 1
    assert backoff.may_try("h2", "poll", now_ms)
    backoff.note("h1", "poll", now_ms, failed=False)
    assert backoff.may_try("h1", "poll", now_ms)


def test_owners_are_told_when_a_cms_begins_to_fail_and_not_again_while_it_does() -> None:
    notices, now_s = list[Notice](), [0.0]
    events = CmsEvents(lambda: now_s[0], notices.extend)
    for failure in ("away", "away", "", "away", "away"):
        events.send(event_of("get_task", "web", "http://a", "v1.4", failure=failure), "web")
        now_s[0] += 700
    assert len(notices) == 2
    assert events.calls["wall-e.cms.a", "get_task", "failed"] == 4
