"""The reporter and the host agent over an HQ that is told what to answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from clients.client import Client
from clients.instancectl.clock import MachineClock
from clients.instancectl.control import Control
from clients.instancectl.lines import connect, serve
from clients.instancectl.reports.hostagent import HostAgent
from clients.instancectl.reports.hostlink import HostLink
from clients.instancectl.reports.reporter import Reporter
from clients.instancectl.reports.subject import SubjectId
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.support.scenes import eventually

ONE = SubjectId("i-1", "node-1", "r1")


class FakeHq:
    """Takes every report.

    Attributes:
        taken: instances of each batch.
        refusal: this is said of every report instead.
        may_answer: answers wait for it.
    """

    def __init__(self) -> None:
        self.taken: list[list[str]] = []
        self.refusal = ""
        self.arrived, self.may_answer = asyncio.Event(), asyncio.Event()
        self.may_answer.set()

    async def begin_reporting(self, instance_id: str, revision_id: str, *, node: str) -> pb.BeginReportingResponse:
        pb.BeginReportingRequest(instance_id=instance_id, revision_id=revision_id, node=node).SerializeToString()
        return pb.BeginReportingResponse(incarnation=7, uid=1)

    async def report_many(
        self, reports: Sequence[pb.ReportStatusRequest], timeout_s: float
    ) -> pb.ReportStatusesResponse:
        self.arrived.set()
        await self.may_answer.wait()
        self.taken.append([report.instance_id for report in reports])
        answer = pb.ReportStatusesResponse()
        answer.next_report_in.FromSeconds(100)
        for _ in reports:
            error = answer.result.add().error
            error.code, error.reason = (9, self.refusal) if self.refusal else (0, "")
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


async def test_what_is_refused_of_one_that_was_forgotten_is_not_held_against_the_next() -> None:
    hq, stopped = FakeHq(), list[str]()
    reporter = Reporter(cast("Client", hq), MachineClock(), random.Random(1), lambda *words: stopped.append(words[1]))
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


async def test_the_log_says_when_hq_takes_again_what_it_refused(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    hq = FakeHq()
    reporter = Reporter(cast("Client", hq), MachineClock(), random.Random(1), lambda *_: None)
    again = f"HQ takes reports of {ONE} again"
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


@pytest.mark.parametrize("subject", [[1, 2, 3], ["\ud800", "node-1", "r1"], ["i-2"], [None, {}, []], "i-2", 5])
async def test_a_supervisor_that_makes_no_sense_silences_nobody_else(tmp_path: Path, subject: Any) -> None:
    hq = FakeHq()
    socket = tmp_path / "agent.sock"
    async with running(HostAgent(cast("Client", hq), socket, MachineClock(), random.Random(1)).run()):
        await eventually(socket.exists)
        senseless, line = await connect(socket), await connect(socket)
        try:
            senseless.send({"kind": "say", "subject": subject, "status": {}})
            assert await senseless.receive() is None  # it hung up
            line.send({"kind": "say", "subject": ["i-1", "node-1", "r1"], "status": {"id": "r1"}})
            await eventually(lambda: hq.taken == [["i-1"]])
        finally:
            await senseless.close()
            await line.close()


async def test_a_host_agent_that_makes_no_sense_ends_no_supervisor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The socket of another supervisor, say: a slip of the pen."""
    answers = Control({"status": dict})
    async with await serve(tmp_path / "instancectl.sock", answers.talk):
        link = HostLink(tmp_path / "instancectl.sock", MachineClock(), lambda *_: None)
        link.say(ONE, model.RevisionStatus(id="r1"))
        async with running(link.run()):
            await eventually(lambda: "instancectl.sock is no host agent" in caplog.text)
