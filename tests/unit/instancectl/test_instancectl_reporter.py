"""The reporter against an HQ whose answers the test sets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
import pytest

from hqclient.client import Client, HqApiError
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from instancectl.clock import MachineClock
from instancectl.reports.reporter import StatusReporter
from instancectl.reports.subject import SubjectId
from instancectl.route import HqRoute
from tests.support.sample_instances import eventually

ONE = SubjectId("i-1", "node-1", "r1")


class FakeHq:
    """Takes every report.

    Attributes:
        taken: instances of each report.
        refusal: if set, every report is refused with it.
        may_answer: no report is answered before it is set.
    """

    def __init__(self) -> None:
        self.taken: list[str] = []
        self.refusal = ""
        self.arrived, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def begin_reporting(self, instance_id: str, revision_id: str, *, node: str) -> pb.BeginReportingResponse:
        pb.BeginReportingRequest(instance_id=instance_id, revision_id=revision_id, node=node).SerializeToString()
        return pb.BeginReportingResponse(incarnation=7, uid=1)

    async def report(
        self, instance_id: str, revision: model.RevisionStatus, **_words: object
    ) -> pb.ReportStatusResponse:
        self.arrived.set()
        await self.may_answer.wait()
        self.taken.append(instance_id)
        if self.refusal:
            raise HqApiError(grpc.StatusCode.FAILED_PRECONDITION, "stop", reason=self.refusal, from_hq=True)
        answer = pb.ReportStatusResponse()
        answer.next_report_in.FromSeconds(100)
        return answer


@asynccontextmanager
async def running(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_late_refusal_for_a_forgotten_instance_does_not_stop_its_successor() -> None:
    hq, stopped = FakeHq(), list[str]()
    reporter = StatusReporter(
        HqRoute(None, cast("Client", hq), random.Random(1)),
        MachineClock(),
        random.Random(1),
        lambda *words: stopped.append(words[1]),
    )
    status = model.RevisionStatus(id="r1")
    hq.may_answer.clear()
    hq.refusal = "WRONG_UID"
    async with running(reporter.run()):
        reporter.say(ONE, status)
        await hq.arrived.wait()
        reporter.forget(ONE)
        hq.may_answer.set()
        await eventually(lambda: hq.taken)
        hq.refusal = ""
        reporter.say(ONE, status)
        await eventually(lambda: len(hq.taken) == 2)
        assert (stopped, reporter.describe()["refused"]) == ([], {})


@pytest.mark.long
async def test_the_log_says_when_hq_accepts_reports_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    hq = FakeHq()
    reporter = StatusReporter(
        HqRoute(None, cast("Client", hq), random.Random(1)), MachineClock(), random.Random(1), lambda *_: None
    )
    again = f"HQ accepts reports of {ONE} again"
    async with running(reporter.run()):
        reporter.say(ONE, model.RevisionStatus(id="r1"))
        await eventually(lambda: len(hq.taken) == 1)
        assert again not in caplog.text
        hq.refusal = "NOT_FOUND"
        reporter.say(ONE, model.RevisionStatus(id="r1", spec_version=2))
        await eventually(lambda: reporter.describe()["refused"])
        hq.refusal = ""
        reporter.resume()
        await eventually(lambda: caplog.text.count(again) == 1)
