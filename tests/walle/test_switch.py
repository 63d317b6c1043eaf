"""A switch is upgraded: our own CMS is asked for a rack as one, HQ counts no silence meanwhile, all is given back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest

from hqclient import Client
from serving.errors import StoreUnavailable
from tests.cms.cloud import Cloud, service_of
from tests.support.walle.fake_cms import fake_cms
from tests.support.walle.running import Running, running
from walle.process.hq import NoHq
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import (
    HOST_STATE_MAINTENANCE,
    OPERATION_KIND_REBOOT,
    OUTCOME_CANCELLED,
    STAGE_ENDING,
    STAGE_VERIFYING,
    Location,
)
from wallepb.v1.project_pb2 import (
    SCENARIO_KIND_REBOOT,
    SCENARIO_KIND_SWITCH_MAINTENANCE,
    SCENARIO_STAGE_ASKING,
    SCENARIO_STAGE_CANCELLED,
    SCENARIO_STAGE_CONFIRMING,
    SCENARIO_STAGE_FINISHED,
    SCENARIO_STAGE_PAUSED,
    SCENARIO_STAGE_REFUSED,
    SCENARIO_STAGE_WORKING,
    Cms,
    Project,
)

SWITCH = pb.AddScenarioRequest(scenario="net-7", kind=SCENARIO_KIND_SWITCH_MAINTENANCE, switch="s1", ticket="NET-7")


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scenarios are looked at every five seconds; nothing here depends on it."""
    monkeypatch.setattr("walle.process.planner.POLL_S", 0.3)


@asynccontextmanager
async def cloud_with_walle() -> AsyncIterator[tuple[Cloud, Running]]:
    """Ten hosts h0 to h9 with one instance of `web` each, our CMS, and Wall-E."""
    async with service_of(10) as (cloud, cms), Client([cloud.addresses["ams"]]) as hq, running(hq=hq) as walle:
        url = f"http://127.0.0.1:{cms.port}"
        await walle.project(Project(id="web", cms=[Cms(url=url, version="v1.4")]))
        yield cloud, walle


async def suspended(cloud: Cloud) -> set[str]:
    async with Client([cloud.addresses["ams"]]) as hq:
        answer = await hq.admin.list_suspensions()
    return {one.node_name for one in answer.suspensions}


@pytest.mark.long
@pytest.mark.timeout(240)
async def test_a_rack_of_forty_is_approved_as_one_and_given_back() -> None:
    async with cloud_with_walle() as (cloud, walle):
        names = ["h0", *(f"spare{i}" for i in range(39))]
        await asyncio.gather(*(walle.host(name, location=Location(switch="s1")) for name in names))
        await walle.call(SWITCH)
        await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_WORKING, "the work may begin", 120)
        assert await suspended(cloud) == set(names)
        await walle.report("h0", "UNREACHABLE")
        await walle.until(lambda: bool(walle.of("h0").check), "the check is known")
        assert not walle.of("h0").HasField("operation")
        await walle.report("h0", "UNREACHABLE", failing=False)
        await walle.call(pb.EndScenarioRequest(scenario="net-7", done=True))
        await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_FINISHED, "all is given back", 60)
        assert await suspended(cloud) == set()
        assert not any(walle.of(name).scenario for name in names)


@pytest.mark.long
async def test_work_that_is_blocked_says_who_blocks_it_and_why() -> None:
    async with cloud_with_walle() as (_, walle):
        names = [f"h{i}" for i in range(10)]  # all of the service: its budget does not allow it
        await asyncio.gather(*(walle.host(name, location=Location(switch="s1")) for name in names))
        await walle.call(SWITCH)

        def is_blocked() -> bool:
            said = [task.message for host in walle.scenario("net-7").host for task in host.task]
            return bool(said) and all("budget" in text for text in said)

        await walle.until(is_blocked, "the CMS says what is in the way", 60)
        assert walle.scenario("net-7").stage == SCENARIO_STAGE_ASKING
        shown = await walle.call(pb.GetScenarioRequest(scenario="net-7"))
        assert all("web" in line for line in shown["blocking"]), shown["blocking"]
        await walle.call(pb.EndScenarioRequest(scenario="net-7", reason="not today"))
        await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_CANCELLED, "it is given back", 60)


