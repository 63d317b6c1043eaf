"""Repairs and DNS fixes have an operation each: neither blocks the other, nor anybody's order."""

from __future__ import annotations

import pytest

from tests.support.walle.book import DictBook
from tests.support.walle.hosts import NOW_MS, a_host, a_project, at
from tests.support.walle.one_day import URLS, OneDay
from walle.approval.protocol import CmsAnswer
from walle.executors.port import WorkProgress
from walle.fuses.fuse import Automation
from walle.healing.incidents import Incidents
from walle.healing.lanes import swap_lanes
from walle.process.lanes import DnsBook
from walle.work.book import HOST, MACHINE, PROJECT, World
from walle.work.orders import change_host, start_operation
from walle.work.repairs import consider
from wallepb.v1.host_pb2 import (
    HOST_STATE_FREE,
    OPERATION_KIND_DNS_FIX,
    OPERATION_KIND_REBOOT,
    OPERATION_KIND_REDEPLOY,
    OUTCOME_CANCELLED,
    OUTCOME_FAILED,
    STAGE_RUNNING,
    VERDICT_IN_PROCESS,
    Host,
    LastRepair,
    Machine,
    Operation,
)
from wallepb.v1.service_pb2 import (
    HOST_CHANGE_MOVE,
    HOST_CHANGE_REMOVE,
    ChangeHostRequest,
    HostChange,
    Order,
    StartOperationRequest,
)


class Books:
    """A book with one host, and Wall-E's decisions about each of its lanes."""

    def __init__(self, *failing: str) -> None:
        ids = iter(f"op{i}" for i in range(100))
        self.book, self.world = DictBook(), World("i", {}, lambda: next(ids), Incidents())
        self.book.put(PROJECT, "web", a_project())
        self.book.put(HOST, "h1", a_host("h1", *failing))

    @property
    def host(self) -> Host:
        return self.book.get(HOST, "h1") or Host()

    def consider(self) -> Host:
        consider(self.book, "h1", self.world, at())
        consider(DnsBook(self.book), "h1", self.world, at(), lane=Automation.DNS)
        return self.host

    def fix_dns(self) -> None:
        host = self.host
        host.dns_operation.CopyFrom(Operation(id="fix", kind=OPERATION_KIND_DNS_FIX, check="dns", stage=STAGE_RUNNING))
        self.book.put(HOST, "h1", host)


def test_swapping_the_lanes_of_a_host_twice_changes_nothing() -> None:
    host = a_host("h1", "dns")
    host.operation.id, host.last_dns_repair.check = "repair", "dns"
    swapped = swap_lanes(host)
    assert (swapped.dns_operation.id, swapped.HasField("operation")) == ("repair", False)
    assert (swapped.last_repair.check, swapped.HasField("last_dns_repair")) == ("dns", False)
    assert swap_lanes(swapped) == host


def test_a_dns_record_is_fixed_while_its_host_is_repaired() -> None:
    host = Books("UNREACHABLE", "dns").consider()
    assert host.operation.kind == OPERATION_KIND_REBOOT
    assert host.dns_operation.kind == OPERATION_KIND_DNS_FIX
    assert not host.dns_operation.task, "no CMS is asked about it"


def test_a_dns_fix_that_waits_for_ever_keeps_no_repair_waiting() -> None:
    day = OneDay("dns")
    day.machine.seen = WorkProgress.RUNNING
    day.live(until=lambda: day.host.HasField("dns_operation"))
    host = day.host
    host.check.extend(a_host("h1", "UNREACHABLE", since_ms=day.now_ms).check)
    day.book.put(HOST, "h1", host)
    for cms in day.cms.values():
        cms.says = {"create": CmsAnswer(VERDICT_IN_PROCESS), "poll": CmsAnswer(VERDICT_IN_PROCESS)}
    day.live(until=lambda: bool(day.calls["poll"]), longest_ms=1_200_000)
    assert day.host.operation.kind == OPERATION_KIND_REBOOT
    assert set(day.cms) == set(URLS)


def test_a_dns_fix_that_failed_does_not_make_a_repair_begin_at_its_first_step_again() -> None:
    books = Books("UNREACHABLE")
    host = books.host
    host.last_repair.CopyFrom(
        LastRepair(check="UNREACHABLE", kind=OPERATION_KIND_REBOOT, outcome=OUTCOME_FAILED, at_ms=NOW_MS - 1000)
    )
    host.last_dns_repair.CopyFrom(LastRepair(check="dns", outcome=OUTCOME_FAILED, at_ms=NOW_MS))
    books.book.put(HOST, "h1", host)
    assert books.consider().operation.kind == OPERATION_KIND_REDEPLOY


@pytest.mark.parametrize("change", [HOST_CHANGE_MOVE, HOST_CHANGE_REMOVE])
def test_a_dns_fix_ends_before_its_host_is_moved_or_removed(change: HostChange) -> None:
    books = Books()
    books.fix_dns()
    host = books.host
    host.state = HOST_STATE_FREE if change == HOST_CHANGE_REMOVE else host.state
    books.book.put(HOST, "h1", host)
    books.book.put(MACHINE, "h1", Machine(name="h1", project=["*"]))
    order = ChangeHostRequest(host="h1", change=change, project="web" if change == HOST_CHANGE_MOVE else "")
    change_host(books.book, Order(change_host=order, by="alice", may_import=True), books.world, at())
    assert not books.host.HasField("dns_operation")
    if change == HOST_CHANGE_MOVE:
        (ended,) = books.host.history
        assert (ended.kind, ended.outcome) == (OPERATION_KIND_DNS_FIX, OUTCOME_CANCELLED)


def test_a_dns_fix_ends_before_its_host_is_redeployed_and_none_begins_until_that_is_over() -> None:
    books = Books("dns")
    books.fix_dns()
    order = StartOperationRequest(host="h1", kind=OPERATION_KIND_REDEPLOY)
    start_operation(books.book, order, "alice", books.world, at())
    assert not books.host.HasField("dns_operation")
    assert not books.consider().HasField("dns_operation")


def test_people_may_reboot_a_host_during_a_dns_fix() -> None:
    books = Books("dns")
    books.fix_dns()
    order = StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT)
    start_operation(books.book, order, "alice", books.world, at())
    assert (books.host.operation.kind, books.host.dns_operation.id) == (OPERATION_KIND_REBOOT, "fix")
