"""The client of CMSs: the protocol against a fake CMS and against ours, and answers that break the schema."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from tests.cms.cloud import service_of
from tests.support.walle.fake_cms import FakeCms, fake_cms
from walle.approval.client import HttpCms
from walle.approval.protocol import CmsEvent, CmsFailure, Request, UnknownTask, cms_name, event_of
from walle.approval.tasks import Collector
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import AllowedEndpoint, parse_url
from wallepb.v1.host_pb2 import VERDICT_IN_PROCESS, VERDICT_OK, VERDICT_REJECTED


class Heard:
    """Events of calls."""

    def __init__(self) -> None:
        self.events: list[CmsEvent] = []

    def send(self, event: CmsEvent, project: str) -> None:
        self.events.append(event)


def client_of(
    calls: OutgoingCalls, url: str, heard: Heard | None = None, *, token: str = "", timeout_s: float = 10.0
) -> HttpCms:
    return HttpCms(calls, heard or Heard(), "web", url, "v1.4", AllowedEndpoint(parse_url(url), token), timeout_s)


def a_request(task_id: str = "walle-test.op1-0-0", host: str = "h1", **more: object) -> Request:
    return Request(task_id, (host,), "reboot", "wall-e", **more)  # type: ignore[arg-type]


@pytest.fixture
async def calls() -> AsyncIterator[OutgoingCalls]:
    async with aclosing(OutgoingCalls()) as made:
        yield made


@pytest.fixture(params=["a fake one", "our own"])
async def url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A CMS that knows ten hosts, h0 to h9."""
    if request.param == "a fake one":
        with fake_cms() as cms:
            yield cms.url
        return
    async with service_of(10) as (_, ours):
        yield f"http://127.0.0.1:{ours.port}"


async def test_a_dry_run_stores_nothing(calls: OutgoingCalls, url: str) -> None:
    cms = client_of(calls, url)
    await cms.dry_run(a_request())
    assert not await cms.tasks()
    with pytest.raises(UnknownTask):
        await cms.poll(a_request().id)


async def test_a_task_is_created_polled_listed_and_deleted_for_good(calls: OutgoingCalls, url: str) -> None:
    cms, task_id = client_of(calls, url), a_request().id
    await cms.create(a_request())
    assert (await cms.poll(task_id)).verdict in (VERDICT_OK, VERDICT_IN_PROCESS)
    assert await cms.tasks() == {task_id: a_request().hosts}
    await cms.delete(task_id)
    assert not await cms.tasks()
    with pytest.raises(UnknownTask):
        await cms.poll(task_id)
    await cms.delete(task_id)  # what is gone is deleted


async def test_the_same_task_sent_twice_is_one(calls: OutgoingCalls, url: str) -> None:
    cms = client_of(calls, url)
    await cms.create(a_request())
    await cms.create(a_request())
    assert len(await cms.tasks()) == 1


# --- a fake one with bad manners ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "verdict"),
    [("ok", VERDICT_OK), ("in-process", VERDICT_IN_PROCESS), ("rejected", VERDICT_REJECTED)],
)
async def test_verdicts_are_read(calls: OutgoingCalls, status: str, verdict: int) -> None:
    with fake_cms(verdict=status) as cms:
        answer = await client_of(calls, cms.url).create(a_request())
    assert (answer.verdict, answer.message) == (verdict, "because")


async def test_a_provisional_ok_is_confirmed_or_taken_back(calls: OutgoingCalls) -> None:
    with fake_cms(provisional=True) as cms:
        client = client_of(calls, cms.url)
        assert (await client.create(a_request())).provisional
        assert (await client.confirm(a_request().id)).verdict == VERDICT_OK
        cms.confirm_verdict = "in-process"
        assert (await client.confirm(a_request().id)).verdict == VERDICT_IN_PROCESS


