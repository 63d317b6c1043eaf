"""Credits, then the limit, are used up in the order in which hosts broke; the repairs they cover begin."""

from __future__ import annotations

import pytest

from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from walle.approval.tasks import task_after_answer
from walle.fuses.fuse import Automation, switch_off, trip
from walle.fuses.limits import parse_limit
from walle.healing.decision import hosts_ahead
from walle.healing.incidents import Incidents
from walle.tables import OperationEvent
from walle.work.book import FUSE, HOST, PROJECT, World
from walle.work.repairs import consider, move, settle, start_work
from wallepb.v1.host_pb2 import (
    HOST_STATE_ASSIGNED,
    HOST_STATE_PROBATION,
    STAGE_CONFIRMING,
    STAGE_ENDING,
    STAGE_RUNNING,
    VERDICT_OK,
    Host,
    HostState,
)
from wallepb.v1.project_pb2 import Credit, Fuse, Project

HOUR_MS = 3_600_000


class Broken:
    """Hosts that broke one after the other, in the order of their numbers."""

    def __init__(
        self, count: int, limit: str = "1d:5", credit: int = 0, state: HostState = HOST_STATE_ASSIGNED
    ) -> None:
        ids = iter(f"op{i}" for i in range(1000))
        self.book, self.world = (
            DictBook(),
            World("i", {"max_rebooted_hosts": parse_limit(["1d:100"])}, lambda: next(ids), Incidents()),
        )
        project = a_project()
        project.limits["ssh"].CopyFrom(parse_limit([limit]))
        self.book.put(PROJECT, "web", project)
        self.names = [f"h{i:02}" for i in range(count)]
        for number, name in enumerate(self.names):
            self.book.put(HOST, name, a_host(name, "ssh", since_ms=number, state=state))
        given = [Credit(counter="ssh", left=credit, until_ms=NOW_MS + HOUR_MS)] if credit else []
        self.book.put(FUSE, "web", Fuse(id="web", credit=given))

    def host(self, name: str) -> Host:
        return self.book.get(HOST, name) or Host()

    @property
    def fuse(self) -> Fuse:
        return self.book.get(FUSE, "web") or Fuse()

    def ahead(self, name: str) -> list[str]:
        hosts, project = [self.host(one) for one in self.names], self.book.get(PROJECT, "web") or Project()
        return hosts_ahead(self.host(name), hosts, project, self.world.incidents, NOW_MS, 0)

    def consider_last(self) -> None:
        """Do what a reconcile of the host that broke last does."""
        for name in [*self.ahead(self.names[-1]), self.names[-1]]:
            consider(self.book, name, self.world, at())

    def asked(self) -> list[str]:
        return [name for name in self.names if self.host(name).HasField("operation")]

    def approve(self, name: str) -> None:
        host = self.host(name)
        host.operation.stage = STAGE_CONFIRMING
        for task in host.operation.task:
            task.CopyFrom(task_after_answer(task, VERDICT_OK, "", NOW_MS, provisional=False))
        self.book.put(HOST, name, host)


def test_of_twenty_that_broke_at_once_ten_credits_and_a_limit_of_five_repair_the_first_fifteen() -> None:
    broken = Broken(20, credit=10)
    broken.consider_last()
    assert broken.asked() == broken.names[:15]
    assert broken.fuse.healing.tripped_by
    for name in broken.asked():
        broken.approve(name)
        settle(broken.book, name, broken.world, at())
        assert start_work(broken.book, name, "bmc", "", broken.world, at())
        assert broken.host(name).operation.stage == STAGE_RUNNING


def test_of_eleven_under_a_limit_of_ten_the_first_ten_are_repaired() -> None:
    broken = Broken(11, "1d:10")
    broken.consider_last()
    assert broken.asked() == broken.names[:10]
    settle(broken.book, "h00", broken.world, at())
    assert broken.host("h00").operation.stage != STAGE_ENDING


@pytest.mark.parametrize("by_person", [True, False])
def test_covered_repairs_begin_after_a_trip_but_not_after_a_person_switched_off(by_person: bool) -> None:
    broken = Broken(1)
    broken.consider_last()
    broken.approve("h00")
    off = switch_off(broken.fuse, Automation.HEALING, "alice", "wait", at())
    tripped = trip(broken.fuse, Automation.HEALING, "ssh 1d:5", at(), "h6")
    broken.book.put(FUSE, "web", off if by_person else tripped)
    assert start_work(broken.book, "h00", "bmc", "", broken.world, at()) is not by_person


def test_a_host_that_uses_no_limit_is_not_repaired_after_a_trip() -> None:
    broken = Broken(1, state=HOST_STATE_PROBATION)
    broken.consider_last()
    broken.approve("h00")
    broken.book.put(FUSE, "web", trip(broken.fuse, Automation.HEALING, "ssh 1d:5", at(), "h6"))
    settle(broken.book, "h00", broken.world, at())
    assert broken.host("h00").operation.stage == STAGE_ENDING


def test_a_credit_whose_operation_never_began_comes_back_while_it_lasts() -> None:
    for after_ms, left in ((HOUR_MS - 1, 3), (HOUR_MS, 2)):
        broken = Broken(1, credit=3)
        broken.consider_last()
        assert broken.fuse.credit[0].left == 2
        move(broken.book, broken.host("h00"), OperationEvent.DRY_RUN_OK, at())
        move(broken.book, broken.host("h00"), OperationEvent.REJECTED, at(NOW_MS + after_ms))
        assert broken.fuse.credit[0].left == left
        assert len(broken.fuse.mark) == 3 - left


def test_a_credit_whose_operation_began_is_spent() -> None:
    broken = Broken(1, credit=3)
    broken.consider_last()
    broken.approve("h00")
    assert start_work(broken.book, "h00", "bmc", "", broken.world, at())
    move(broken.book, broken.host("h00"), OperationEvent.GAVE_UP, at())
    assert broken.fuse.credit[0].left == 2


def test_only_hosts_that_wait_for_the_same_limit_come_first() -> None:
    broken = Broken(3)
    other = broken.host("h00")
    other.check[0].name = "UNREACHABLE"
    broken.book.put(HOST, "h00", other)
    assert broken.ahead("h02") == ["h01"]
    assert broken.ahead("h00") == []
