"""Thousands of hosts: reported in one call, listed in pages."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from store.port import Write
from tests.support.walle.running import LastingStore, Running, running
from walle.healing.incidents import Bounds, FailureDomain, Incident
from walle.process.automaton import HOSTS_IN_EVENT
from walle.work.book import HOST, PROJECT
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import HOST_STATE_FREE, HOST_STATE_MAINTENANCE, HOST_STATUS_READY, Host, Machine
from wallepb.v1.project_pb2 import SCENARIO_KIND_REBOOT, SCENARIO_STAGE_CANCELLED, Cms, Project


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


LISTS: dict[str, tuple[type[Message], dict[str, object], Callable[[Any], str]]] = {
    "hosts": (pb.ListHostsRequest, {}, lambda one: one["host"]["name"]),
    "projects": (pb.ListProjectsRequest, {}, lambda one: one["project"]["id"]),
    "machines": (pb.ListMachinesRequest, {"names": ["n*"]}, lambda one: one["name"]),
    "scenarios": (pb.ListScenariosRequest, {"open": True}, lambda one: one["id"]),
    "incidents": (pb.ListIncidentsRequest, {}, lambda one: one.removeprefix("rack ")[:2]),
}


async def test_every_list_has_pages_in_the_order_of_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walle.process.automaton.LOOK_EVERY_S", 3600.0)  # its incidents stay
    names = [f"n{number}" for number in range(5)]
    places = [FailureDomain("rack", "", name) for name in names]
    incidents = {(place, Bounds()): Incident(place, 0, 3, 3) for place in places}
    async with running() as walle:
        for name in names:
            await walle.project(Project(id=name))
            machine, host = (
                Machine(name=name, project=[name]),
                pb.AddHostRequest(host=name, project=name, state=HOST_STATE_FREE),
            )
            await walle.call(pb.ImportMachinesRequest(machines=[machine], hosts=[host]))
        await walle.call(pb.FreezeRequest(frozen=True, reason="the scenarios wait"))
        for name in (*names, "over"):
            await walle.call(pb.AddScenarioRequest(scenario=name, kind=SCENARIO_KIND_REBOOT, hosts=["n0"]))
        await walle.call(pb.EndScenarioRequest(scenario="over"))
        await walle.until(lambda: walle.scenario("over").stage == SCENARIO_STAGE_CANCELLED, "it is over")
        walle.server.automaton.world.incidents.open |= incidents
        for field, (request, where, name_of) in LISTS.items():
            pages, token = list[list[str]](), ""
            while token or not pages:
                answer = await walle.call(request(**where, page_size=2, page_token=token))
                pages.append([name_of(one) for one in answer[field]])
                token = answer.get("nextPageToken", "")
            assert pages == [names[:2], names[2:4], names[4:]], field
            with monkeypatch.context() as small:
                small.setattr("control.paging.MAX_PAGE", 3)
                first = await walle.call(request(**where))
            assert [name_of(one) for one in first[field]] == names[:3], f"{field}: as many as a page has"


async def test_a_call_about_many_hosts_takes_few_transactions_and_takes_effect_for_all() -> None:
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


@pytest.mark.long
async def test_a_list_that_is_watched_shows_what_changes() -> None:
    async with running(await full_store(1)) as walle:
        process = await asyncio.create_subprocess_exec(
            *(str(Path(sys.executable).parent / "walle"), "hosts", "list", "-w"),
            env=os.environ | {"WALLE_SERVER": (await walle.server.listening).grpc},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(60):
                assert (await process.stdout.readline()).startswith(b"HOST")
                assert (await process.stdout.readline()).split()[:4] == [b"h00000", b"web", b"maintenance", b"ready"]
                await walle.call(report("h00000"))
                assert (await process.stdout.readline()).split()[:2] == [b"-", b"h00000"]
                assert b"ssh" in await process.stdout.readline()
        finally:
            process.kill()
            await process.wait()