async def test_what_is_sent_is_what_the_protocol_names(calls: OutgoingCalls) -> None:
    with fake_cms() as cms:
        request = a_request(failure="UNREACHABLE", group_id="g1", comment="why", is_running=True)
        await client_of(calls, cms.url, token="secret").create(request)
    assert cms.calls == [("POST", "/cms/v1.4/tasks")]
    assert cms.tokens == ["Bearer secret"]
    assert cms.bodies == [
        {
            "id": request.id,
            "type": "automated",
            "issuer": "wall-e",
            "action": "reboot",
            "hosts": ["h1"],
            "confirm": True,
            "comment": "why",
            "failure": "UNREACHABLE",
            "host_group_id": "g1",
            "already_running": True,
        }
    ]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ((200, b"<html>"), "is not an object"),
        ((200, b"[]"), "is not an object"),
        ((200, b'{"id":"another","hosts":["h1"],"status":"ok"}'), "id is 'another'"),
        ((200, b'{"id":"walle-test.op1-0-0","hosts":["h1"],"status":"OK"}'), "status is 'OK'"),
        ((200, b'{"id":"walle-test.op1-0-0","hosts":["h1"],"status":["ok"]}'), "status is"),
        ((200, b'{"id":"walle-test.op1-0-0","status":"ok"}'), "hosts is not a list"),
        ((200, b'{"id":"walle-test.op1-0-0","hosts":["h1"],"status":"ok","message":7}'), "message is 7"),
        ((500, b'{"message":"no database"}'), "HTTP 500: no database"),
        ((409, b'{"message":"another content"}'), "HTTP 409: another content"),
        ((302, b""), "HTTP 302"),
    ],
)
async def test_an_answer_that_breaks_the_schema_is_a_failure(
    calls: OutgoingCalls, raw: tuple[int, bytes], why: str
) -> None:
    heard = Heard()
    with fake_cms(raw=raw) as cms, pytest.raises(CmsFailure, match=why):
        await client_of(calls, cms.url, heard).create(a_request())
    assert [event.is_ok for event in heard.events] == [False]
    assert why in heard.events[0].description


async def test_no_answer_in_time_is_a_failure(calls: OutgoingCalls) -> None:
    with fake_cms(stalls=True) as cms, pytest.raises(CmsFailure, match=r"no answer within 0\.2 s"):
        await client_of(calls, cms.url, timeout_s=0.2).poll("t")


async def test_an_address_where_nobody_listens_is_a_failure(calls: OutgoingCalls) -> None:
    with pytest.raises(CmsFailure, match="ConnectError"):
        await client_of(calls, "http://127.0.0.1:1").tasks()


async def test_every_call_is_an_event_successful_or_not(calls: OutgoingCalls) -> None:
    heard = Heard()
    with fake_cms() as cms:
        await client_of(calls, cms.url, heard).tasks()
    (event,) = heard.events
    name = cms_name(cms.url)
    assert (event.service, event.host, event.is_ok) == ("wall-e-cms-request", f"wall-e.cms.{name}", True)
    assert event.tags == ("wall-e.cms.get_tasks", "wall-e.cms.web", f"wall-e.cms.{name}", "wall-e.cms.version.v1.4")


def test_events_are_named_as_in_the_example_of_the_protocol() -> None:
    url = "http://cms.cloud.example.net/project/cloud-ext-web"
    event = event_of("get_tasks", "cloud-ext-web", url, "v1.1")
    assert event.host == "wall-e.cms.cms.cloud.example.net-project-cloud-ext-web"
    assert event.tags == (
        "wall-e.cms.get_tasks",
        "wall-e.cms.cloud-ext-web",
        "wall-e.cms.cms.cloud.example.net-project-cloud-ext-web",
        "wall-e.cms.version.v1.1",
    )


# --- garbage --------------------------------------------------------------------------------------------------------


def test_a_task_without_an_operation_is_deleted_at_the_second_sight() -> None:
    collector = Collector(lambda: "prod")
    assert collector.look("a", ["walle-prod.op1-0-0"], set()) == []
    assert collector.look("a", ["walle-prod.op1-0-0"], set()) == ["walle-prod.op1-0-0"]


def test_a_task_that_got_its_operation_in_between_stays() -> None:
    collector = Collector(lambda: "prod")
    collector.look("a", ["walle-prod.op1-0-0"], set())
    assert collector.look("a", ["walle-prod.op1-0-0"], {"walle-prod.op1-0-0"}) == []


@pytest.mark.parametrize(
    "foreign",
    ["nanny-batch-7", "walle-prod-2.op1-0-0", "walle-production.op1-0-0", "op1-0-0", "walle-prod.6f0c.op1-0-0"],
)
@pytest.mark.parametrize("installation", ["prod", "prod.5f0c"])
def test_tasks_of_others_are_never_deleted(foreign: str, installation: str) -> None:
    collector = Collector(lambda: installation)
    for _ in range(3):
        assert collector.look("a", [foreign], set()) == []


def test_a_task_seen_once_in_one_cms_is_not_suspect_in_another() -> None:
    collector = Collector(lambda: "prod")
    collector.look("a", ["walle-prod.op1-0-0"], set())
    assert collector.look("b", ["walle-prod.op1-0-0"], set()) == []


def test_the_fake_cms_answers_404_for_an_unknown_task() -> None:
    assert FakeCms().answer("GET", "/v1.4/tasks/none", "", {})[0] == 404
