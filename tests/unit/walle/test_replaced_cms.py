"""A project gets other CMSs while an operation waits: the new ones are asked, the old ones no longer matter."""

from __future__ import annotations

import pytest

from tests.support.walle.hosts import a_project
from tests.support.walle.one_day import URLS, OneDay
from walle.approval.protocol import CmsAnswer, CmsFailure
from walle.work.book import HOST, PROJECT
from wallepb.v1.host_pb2 import STAGE_APPROVAL, VERDICT_IN_PROCESS
from wallepb.v1.project_pb2 import Cms

GONE, KEPT = URLS
AWAY = CmsFailure("project web has no such CMS any more")
BUSY = CmsAnswer(VERDICT_IN_PROCESS, "busy")


def waiting(day: OneDay) -> None:
    for cms in day.cms.values():
        cms.says = {"create": BUSY, "poll": BUSY}
    day.live(until=lambda: day.host.operation.stage == STAGE_APPROVAL and all(c.tasks_ for c in day.cms.values()))


def replace(day: OneDay, *urls: str) -> None:
    day.book.put(PROJECT, "web", a_project(*(Cms(url=url, version="v1.4") for url in urls)))


@pytest.mark.parametrize("can_delete", [True, False])
def test_a_repair_goes_on_with_the_remaining_cms_and_lists_tasks_that_cannot_be_deleted(can_delete: bool) -> None:
    day = OneDay()
    waiting(day)
    replace(day, KEPT)
    day.cms[GONE].says = {} if can_delete else {"all": AWAY}
    day.cms[KEPT].says = {}
    day.live(until=lambda: day.calls["begin"] == 1, longest_ms=7_200_000)
    assert day.calls["begin"] == 1
    host = day.host
    host.check[0].failing = False
    day.book.put(HOST, "h1", host)
    day.live(until=lambda: not day.host.HasField("operation"), longest_ms=7_200_000)
    message = day.host.history[0].message
    assert ("left behind" in message) is not can_delete
    assert can_delete or f"at {GONE}" in message
    assert bool(day.cms[GONE].tasks_) is not can_delete


def test_a_replaced_cms_makes_tasks_move_to_the_new_one_under_new_ids() -> None:
    day = OneDay()
    waiting(day)
    replace(day, "http://a", "http://c")
    day.cms["http://c"] = type(day.cms[GONE])("http://c", day.cms[GONE].events, day.calls)
    before = {task.id for task in day.host.operation.task}
    day.cms["http://c"].says = {"poll": BUSY, "create": BUSY}
    day.live(until=lambda: bool(day.cms["http://c"].tasks_), longest_ms=600_000)
    (new,) = day.cms["http://c"].tasks_
    assert new not in before
    assert day.host.operation.stage == STAGE_APPROVAL, "nothing begins without its answer"
    assert {task.cms for task in day.host.operation.task} == {"http://a", "http://c"}
