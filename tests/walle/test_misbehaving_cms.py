"""A CMS in another language that misbehaves in every way we could think of, for a day each: over HTTP, in virtual time.

The table says what Wall-E does about each: what the host shows, and how much is asked, logged and written at most.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.support.walle.anywhere import ANYWHERE
from tests.support.walle.one_day import DAY_MS, URLS, OneDay
from walle.approval.client import HttpCms
from walle.outgoing.calls import OutgoingCalls
from walle.process.parts import CmsEvents
from wallepb.v1.host_pb2 import HOST_STATUS_READY

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("node") is None, reason="needs node (Debian: apt-get install nodejs)"),
]
PROGRAM = Path(__file__).parent / "js" / "cms.mjs"
TIMEOUT_S = 0.2  # for those that do not answer, instead of the protocol's 10 s
STEP_MS = 300_000  # without pauses there would be 288 tries a day; a real process looks more often
A_DAY = 40  # tries with pauses from 1 min to 1 h
ASKS_AGAIN = 2 * A_DAY


class Effort(NamedTuple):
    """What is shown of the failure, and at most so many calls, notices and writes in a day."""

    shows: str
    calls: int = A_DAY
    notices: int = 1
    writes: int = 4


MANNERS = {
    "status-in-capitals": Effort("status is 'OK', not ok, in-process or rejected"),
    "unknown-status": Effort("status is 'maybe'"),
    "status-without-end": Effort("the answer breaks the schema: status is"),
    "status-is-a-list": Effort("status is ['ok']"),
    "another-id": Effort("was asked about"),
    "no-id": Effort("id is None"),
    "no-hosts": Effort("hosts is not a list of names"),
    "hosts-is-a-text": Effort("hosts is not a list of names"),
    "message-is-a-number": Effort("message is 7"),
    "a-list": Effort("is not an object"),
    "a-page": Effort("is not an object"),
    "half-an-answer": Effort("is not an object"),
    "nothing": Effort("is not an object"),
    "nested-for-ever": Effort("is not an object"),
    "not-found": Effort("HTTP 404: what tasks?"),
    "overloaded": Effort("HTTP 503: later"),
    "redirects": Effort("HTTP 307"),
    "compressed": Effort("is compressed, which was not asked for"),
    "silent": Effort("no answer within 0.2 s"),
    "hangs-up": Effort("RemoteProtocolError"),
    "hangs-up-in-between": Effort("RemoteProtocolError"),
    "drips": Effort("no answer within 0.2 s"),
    "without-end": Effort("larger than 1048576 bytes"),
    "not-http": Effort("RemoteProtocolError"),
    "rejects": Effort("a dry run was rejected"),
    # The other CMS's ok is given back after 5 min, and asked for again after a pause: both are stored.
    "loses-tasks": Effort("the CMS lost it", ASKS_AGAIN + A_DAY, 0, 6 * A_DAY),
    "takes-back": Effort("", 600, 0, 6 * A_DAY),  # an ok that waits is polled each time
}


@dataclass(frozen=True)
class Misbehaving:
    """The program, listening."""

    url: str
    manners: list[str]

    async def calls(self, manner: str) -> int:
        async with httpx.AsyncClient(verify=False) as http:
            return int((await http.get(f"{self.url}/calls")).json().get(manner, 0))


@pytest.fixture
async def cms() -> AsyncIterator[Misbehaving]:
    process = await asyncio.create_subprocess_exec("node", str(PROGRAM), stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        begun = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
        yield Misbehaving(f"http://127.0.0.1:{begun['port']}", begun["manners"])
    finally:
        process.kill()
        await process.wait()


async def live(day: OneDay) -> set[str]:
    """A day; returns all that the host showed of its operations."""
    shown, until_ms = set[str](), day.now_ms + DAY_MS
    while day.now_ms < until_ms:
        writes = day.writes
        after_s = [await healer.reconcile("h1") or 10.0 for healer in day.healers]
        day.now_ms += 10 if day.writes > writes else max(STEP_MS, round(1000 * min(after_s)))
        host = day.host
        shown |= {host.operation.message, *(one.message for one in host.operation.task)}
        shown |= {one.message for one in host.history}
    return shown


async def test_every_kind_of_misbehaviour_has_its_row(cms: Misbehaving) -> None:
    assert {*cms.manners} - {"obeys"} == {*MANNERS}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("manner", MANNERS)
async def test_a_cms_that_misbehaves_for_a_day_costs_little_and_leads_to_nothing(cms: Misbehaving, manner: str) -> None:
    effort, day = MANNERS[manner], OneDay()
    events = CmsEvents(lambda: day.now_ms / 1000, day.notices.extend)
    async with aclosing(OutgoingCalls()) as calls:
        url = f"{cms.url}/{manner}"
        endpoint = ANYWHERE.cms_at(url)
        day.cms[URLS[0]] = HttpCms(
            calls, events, "web", url, "v1.4", endpoint, TIMEOUT_S if "within" in effort.shows else 10.0
        )  # type: ignore[assignment]
        shown = await live(day)
    assert any(effort.shows in one for one in shown), shown
    assert max(map(len, shown)) < 2_000
    assert 3 <= await cms.calls(manner) <= effort.calls
    assert len(day.notices) <= effort.notices, day.notices
    assert day.writes <= effort.writes
    assert (day.host.status, day.calls["begin"]) == (HOST_STATUS_READY, 0)


@pytest.mark.timeout(60)
async def test_a_cms_that_obeys_has_the_host_repaired(cms: Misbehaving) -> None:
    day = OneDay()
    events = CmsEvents(lambda: day.now_ms / 1000, day.notices.extend)
    async with aclosing(OutgoingCalls()) as calls:
        url = f"{cms.url}/obeys"
        day.cms[URLS[0]] = HttpCms(calls, events, "web", url, "v1.4", ANYWHERE.cms_at(url))  # type: ignore[assignment]
        for _ in range(20):
            await day.healers[0].reconcile("h1")
            day.now_ms += STEP_MS
    assert day.calls["begin"] >= 1
