"""A stop or rejection of work is shown where people look, and waiting work gives its approvals back."""

from __future__ import annotations

from tests.support.walle.one_day import URLS, OneDay
from walle.approval.protocol import CmsAnswer
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    OPERATION_KIND_REBOOT,
    OUTCOME_CANCELLED,
    STAGE_APPROVAL,
    STAGE_REQUESTED,
    VERDICT_IN_PROCESS,
    VERDICT_REJECTED,
    Operation,
)

BUSY = CmsAnswer(VERDICT_IN_PROCESS, "busy")


def test_a_rejected_task_names_the_cms_and_its_message_in_the_history_the_notice_and_the_reason() -> None:
    day = OneDay()
    day.cms[URLS[1]].says = {"create": CmsAnswer(VERDICT_REJECTED, "the last copy")}
    day.live(until=lambda: day.host.status == HOST_STATUS_DEAD)
    said = "a CMS rejected the task: http://b: the last copy"
    assert day.host.history[0].message == said
    assert day.notices[0].text == f"h1: reboot: {said}"
    assert day.host.status_reason == f"reboot: {said}"


def test_stopping_everything_cancels_a_waiting_repair_and_returns_its_approval() -> None:
    day = OneDay()
    day.cms[URLS[1]].says = {"create": BUSY, "poll": BUSY}
    day.live(until=lambda: bool(day.cms[URLS[0]].tasks_) and day.host.operation.stage == STAGE_APPROVAL)
    day.world.why_stopped = lambda: "stopped by alice: all is red"
    day.nothing_begins = "frozen"
    day.live(longest_ms=600_000)
    assert not any(cms.tasks_ for cms in day.cms.values())
    assert not day.host.HasField("operation")
    assert day.host.history[0].outcome == OUTCOME_CANCELLED
    assert "stopped by alice: all is red" in day.host.history[0].message


def test_stopping_everything_returns_approvals_of_an_ordered_operation_that_continues_afterwards() -> None:
    day = OneDay()
    host = day.host
    del host.check[:]
    host.operation.CopyFrom(Operation(id="mine", kind=OPERATION_KIND_REBOOT, by="alice", stage=STAGE_REQUESTED))
    host.operation.since_ms = day.now_ms
    day.order(host)
    day.cms[URLS[1]].says = {"create": BUSY, "poll": BUSY}
    day.live(until=lambda: bool(day.cms[URLS[0]].tasks_) and day.host.operation.stage == STAGE_APPROVAL)
    day.world.why_stopped = lambda: "stopped by alice: all is red"
    day.live(longest_ms=600_000)
    assert not day.cms[URLS[0]].tasks_
    day.world.why_stopped = lambda: ""
    day.cms[URLS[1]].says = {}
    day.live(until=lambda: not day.host.HasField("operation"), longest_ms=3_600_000)
    assert day.calls["begin"] == 1