@pytest.mark.long
async def test_only_assigned_and_ready_hosts_are_asked_about_and_only_where_the_cms_knows_it() -> None:
    with fake_cms() as new, fake_cms() as old:
        async with running() as walle:
            both = [Cms(url=new.url, version="v1.4"), Cms(url=old.url, version="v1.3")]
            await walle.project(Project(id="web", cms=both))
            for name in ("h1", "h2", "h3"):
                await walle.host(name, location=Location(switch="s1" if name != "h3" else "s2"))
            await walle.call(pb.SetHostStateRequest(host="h2", state=HOST_STATE_MAINTENANCE, reason="mine"))
            await walle.call(SWITCH)
            await walle.until(lambda: len(new.bodies) == 1, "the new one is asked")
            shown = await walle.call(pb.GetScenarioRequest(scenario="net-7"))
    assert [(body["hosts"], body["action"]) for body in new.bodies] == [(["h1"], "temporary-unreachable")]
    assert new.bodies[0]["host_group_id"]
    assert not old.calls
    assert [line for line in shown["blocking"] if line.startswith(f"h1: CMS `{old.url}` cannot be asked; ")]


@pytest.mark.long
async def test_the_work_begins_only_once_the_owners_of_cms_that_cannot_be_asked_have_agreed_by_hand() -> None:
    async with running() as walle:
        for project in ("web", "db"):
            await walle.project(Project(id=project))
            await walle.host(f"{project}1", project, location=Location(switch="s1"))
        await walle.call(SWITCH)
        await walle.call(pb.AgreeScenarioRequest(scenario="net-7", project="web", reason="nobody needs it"))
        blocking = (await walle.call(pb.GetScenarioRequest(scenario="net-7")))["blocking"]
        agree = "an owner of db has to run `walle scenarios agree net-7 --project db -m WHY`"
        assert blocking == [f"db1: CMS `default` cannot be asked; {agree}"]
        assert walle.scenario("net-7").stage == SCENARIO_STAGE_ASKING
        await walle.call(pb.AgreeScenarioRequest(scenario="net-7", project="db", reason="moved away"))
        await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_WORKING, "the work may begin")
        said = {host.name: one.reason for host in walle.scenario("net-7").host for one in host.agreed}
        assert said == {"web1": "nobody needs it", "db1": "moved away"}


@pytest.mark.long
async def test_an_owner_who_refuses_by_hand_forbids_the_work_and_says_why() -> None:
    async with running() as walle:
        await walle.project(Project(id="web"))
        await walle.host("h1", location=Location(switch="s1"))
        await walle.call(SWITCH)
        refusal = pb.AgreeScenarioRequest(scenario="net-7", project="web", refused=True, reason="the last copy")
        await walle.call(refusal)
        await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_REFUSED, "it is over")
        assert "the last copy" in walle.scenario("net-7").message
        assert not walle.of("h1").scenario
        assert "nothing is left to agree on" in (await walle.call(refusal, 400))["message"]


@pytest.mark.long
async def test_the_work_waits_until_hq_suspends_the_silence_of_its_hosts_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object) -> None:
        raise StoreUnavailable("etcd is away")

    with fake_cms() as cms:
        async with running() as walle:
            await walle.project(Project(id="web", cms=[Cms(url=cms.url, version="v1.4")]))
            await walle.host("h1", location=Location(switch="s1"))
            taken = NoHq.suspend
            monkeypatch.setattr(NoHq, "suspend", refuse)
            await walle.call(SWITCH)
            await walle.until(lambda: "etcd is away" in walle.scenario("net-7").message, "it says what it waits for")
            assert walle.scenario("net-7").stage == SCENARIO_STAGE_CONFIRMING
            monkeypatch.setattr(NoHq, "suspend", taken)
            await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_WORKING, "the work may begin")


