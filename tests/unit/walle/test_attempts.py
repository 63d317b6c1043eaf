"""However its checks take turns, a host gets a limited number of repairs a day, and then it is dead."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.walle.hosts import NOW_MS, a_host, a_project
from tests.support.walle.one_day import OneDay
from walle.executors.port import WorkProgress
from walle.fuses.limits import parse_limit
from walle.healing.attempts import MAX_REPAIRS, recent_attempts, too_many_repairs
from walle.healing.decision import decide
from walle.healing.incidents import Incidents
from walle.work.book import HOST, PROJECT
from walle.work.orders import set_host_state
from walle.work.projects import update_project
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_PROBATION,
    HOST_STATUS_DEAD,
    HOST_STATUS_READY,
    OPERATION_KIND_REBOOT,
    Check,
    Host,
    HostState,
    RepairAttempt,
)
from wallepb.v1.project_pb2 import Limit, Project
from wallepb.v1.service_pb2 import SetHostStateRequest, UpdateProjectRequest

DAY_MS = 86_400_000


def repaired_at(*times_ms: int) -> Host:
    host = a_host("h1", "UNREACHABLE")
    host.attempt.extend(RepairAttempt(kind=OPERATION_KIND_REBOOT, check="ssh", at_ms=at_ms) for at_ms in times_ms)
    return host


def take_turns(day: OneDay) -> None:
    """Let the check that was repaired recover, and another one begin to fail."""
    host = day.host
    names = ("UNREACHABLE", "ssh")
    mended = host.operation.check or names[0]
    del host.check[:]
    failing = names[(names.index(mended) + 1) % 2]
    host.check.append(Check(name=failing, failing=True, since_ms=day.now_ms))
    day.book.put(HOST, "h1", host)


def has_looked(day: OneDay, times: int) -> bool:
    return day.calls["look"] >= times or day.host.status == HOST_STATUS_DEAD


@pytest.mark.parametrize("state", [HOST_STATE_ASSIGNED, HOST_STATE_PROBATION])
def test_two_checks_that_fail_in_turn_do_not_reboot_a_host_all_day(state: HostState) -> None:
    day = OneDay()
    host = day.host
    host.state = state
    day.book.put(HOST, "h1", host)
    for turn in range(20):
        day.live(until=partial(has_looked, day, turn + 1))
        if day.host.status == HOST_STATUS_DEAD:
            break
        take_turns(day)
    assert day.calls["begin"] == 3
    assert day.host.status == HOST_STATUS_DEAD
    assert "3 repairs began within 1d" in day.host.status_reason
    assert day.notices[-1].text.startswith("h1 is dead")


def test_a_host_whose_checks_are_fine_is_not_dead_however_often_it_was_repaired() -> None:
    host = repaired_at(*[NOW_MS - 1000] * 5)
    del host.check[:]
    assert decide(host, a_project(), Incidents(), NOW_MS).step is None


def test_the_limit_of_repairs_is_set_by_the_project_for_a_sliding_window() -> None:
    host, project = repaired_at(NOW_MS - DAY_MS, NOW_MS - 1000, NOW_MS - 500), a_project()
    assert too_many_repairs(host, project, NOW_MS) == ""
    project.max_repairs_per_host.CopyFrom(parse_limit(["1h:2", "1d:10"]))
    assert too_many_repairs(host, project, NOW_MS) == "2 repairs began within 1h, and it fails again"
    assert too_many_repairs(host, project, NOW_MS + 3_600_000) == ""
    assert [pair.count for pair in MAX_REPAIRS.pair] == [3]


def test_only_attempts_within_the_longest_window_are_kept() -> None:
    host = repaired_at(NOW_MS - 91 * DAY_MS, NOW_MS - 2 * DAY_MS, NOW_MS)
    project = a_project()
    assert len(recent_attempts(host, project, NOW_MS)) == 1
    project.max_repairs_per_host.CopyFrom(parse_limit(["7d:5"]))
    assert len(recent_attempts(host, project, NOW_MS)) == 2


def test_dns_fixes_and_work_that_people_ordered_are_no_attempts() -> None:
    day = OneDay("dns")
    day.live(until=lambda: day.calls["begin"] == 5)
    assert not day.host.attempt


def test_failed_work_is_an_attempt_and_work_that_could_not_be_prepared_is_none() -> None:
    day = OneDay()
    day.machine.seen = WorkProgress.FAILED
    day.live(until=lambda: day.host.status == HOST_STATUS_DEAD)
    assert [one.check for one in day.host.attempt] == ["UNREACHABLE", "UNREACHABLE"]


def test_taking_a_dead_host_back_clears_its_attempts() -> None:
    day = OneDay()
    day.book.put(HOST, "h1", repaired_at(NOW_MS, NOW_MS, NOW_MS))
    order = SetHostStateRequest(host="h1", status=HOST_STATUS_READY, reason="new board")
    set_host_state(day.book, order, "alice")
    assert not day.host.attempt


def test_a_project_sets_its_limit_and_returns_to_the_default() -> None:
    day = OneDay()
    limit = parse_limit(["2d:4"])
    update_project(day.book, UpdateProjectRequest(project="web", max_repairs_per_host=limit), "alice")
    assert (day.book.get(PROJECT, "web") or Project()).max_repairs_per_host == limit
    update_project(day.book, UpdateProjectRequest(project="web", max_repairs_per_host=Limit()), "alice")
    assert not (day.book.get(PROJECT, "web") or Project()).HasField("max_repairs_per_host")
