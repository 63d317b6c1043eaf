"""Which CMS is told what, over the wire: several CMSs of one project, and hosts that come, move and go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.walle.anywhere import Anywhere
from tests.support.walle.fake_cms import FakeCms, fake_cms
from tests.support.walle.running import Running, pretending, running
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.host_pb2 import (
    HOST_STATE_FREE,
    HOST_STATUS_DEAD,
    HOST_STATUS_READY,
    OPERATION_KIND_REBOOT,
    OUTCOME_DONE,
    OUTCOME_REJECTED,
    STAGE_APPROVAL,
)
from wallepb.v1.project_pb2 import SCENARIO_KIND_SWITCH_MAINTENANCE, Cms, Project

pytestmark = pytest.mark.long


@pytest.fixture
def first() -> Iterator[FakeCms]:
    with fake_cms() as cms:
        yield cms


@pytest.fixture
def second() -> Iterator[FakeCms]:
    with fake_cms() as cms:
        yield cms


def actions(cms: FakeCms) -> list[str]:
    return [body["action"] for body in cms.bodies]


async def in_both(walle: Running, first: FakeCms, second: FakeCms) -> None:
    both = [Cms(url=one.url, version="v1.4") for one in (first, second)]
    await walle.project(Project(id="web", cms=both))
    await walle.host("h1")


async def apart(walle: Running, first: FakeCms, second: FakeCms) -> None:
    """Project `web` with the first, `db` with the second."""
    for project, cms in (("web", first), ("db", second)):
        await walle.project(Project(id=project, cms=[Cms(url=cms.url, version="v1.4")]))


async def test_while_one_of_two_cms_s_answers_in_process_the_work_waits_for_that_one(
    first: FakeCms, second: FakeCms
) -> None:
    second.verdict = "in-process"
    async with running() as walle:
        await in_both(walle, first, second)
        await walle.call(pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT))
        await walle.until(lambda: bool(first.tasks) and bool(second.tasks), "both are asked")
        assert first.tasks.keys().isdisjoint(second.tasks), "each has an id of its own"
        await walle.until(lambda: second.url in walle.of("h1").operation.message, "it says whom it waits for")
        assert walle.of("h1").operation.stage == STAGE_APPROVAL
        second.decide("ok")
        await walle.until(lambda: len(walle.of("h1").history) == 2, "it is over")
        assert walle.of("h1").history[0].outcome == OUTCOME_DONE
        assert (first.tasks, second.tasks) == ({}, {})


async def test_one_rejection_cancels_a_repair_deletes_all_its_tasks_and_makes_the_host_dead(
    first: FakeCms, second: FakeCms
) -> None:
    second.verdict, second.message = "rejected", "the last copy"
    async with running() as walle:
        await in_both(walle, first, second)
        await walle.report("h1", "UNREACHABLE")
        await walle.until(lambda: walle.of("h1").status == HOST_STATUS_DEAD, "it is dead")
        assert walle.of("h1").history[0].outcome == OUTCOME_REJECTED
        assert (first.tasks, second.tasks) == ({}, {})


async def test_a_rejected_operation_that_people_ordered_leaves_the_host_as_it_was(
    first: FakeCms, second: FakeCms
) -> None:
    second.verdict, second.message = "rejected", "the last copy"
    async with running() as walle:
        await in_both(walle, first, second)
        await walle.call(pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT))
        await walle.until(lambda: len(walle.of("h1").history) == 2, "it is over")
        assert walle.of("h1").history[0].outcome == OUTCOME_REJECTED
        assert walle.of("h1").status == HOST_STATUS_READY
        assert (first.tasks, second.tasks) == ({}, {})


async def test_a_cms_is_shown_the_token_of_its_setting(first: FakeCms) -> None:
    file = pretending(destinations=Anywhere(token="secret"))
    async with running(file=file) as walle:
        await walle.project(Project(id="web", cms=[Cms(url=first.url, version="v1.4", tvm_app_id="7")]))
        await walle.host("h1")
        await walle.call(pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT))
        await walle.until(lambda: len(walle.of("h1").history) == 2, "it is over")
    assert set(first.tokens) == {"Bearer secret"}


async def test_owners_hear_of_a_cms_that_breaks_the_protocol(first: FakeCms, caplog: pytest.LogCaptureFixture) -> None:
    first.raw = (200, b'{"status": "perhaps"}')
    async with running() as walle:
        await walle.project(Project(id="web", cms=[Cms(url=first.url, version="v1.4")]))
        await walle.host("h1")
        await walle.call(pb.StartOperationRequest(host="h1", kind=OPERATION_KIND_REBOOT))
        await walle.until(lambda: "breaks the schema" in walle.of("h1").operation.message, "it is seen")
    said = [one.getMessage() for one in caplog.records if "wall-e-cms-request" in one.getMessage()]
    assert any("breaks the schema" in text and "web" in text for text in said), said


async def test_a_host_that_is_released_to_another_project_is_deactivated_in_the_cms_it_leaves(
    first: FakeCms, second: FakeCms
) -> None:
    async with running() as walle:
        await apart(walle, first, second)
        await walle.host("h1")
        order = pb.ChangeHostRequest(host="h1", change=pb.HOST_CHANGE_MOVE, project="db", release=True)
        await walle.call(order)
        await walle.until(lambda: walle.of("h1").project == "db", "it has moved")
        assert walle.of("h1").state == HOST_STATE_FREE
        assert (actions(first), actions(second)) == (["deactivate"], [])
        await walle.call(pb.ChangeHostRequest(host="h1", change=pb.HOST_CHANGE_PREPARE))
        await walle.until(lambda: actions(second) == ["prepare"], "the other one is told that it comes into use")


async def test_no_cms_is_told_of_a_host_that_moves_without_release_or_while_it_is_free(
    first: FakeCms, second: FakeCms
) -> None:
    async with running() as walle:
        await apart(walle, first, second)
        await walle.host("used")
        await walle.call(pb.AddHostRequest(host="free", project="web", state=HOST_STATE_FREE))
        for name in ("used", "free"):
            await walle.call(pb.ChangeHostRequest(host=name, change=pb.HOST_CHANGE_MOVE, project="db"))
            assert walle.of(name).project == "db"
        await walle.call(pb.ChangeHostRequest(host="free", change=pb.HOST_CHANGE_REMOVE))
        assert "free" not in walle.server.automaton.hosts
    assert (first.bodies, second.bodies) == ([], [])


async def test_a_host_in_use_is_deactivated_before_it_is_removed(first: FakeCms, second: FakeCms) -> None:
    first.verdict = "in-process"
    async with running() as walle:
        await apart(walle, first, second)
        await walle.host("h1")
        await walle.call(pb.ChangeHostRequest(host="h1", change=pb.HOST_CHANGE_REMOVE))
        await walle.until(lambda: bool(first.tasks), "it is asked")
        assert actions(first) == ["deactivate"]
        assert "h1" in walle.server.automaton.hosts
        first.decide("ok")
        await walle.until(lambda: "h1" not in walle.server.automaton.hosts, "it is gone")
        assert first.tasks == {}


async def test_cms_s_of_several_projects_get_one_group_id_and_tasks_of_their_own(
    first: FakeCms, second: FakeCms
) -> None:
    async with running() as walle:
        await apart(walle, first, second)
        for name, project in (("h1", "web"), ("h2", "db")):
            await walle.host(name, project, location={"switch": "s1"})
        order = pb.AddScenarioRequest(scenario="s", kind=SCENARIO_KIND_SWITCH_MAINTENANCE, switch="s1", ticket="T-1")
        await walle.call(order)
        await walle.until(lambda: bool(first.bodies) and bool(second.bodies), "both are asked")
    (one,), (other,) = first.bodies, second.bodies
    assert one["action"] == other["action"] == "temporary-unreachable"
    assert one["host_group_id"] == other["host_group_id"] != ""
    assert one["id"] != other["id"]
    assert (one["hosts"], other["hosts"]) == (["h1"], ["h2"])
