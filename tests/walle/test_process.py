"""A process of Wall-E over real sockets: orders, checks, CMSs, takeovers, the emergency stop."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.walle.fake_cms import fake_cms
from tests.support.walle.running import LastingStore, Running, pretending, running
from walle.fuses.limits import parse_limit
from walle.process.automaton import COLLECT_EVERY_S, LOOK_AGAIN_S
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import (
    HOST_STATUS_DEAD,
    OPERATION_KIND_PREPARE,
    OPERATION_KIND_REBOOT,
    OUTCOME_CANCELLED,
    OUTCOME_REJECTED,
    STAGE_APPROVAL,
    STAGE_VERIFYING,
)
from wallepb.v1.project_pb2 import Cms, Project


async def with_cms(walle: Running, url: str, version: str = "v1.4") -> None:
    await walle.project(Project(id="web", cms=[Cms(url=url, version=version)]))


async def test_a_host_is_repaired_with_leave_and_given_back() -> None:
    with fake_cms(provisional=True) as cms:
        async with running() as walle:
            await with_cms(walle, cms.url)
            await walle.host("h1")
            await walle.report("h1", "UNREACHABLE")
            await walle.until(lambda: walle.of("h1").operation.stage == STAGE_VERIFYING, "the work is done")
            assert len(cms.tasks) == 1
            await walle.report("h1", "UNREACHABLE", failing=False)
            await walle.until(lambda: not walle.of("h1").HasField("operation"), "it is over")
    methods = [(method, path.rpartition("/")[2]) for method, path in cms.calls]
    assert methods[0] == ("POST", "tasks")  # the dry run comes first
    assert ("POST", "confirm") in methods
    assert not cms.tasks
    assert walle.of("h1").history[0].kind == OPERATION_KIND_REBOOT


@pytest.mark.long
async def test_a_rejected_repair_makes_the_host_dead_and_its_task_is_deleted() -> None:
    with fake_cms(verdict="rejected", message="the last copy") as cms:
        async with running() as walle:
            await with_cms(walle, cms.url)
            await walle.host("h1")
            await walle.report("h1", "UNREACHABLE")
            await walle.until(lambda: walle.of("h1").status == HOST_STATUS_DEAD, "it is dead")
            assert walle.of("h1").history[0].outcome == OUTCOME_REJECTED
            assert not cms.tasks


@pytest.mark.long
async def test_a_rejected_dry_run_starts_nothing_and_leaves_the_host_as_it_was() -> None:
    with fake_cms(dry_verdict="rejected", message="not today") as cms:
        async with running() as walle:
            await with_cms(walle, cms.url)
            await walle.host("h1")
            await walle.call(pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT))
            await walle.until(lambda: len(walle.of("h1").history) == 2, "it is over")
            assert walle.of("h1").history[0].outcome == OUTCOME_CANCELLED
            assert "not today" in walle.of("h1").history[0].message
            assert not cms.bodies  # no task was ever created


@pytest.mark.long
async def test_a_cms_that_rejects_the_dry_run_of_a_repair_is_not_asked_again_at_once_and_the_host_says_why() -> None:
    with fake_cms(dry_verdict="rejected", message="not today") as cms:
        async with running() as walle:
            await with_cms(walle, cms.url)
            await walle.host("h1")
            await walle.report("h1", "UNREACHABLE")
            await walle.until(lambda: len(walle.of("h1").history) == 2, "it is over")
            for failing in (True, False, True):  # each report makes Wall-E look again
                await walle.report("h1", "fan", failing=failing)
            await walle.server.automaton.controller.proven()
            shown = await walle.call(pb.GetHostRequest(host="h1"))
            said = [one.text for one in walle.server.automaton.notices.values() if "dry run" in one.text]
    assert [method for method, _ in cms.calls].count("POST") == 1
    assert shown["blocked"] == "a CMS rejected the dry run; it is asked again, at least every hour"
    assert said == [f"h1: reboot: a dry run was rejected: {cms.url}: not today"]


@pytest.mark.long
async def test_a_v1_0_cms_is_not_told_that_a_host_is_prepared_and_a_v1_1_cms_is() -> None:
    with fake_cms() as old, fake_cms() as new:
        async with running() as walle:
            both = [Cms(url=old.url, version="v1.0"), Cms(url=new.url, version="v1.1")]
            await walle.project(Project(id="web", cms=both))
            await walle.call(pb.AddHostRequest(host="h1", project="web"))
            await walle.until(lambda: len(walle.of("h1").history) == 1, "it is prepared")
    assert walle.of("h1").history[0].kind == OPERATION_KIND_PREPARE
    assert [body["action"] for body in new.bodies] == ["prepare"]
    assert not old.calls


@pytest.mark.long
async def test_with_ignore_cms_no_cms_is_asked() -> None:
    with fake_cms(verdict="rejected") as cms:
        async with running() as walle:
            await with_cms(walle, cms.url)
            await walle.host("h1")
            await walle.call(pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT, ignore_cms=True))
            await walle.until(lambda: len(walle.of("h1").history) == 2, "it is over")
    assert not cms.calls


async def test_tasks_of_ours_without_an_operation_are_deleted_soon_and_others_stay() -> None:
    with fake_cms() as cms:
        for task_id in ("walle-test.old-0-0", "nanny-7", "walle-test-2.op-0-0"):
            cms.tasks[task_id] = {"id": task_id, "hosts": ["h9"], "status": "ok"}
        async with running() as walle:
            await with_cms(walle, cms.url)
            looks = [await walle.server.automaton._look_at_tasks("web") for _ in range(2)]
    assert looks == [LOOK_AGAIN_S, COLLECT_EVERY_S]
    assert sorted(cms.tasks) == ["nanny-7", "walle-test-2.op-0-0"]


@pytest.mark.long
async def test_after_the_emergency_stop_nothing_begins() -> None:
    with fake_cms() as cms:
        async with running() as walle:
            await with_cms(walle, cms.url)
            await walle.host("h1")
            await walle.call(pb.FreezeRequest(frozen=True, reason="everything is red"))
            await walle.report("h1", "UNREACHABLE")
            await walle.server.automaton.controller.proven()
            assert not walle.of("h1").HasField("operation")
            assert not cms.calls
            await walle.call(pb.FreezeRequest(frozen=False, reason="over"))
            await walle.report("h1", "ssh")
            await walle.until(lambda: walle.of("h1").HasField("operation"), "it begins")


@pytest.mark.long
async def test_another_process_takes_over_in_the_middle_of_an_approval() -> None:
    store = LastingStore()
    with fake_cms(verdict="in-process") as cms:
        async with running(store, name="walle-1") as first, running(store, name="walle-2") as second:
            await with_cms(first, cms.url)
            await first.host("h1")
            await first.report("h1", "UNREACHABLE")
            await first.until(lambda: first.of("h1").operation.stage == STAGE_APPROVAL and bool(cms.tasks), "it asks")
            await first.kill()
            cms.decide("ok")
            await second.until(lambda: second.of("h1").operation.stage == STAGE_VERIFYING, "the work is done")
            await second.until(lambda: second.server.controller.is_acting, "it leads")
            assert len(cms.tasks) == 1


async def test_orders_are_taken_by_a_process_that_does_not_act() -> None:
    store = LastingStore()
    async with running(store, name="walle-1") as first, running(store, name="walle-2") as second:
        assert first.server.controller.is_acting
        await second.project(Project(id="web"))
        await first.until(lambda: "web" in first.server.automaton.projects, "both know it")


async def test_a_faulty_order_is_refused_with_the_reason_and_nothing_is_stored() -> None:
    async with running() as walle:
        await walle.project(Project(id="web"))
        refused = await walle.call(pb.CreateProjectRequest(project=Project(id="web")), 409)
        assert "already exists" in refused["message"]
        bad = Project(id="db", cms=[Cms(url="default", max_busy_hosts=0)])
        refused = await walle.call(pb.CreateProjectRequest(project=bad), 400)
        assert "max_busy_hosts of at least 1" in refused["message"]
        twice = Project(id="db", cms=[Cms(url="default", max_busy_hosts=1)] * 2)
        assert "at most one default" in (await walle.call(pb.CreateProjectRequest(project=twice), 400))["message"]
        assert "db" not in walle.server.automaton.projects


@pytest.mark.long
async def test_a_forecast_counts_every_check_of_a_waiting_host_and_names_credits_that_let_all_pass() -> None:
    async with running() as walle:
        limits = {"UNREACHABLE": parse_limit(["1d:1"]), "disk": parse_limit(["1d:0"])}
        await walle.project(Project(id="web", limits=limits))
        for name in ("h1", "h2", "h3"):
            await walle.host(name)
        await walle.call(pb.SwitchAutomationRequest(project="web", reason="to see"))
        for name in ("h1", "h2", "h3"):
            await walle.report(name, "UNREACHABLE")
        await walle.report("h1", "disk")
        await walle.report("h2", "dns")
        counts = {"h1": 2, "h2": 2, "h3": 1}  # a report is stored first, and takes effect a moment later
        await walle.until(lambda: all(len(walle.of(name).check) == n for name, n in counts.items()), "all is known")

        async def forecast(**credits_: int) -> dict[str, Any]:
            return await walle.call(pb.GetForecastRequest(project="web", credits=credits_))

        shown = await forecast()
        assert shown["creditsNeeded"] == {"UNREACHABLE": 2, "disk": 1}
        assert [line.partition(":")[0] for line in shown["lines"]][:2] == ["UNREACHABLE", "disk"]
        assert any(line.startswith("dns-fixes: 1 host waits") for line in shown["lines"])
        assert not (await forecast(UNREACHABLE=2, disk=1)).get("trips")
        assert (await forecast(UNREACHABLE=2))["trips"]


async def test_a_project_without_a_cms_gets_the_default_one_with_five_busy_hosts() -> None:
    async with running(file=pretending()) as walle:
        await walle.project(Project(id="web"))
        (cms,) = walle.server.automaton.projects["web"].cms
        assert (cms.url, cms.version, cms.max_busy_hosts) == ("default", "v1.0", 5)


@pytest.mark.long
async def test_a_cms_that_lost_its_tasks_is_told_of_the_work_that_runs() -> None:
    with fake_cms() as cms:
        async with running() as walle:
            await with_cms(walle, cms.url)
            await walle.host("h1")
            await walle.report("h1", "UNREACHABLE")
            await walle.until(lambda: walle.of("h1").operation.stage == STAGE_VERIFYING, "the work is done")
            (task_id,) = cms.tasks
            cms.tasks.clear()
            await walle.until(lambda: task_id in cms.tasks, "it is declared again")
    assert [body.get("already_running", False) for body in cms.bodies] == [False, True]
