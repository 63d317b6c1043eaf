"""Tells HQ: becomes the reporter of each revision, reports changes within a second, everything as often as HQ asks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from hqclient.client import STRONG, HqApiError
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.instance_pb2 import RevisionStatus
from instancectl.clock import InstancectlClock
from instancectl.reports.schedule import Schedule
from instancectl.reports.sink import Stopped
from instancectl.reports.subject import FINAL_REASONS, ReportSubject, SubjectId
from instancectl.route import HqRoute

DEFAULT_INTERVAL_S = 180.0
ACCEPT_S = 3.0  # a drain waits no longer than this for HQ to accept the report before it

log = logging.getLogger(__name__)


class _ReportOutcome(NamedTuple):
    """Outcome of one report: whether HQ's answer is final, when it wants the next one (0: not said), and the retry
    delay.
    """

    is_settled: bool
    next_s: float = 0.0
    delay_s: float = 0.0


class StatusReporter:
    """Reports the revisions of one instance; the host agent sends them with those of its neighbours.

    Args:
        stopped: called when HQ refuses a subject for good. All but fenced ones are retried with the next heartbeat.
    """

    def __init__(self, route: HqRoute, clock: InstancectlClock, rng: random.Random, stopped: Stopped) -> None:
        self._route = route
        self._clock = clock
        self._stopped = stopped
        self._schedule = Schedule(DEFAULT_INTERVAL_S, rng)
        self._subjects: dict[SubjectId, ReportSubject] = {}
        self._owed: set[SubjectId] = set()  # what could not be reported yet
        self._refused: dict[SubjectId, tuple[str, str]] = {}
        self._in_trouble: set[SubjectId] = set()  # those logged as failed or refused
        self._wake = asyncio.Event()
        self._round_over = asyncio.Condition()
        self._turn = asyncio.Lock()
        self._taken_at: float | None = None
        self._trouble = ""

    # --- what is to be said -----------------------------------------------------------------------------------------

    def say(self, subject: SubjectId, status: RevisionStatus) -> None:
        known = self._subjects.get(subject)
        if known is None:
            known = self._subjects[subject] = ReportSubject(subject, status)
        elif known.status == status:
            return
        now = self._clock.now()
        self._schedule.add_news(now, at_once=known.says(status, now))
        self._wake.set()

    def forget(self, subject: SubjectId) -> None:
        self._subjects.pop(subject, None)
        self._refused.pop(subject, None)
        self._in_trouble.discard(subject)
        self._owed.discard(subject)

    def resume(self) -> None:
        for subject in [s for s, (reason, _) in self._refused.items() if reason != "FENCED"]:
            del self._refused[subject]
            self._schedule.add_news(self._clock.now())
        self._wake.set()

    def describe(self) -> dict[str, Any]:
        now = self._clock.now()
        failing = self._schedule.failing_since
        return {
            "to": self._route.describe(),
            "last_taken_s_ago": None if self._taken_at is None else round(now - self._taken_at, 1),
            "next_in_s": round(self._schedule.due_in_s(now), 1),
            "failing_for_s": None if failing is None else round(now - failing, 1),
            "trouble": self._trouble,
            "refused": {str(subject): f"{reason}: {text}" for subject, (reason, text) in self._refused.items()},
        }

    # --- saying it --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            await self._until_due()
            await self._round()

    async def flush(self, timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._round()

    async def drain(self, period_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ACCEPT_S), self._round_over:
                await self._round_over.wait_for(lambda: not any(subject.is_news for subject in self._live()))
        await self._clock.sleep(period_s)

    async def _until_due(self) -> None:
        """Wait until a report is due; changes move that time."""
        while not self._subjects or (due_in_s := self._schedule.due_in_s(self._clock.now())) > 0:
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(due_in_s if self._subjects else None):
                    await self._wake.wait()

    async def _round(self) -> None:
        """Report everything that is due; one round at a time, or sequences would overtake each other."""
        async with self._turn:
            await self._report_due()
        async with self._round_over:
            self._round_over.notify_all()

    async def _report_due(self) -> None:
        now = self._clock.now()
        is_heartbeat = self._schedule.is_heartbeat_due(now)
        if is_heartbeat:
            self.resume()
        self._schedule.begin_report(now)
        self._trouble = ""
        begun = await self._begin([s for s in self._live() if not s.has_begun])
        sent = [s for s in self._live() if s.has_begun and (is_heartbeat or s.is_news or s.id in self._owed)]
        self._settle(begun, await asyncio.gather(*map(self._send, sent)))

    def _settle(self, begun: bool, outcomes: Sequence[_ReportOutcome]) -> None:
        """Fix the time of the next report."""
        now = self._clock.now()
        hints = [outcome.next_s for outcome in outcomes if outcome.next_s > 0]
        if begun and all(outcome.is_settled for outcome in outcomes) and not self._owed:
            self._schedule.record_acceptance(now, min(hints, default=0.0))
        else:
            delay_s = max((outcome.delay_s for outcome in outcomes), default=0.0)
            self._schedule.record_failure(now, delay_s, partly=bool(hints))

    def _live(self) -> list[ReportSubject]:
        return [subject for subject in self._subjects.values() if subject.id not in self._refused]

    # --- becoming the reporter --------------------------------------------------------------------------------------

    async def _begin(self, subjects: Sequence[ReportSubject]) -> bool:
        """Become the reporter of each subject; return whether HQ answered for all."""
        return all(await asyncio.gather(*map(self._begin_one, subjects)))

    async def _begin_one(self, subject: ReportSubject) -> bool:
        where = subject.id
        try:
            answer = await self._route.client.begin_reporting(where.instance_id, where.revision_id, node=where.node)
        except HqApiError as error:
            if error.reason in FINAL_REASONS:
                self._refuse(subject, error.reason, error.message)
                return True
            subject.begin_unanswered |= error.outcome_unknown
            self._in_trouble.add(where)
            self._complain(str(error))
            return False
        subject.begin(answer)
        self._schedule.set_interval(answer.report_interval.ToTimedelta().total_seconds())
        self._route.set_timeout(answer.liveness_timeout.ToTimedelta().total_seconds())
        return True

    # --- reporting --------------------------------------------------------------------------------------------------

    async def _send(self, subject: ReportSubject) -> _ReportOutcome:
        report = subject.next_report()
        self._owed.add(subject.id)
        try:
            answer = await self._route.client.report(
                report.instance_id,
                report.revision,
                uid=report.uid,
                node=report.node,
                unsettled=report.unsettled,
                timeout_s=self._schedule.patience_s,
            )
        except HqApiError as error:
            return await self._not_taken(subject, report, error)
        self._taken_at = self._clock.now()
        subject.record_acceptance(report)
        self._owed.discard(subject.id)
        self._log_recovery(subject.id)
        return _ReportOutcome(is_settled=True, next_s=answer.next_report_in.ToTimedelta().total_seconds())

    async def _not_taken(
        self, subject: ReportSubject, report: pb.ReportStatusRequest, error: HqApiError
    ) -> _ReportOutcome:
        self._in_trouble.add(subject.id)
        if error.nothing_stored:
            subject.record_refusal(report)
        if error.reason == "NOT_BEGUN":
            subject.begin_again()
        elif error.reason == "FENCED":
            await self._on_fenced(subject, error)
            return _ReportOutcome(is_settled=subject.id in self._refused)
        elif error.reason in FINAL_REASONS:
            self._refuse(subject, error.reason, error.message)
            return _ReportOutcome(is_settled=True)
        elif error.reason == "INVALID_REQUEST":
            # Repeating it would be refused again; the next change may be accepted.
            self._complain(f"{subject.id}: {error.message}")
            subject.record_acceptance(report)
            self._owed.discard(subject.id)
            return _ReportOutcome(is_settled=True)
        else:
            self._complain(str(error))
        return _ReportOutcome(is_settled=False, delay_s=error.retry_delay_s or 0.0)

    async def _on_fenced(self, subject: ReportSubject, error: HqApiError) -> None:
        """Begin again if a late BeginReporting of our own fenced us; else stop: another reporter took over."""
        try:
            holder = await self._holder(subject.id)
        except HqApiError as failure:
            self._complain(str(failure))
            return
        if holder in (0, subject.incarnation) or subject.begin_unanswered:
            # Our own BeginReporting may have arrived late. Assume that only once, or two supervisors would both go on.
            subject.begin_unanswered = False
            subject.begin_again()
            return
        self._refuse(subject, error.reason, error.message)

    async def _holder(self, subject: SubjectId) -> int:
        """The incarnation that HQ knows; 0: none. Raises HqApiError."""
        answer = await self._route.client.get(subject.instance_id, read=STRONG)
        revisions = answer.instance.status.revision
        return next((r.incarnation for r in revisions if r.id == subject.revision_id), 0)

    def _refuse(self, subject: ReportSubject, reason: str, message: str) -> None:
        if self._subjects.get(subject.id) is not subject:
            return  # forgotten meanwhile: a later subject with this id is a different one
        subject.begin_again()
        self._owed.discard(subject.id)
        self._refused[subject.id] = (reason, message)
        self._in_trouble.add(subject.id)
        self._stopped(subject.id, reason, message)

    def _complain(self, message: str) -> None:
        if self._trouble != message:
            log.info("a report failed, retrying: %s", message)
        self._trouble = message

    def _log_recovery(self, subject: SubjectId) -> None:
        if subject in self._in_trouble:
            self._in_trouble.discard(subject)
            log.info("HQ accepts reports of %s again", subject)
