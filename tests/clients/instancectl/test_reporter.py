"""The reporter against a real HQ, without a supervisor."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from instancectl.clock import MachineClock
from instancectl.reports.reporter import StatusReporter
from instancectl.reports.schedule import COALESCE_S
from instancectl.reports.subject import SubjectId
from instancectl.route import HqRoute
from tests.clients.instancectl.supervised import NODE, instance, revision
from tests.support.sample_instances import eventually

SUBJECT = SubjectId("i-1", NODE, "r1")


class Heard:
    """Why HQ refused a subject for good."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def __call__(self, subject: SubjectId, reason: str, message: str) -> None:
        self.reasons.append(reason)


@asynccontextmanager
async def reporting(client: Client, heard: Heard) -> AsyncIterator[StatusReporter]:
    reporter = StatusReporter(HqRoute(None, client, random.Random(1)), MachineClock(), random.Random(1), heard)
    task = asyncio.create_task(reporter.run())
    try:
        yield reporter
    finally:
        task.cancel()
        await asyncio.wait({task})


def status(message: str) -> model.RevisionStatus:
    return model.RevisionStatus(id="r1", ready=model.Condition(status=model.CONDITION_STATUS_TRUE, message=message))


async def stored(client: Client) -> model.RevisionStatus:
    revisions = (await client.get("i-1")).instance.status.revision
    return next((r for r in revisions if r.id == "r1"), model.RevisionStatus())


async def until_stored(client: Client, message: str) -> model.RevisionStatus:
    async def found() -> bool:
        return (await stored(client)).ready.message == message

    await eventually(found, what=f"HQ knows {message!r}")
    return await stored(client)


@pytest.mark.long
async def test_a_reporter_whose_incarnation_hq_lost_asks_for_a_new_one(client: Client) -> None:
    """The revision was removed and put back before anybody noticed: no other reporter took over."""
    await client.create(instance(revision("r1"), revision("r2", ready=False)))
    heard = Heard()
    async with reporting(client, heard) as reporter:
        reporter.say(SUBJECT, status("before"))
        await until_stored(client, "before")
        await client.delete_revision("i-1", "r1")
        await client.put_revision("i-1", revision("r1"))
        reporter.say(SUBJECT, status("after"))
        await until_stored(client, "after")
    assert "FENCED" not in heard.reasons


@pytest.mark.long
async def test_a_reporter_that_another_one_replaced_is_told_once_and_falls_silent(client: Client) -> None:
    await client.create(instance(revision("r1")))
    heard = Heard()
    async with reporting(client, heard) as reporter:
        reporter.say(SUBJECT, status("mine"))
        await until_stored(client, "mine")
        other = await client.begin_reporting("i-1", "r1", node=NODE)
        reporter.say(SUBJECT, status("mine again"))
        await eventually(lambda: heard.reasons == ["FENCED"])
        reporter.say(SUBJECT, status("and again"))
        reporter.resume()
        await reporter.flush(2.0)
    assert (await stored(client)).incarnation == other.incarnation
    assert heard.reasons == ["FENCED"]


@pytest.mark.long
async def test_many_changes_are_sent_in_few_reports_and_the_last_one_arrives(client: Client) -> None:
    await client.create(instance(revision("r1")))
    async with reporting(client, Heard()) as reporter:
        began = time.monotonic()
        for number in range(50):
            reporter.say(SUBJECT, status(f"change {number}"))
            await asyncio.sleep(0.01)
        found = await until_stored(client, "change 49")
    assert found.sequence <= 2 + (time.monotonic() - began) / COALESCE_S


@pytest.mark.long
async def test_a_reporters_own_begin_that_arrives_late_does_not_fence_it(client: Client) -> None:
    await client.create(instance(revision("r1")))
    heard = Heard()
    async with reporting(client, heard) as reporter:
        reporter.say(SUBJECT, status("before"))
        await until_stored(client, "before")
        reporter._subjects[SUBJECT].begin_unanswered = True  # its first try had no answer, and is carried out now:
        await client.begin_reporting("i-1", "r1", node=NODE)
        reporter.say(SUBJECT, status("after"))
        await until_stored(client, "after")
    assert heard.reasons == []