@pytest.mark.long
async def test_behind_a_switch_that_stays_dark_after_the_work_no_host_is_rebooted() -> None:
    names = [f"h{i}" for i in range(4)]
    with fake_cms() as cms:
        async with running() as walle:
            await walle.project(Project(id="web", cms=[Cms(url=cms.url, version="v1.4")]))
            for name in names:
                await walle.host(name, location=Location(switch="s1"))
            await walle.call(SWITCH)
            await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_WORKING, "the work may begin")
            for name in names:
                await walle.report(name, "UNREACHABLE")
            await walle.call(pb.EndScenarioRequest(scenario="net-7", done=True))
            await walle.until(lambda: walle.scenario("net-7").stage == SCENARIO_STAGE_FINISHED, "all is given back")
            incidents = walle.server.automaton.world.incidents
            await walle.until(lambda: bool(incidents.open), "the switch has an incident")
            await walle.until(
                lambda: not any(walle.of(name).HasField("operation") for name in names), "nothing is done"
            )
            ended = [one for name in names for one in walle.of(name).history if one.kind == OPERATION_KIND_REBOOT]
            assert {one.outcome for one in ended} <= {OUTCOME_CANCELLED}
            assert not cms.tasks


@pytest.mark.long
async def test_a_mass_reboot_stops_after_a_host_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walle.work.waves.RETURN_MS", 500)
    async with running() as walle:
        await walle.project(Project(id="web"))
        for name in ("h0", "h1"):
            await walle.host(name)
        await walle.report("h0", "kernel-panic")
        order = pb.AddScenarioRequest(scenario="kernel", kind=SCENARIO_KIND_REBOOT, hosts=["h0", "h1"])
        await walle.call(order)
        await walle.until(lambda: walle.scenario("kernel").stage == SCENARIO_STAGE_PAUSED, "it has stopped")
        assert "1 of 1 failed: h0 (kernel-panic fails)" in walle.scenario("kernel").message
        assert not any(one.kind == OPERATION_KIND_REBOOT for one in walle.of("h1").history)
        incidents = (await walle.call(pb.ListIncidentsRequest()))["incidents"]
        assert incidents == ["scenario kernel: not back: h0 (kernel-panic fails)"]


def is_rebooted(walle: Running, name: str) -> bool:
    return walle.of(name).operation.stage == STAGE_VERIFYING


@pytest.mark.long
async def test_the_next_wave_begins_once_the_hosts_of_the_one_before_are_reported_as_good() -> None:
    async with running() as walle:
        await walle.project(Project(id="web"))
        for name in ("h0", "h1"):
            await walle.host(name)
        order = pb.AddScenarioRequest(scenario="kernel", kind=SCENARIO_KIND_REBOOT, hosts=["h0", "h1"])
        await walle.call(order)
        for name in ("h0", "h1"):
            await walle.until(partial(is_rebooted, walle, name), f"{name} is rebooted")
            assert walle.of(name).scenario == "kernel"
            await walle.report(name, "ssh", failing=False)
        await walle.until(lambda: walle.scenario("kernel").stage == SCENARIO_STAGE_FINISHED, "both are back")
        assert walle.scenario("kernel").message == "done; failed: none"
        steer = pb.SteerScenarioRequest(scenario="kernel", steering=pb.STEERING_RETRY, reason="again")
        assert "cannot be retried now" in (await walle.call(steer, 400))["message"]


@pytest.mark.long
async def test_hosts_are_rebooted_a_few_at_a_time() -> None:
    with fake_cms() as cms:
        async with running() as walle:
            await walle.project(Project(id="web", cms=[Cms(url=cms.url, version="v1.4")]))
            for i in range(3):
                await walle.host(f"h{i}")
            hosts = [f"h{i}" for i in range(3)]
            await walle.call(
                pb.AddScenarioRequest(
                    scenario="kernel", kind=SCENARIO_KIND_REBOOT, hosts=hosts, at_once=2, verify="none"
                )
            )
            most = 0

            def finished() -> bool:
                nonlocal most
                # One that is back only gives its approval back.
                at_work = [name for name in hosts if walle.of(name).operation.stage not in (0, STAGE_ENDING)]
                most = max(most, len(at_work))
                return walle.scenario("kernel").stage == SCENARIO_STAGE_FINISHED

            await walle.until(finished, "all are rebooted", 60)
            assert most <= 2

            def gave_back() -> bool:
                return all(walle.of(name).history[0].kind == OPERATION_KIND_REBOOT for name in hosts)

            await walle.until(gave_back, "all gave their approval back")
