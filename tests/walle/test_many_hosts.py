"""Thousands of hosts: reported in one call, listed in pages."""

from __future__ import annotations

import pytest

from store.port import Write
from tests.support.walle.running import LastingStore, Running, running
from walle.process.automaton import HOSTS_IN_EVENT
from walle.work.book import HOST, PROJECT
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_MAINTENANCE, HOST_STATUS_READY, Host
from wallepb.v1.project_pb2 import Cms, Project


async def full_store(count: int) -> LastingStore:
    """One that holds hosts in maintenance already: they are reported and listed, and nothing is done to them."""
    store, prefix = LastingStore(), b"/walle/v1/"
    project = Project(id="web", cms=[Cms(url="default", version="v1.0", max_busy_hosts=5)])
    await store.commit((), [Write((), ((prefix + f"{PROJECT.name}/web".encode(), project.SerializeToString()),))], 5.0)
    for first in range(0, count, 100):
        hosts = [
            Host(name=f"h{i:05}", project="web", state=HOST_STATE_MAINTENANCE, status=HOST_STATUS_READY, listed=True)
            for i in range(first, min(first + 100, count))
        ]
        puts = tuple((prefix + f"{HOST.name}/{one.name}".encode(), one.SerializeToString()) for one in hosts)
        await store.commit((), [Write((), puts)], 5.0)
    return store


def report(*names: str, failing: bool = True) -> pb.ReportChecksRequest:
    check = pb.CheckReport(name="ssh", failing=failing, source="test")
    return pb.ReportChecksRequest(hosts=[pb.HostChecks(host=name, check=[check]) for name in names])


def failing(walle: Running) -> int:
    return sum(any(check.failing for check in host.check) for host in walle.server.automaton.hosts.values())


async def test_a_call_about_many_hosts_takes_few_transactions_and_all_of_it_effect() -> None:
    count = 40 * HOSTS_IN_EVENT
    async with running(await full_store(count)) as walle:
        names = [f"h{i:05}" for i in range(count)]
        before = walle.server.controller.version
        await walle.call(report(*names, "nobody"))
        await walle.until(lambda: failing(walle) == count, "all are known to fail")
        assert walle.server.controller.version - before <= count + 150, "an inbox, and a transaction, for several"


@pytest.mark.long
async def test_reports_of_one_host_take_effect_in_their_order() -> None:
    async with running(await full_store(3)) as walle:
        for number in range(20):
            await walle.call(report("h00000", "h00001", failing=number % 2 == 0))
        await walle.until(lambda: not any(walle.server.automaton.orders.pending(one) for one in subjects(walle)), "all")
        assert failing(walle) == 0


def subjects(walle: Running) -> list[str]:
    return list(walle.server.automaton.orders.subjects())


async def test_a_host_that_is_removed_meanwhile_stops_no_report_of_the_others() -> None:
    async with running(await full_store(2)) as walle:
        answer = await walle.call(report("h00000", "gone", "h00001"))
        assert answer == {"unknown": ["gone"]}
        await walle.until(lambda: failing(walle) == 2, "both are known")
