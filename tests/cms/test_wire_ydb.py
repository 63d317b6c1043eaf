"""What the handler of open-source YDB documents in its code and tests, tried against ours over real HTTP.

Its sources: ydb/core/cms/walle_api_handler.cpp, walle_create_task_adapter.cpp, and WalleTasks in cms_ut.cpp. Where ours
differs, because the description of the protocol does, the test's name begins with `differs`.
"""

from __future__ import annotations

import pytest

from tests.cms.cloud import Cms, service_of, task

ACTIONS = (
    *("reboot", "power-off", "change-disk", "change-memory", "profile", "redeploy", "repair-link"),
    *("repair-bmc", "repair-overheat", "repair-capping", "temporary-unreachable", "prepare", "deactivate"),
)


async def _listed(cms: Cms) -> dict[str, str]:
    return {one["id"]: one["status"] for one in (await cms.call("GET", "")).body["result"]}


async def test_the_steps_of_ydbs_own_test_of_tasks_have_the_same_results() -> None:
    async with service_of(10) as (_, cms):
        assert (await cms.ask("task-5", "h0", action="change-disk")).body["status"] == "ok"
        assert await _listed(cms) == {"task-5": "ok"}
        assert (await cms.ask("task-6", "h1")).body["status"] == "in-process"
        assert len(await _listed(cms)) == 2
        assert await cms.status("task-5") == "ok"
        assert await cms.status("task-6") == "in-process"
        assert (await cms.call("GET", "/task-7")).status == 404
        dry = await cms.ask("task-7", "h1", path="?dry_run=true")
        assert dry.body["status"] == "in-process"
        assert len(await _listed(cms)) == 2
        assert (await cms.call("DELETE", "/task-5")).status == 204
        assert (await cms.call("DELETE", "/task-5")).status == 404
        assert (await cms.call("GET", "/task-5")).status == 404, "it is gone from both"
        await cms.becomes("task-6", "ok")
        assert await _listed(cms) == {"task-6": "ok"}
        assert (await cms.call("DELETE", "/task-6")).status == 204
        assert await _listed(cms) == {}


async def test_a_task_is_answered_with_its_id_hosts_status_and_message() -> None:
    async with service_of(3) as (_, cms):
        reply = await cms.ask("t", "h0")
        assert reply.status == 200
        assert {"id", "hosts", "status", "message"} <= reply.body.keys()
        assert reply.body["hosts"] == ["h0"]
        assert reply.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("action", ACTIONS)
async def test_the_actions_that_ydb_knows_are_taken(action: str) -> None:
    async with service_of(1) as (_, cms):
        assert (await cms.ask("t", "h0", action=action, path="?dry_run=true")).status == 200


async def test_malformed_json_no_hosts_and_unknown_actions_are_400() -> None:
    async with service_of(1) as (_, cms):
        for body in (b"{", task("t"), task("t", "h0", action="dance"), b"[]", b"7"):
            assert (await cms.call("POST", "", body)).status == 400
        assert await _listed(cms) == {}


async def test_other_methods_are_405_and_other_paths_404() -> None:
    async with service_of(1) as (_, cms):
        assert (await cms.call("PUT", "", task("t", "h0"))).status == 405
        assert (await cms.call("POST", "/t", task("t", "h0"))).status == 405
        assert (await cms.call("GET", "s")).status == 404
        assert (await cms.call("GET", "", version="v2.0")).status == 404


async def test_a_down_host_may_be_repaired_while_another_is_worked_on() -> None:
    async with service_of(8) as (made, cms):
        assert (await cms.ask("task-1", "h0")).body["status"] == "ok"
        assert (await cms.ask("task-2", "h1")).body["status"] == "in-process"
        made.crews["ams"].ready["web-1"] = False
        await cms.becomes("task-2", "ok")


@pytest.mark.long
async def test_tasks_outlive_a_restart() -> None:
    async with service_of(10, term_s=1.0) as (made, cms):
        assert (await cms.ask("task-8", "h0")).body["status"] == "ok"
        assert (await cms.ask("task-6", "h1")).body["status"] == "in-process"
        await cms.kill()
        again = await made.cms("cms-2", term_s=1.0)
        assert await _listed(again) == {"task-8": "ok", "task-6": "in-process"}
        assert (await again.call("DELETE", "/task-8")).status == 204
        await again.becomes("task-6", "ok")


# --- differences ------------------------------------------------------------------------------------------------------


async def test_differs_a_trailing_slash_is_the_same_path() -> None:
    async with service_of(3) as (_, cms):
        assert (await cms.call("POST", "/", task("t", "h0"))).status == 200
        assert (await cms.call("GET", "/")).body["result"][0]["id"] == "t"
        assert (await cms.call("GET", "/t/")).status == 200
        assert (await cms.call("DELETE", "/t/")).status == 204


async def test_differs_prepare_and_deactivate_are_stored() -> None:
    async with service_of(3) as (_, cms):
        assert (await cms.ask("p", "h0", action="prepare")).body["status"] == "ok"
        assert (await cms.ask("d", "h1", action="deactivate")).body["status"] == "ok"
        assert await _listed(cms) == {"p": "ok", "d": "ok"}


async def test_differs_a_later_task_does_not_pass_one_that_waits_for_the_same() -> None:
    async with service_of(10) as (_, cms):
        await cms.ask("first", "h0")
        assert (await cms.ask("second", "h1")).body["status"] == "in-process"
        await cms.call("DELETE", "/first")
        assert (await cms.ask("third", "h2")).body["status"] == "in-process"
        await cms.becomes("second", "ok")


async def test_differs_a_task_for_an_unknown_host_is_granted_and_holds_nothing() -> None:
    async with service_of(1) as (_, cms):
        assert (await cms.ask("t", "host1", action="prepare")).body["status"] == "ok"
        assert (await cms.ask("u", "host1")).body["status"] == "ok"


async def test_differs_rejected_tasks_are_stored_until_they_are_deleted_and_say_rejected() -> None:
    async with service_of(2) as (_, cms):
        budget = {"name": "web", "service": "web", "minReady": "2", "rejectImpossible": True}
        await _put_budget(cms, budget)
        assert (await cms.ask("t", "h0")).body["status"] == "rejected"
        assert await _listed(cms) == {"t": "rejected"}
        assert (await cms.call("DELETE", "/t")).status == 204
        assert await _listed(cms) == {}


@pytest.mark.long
async def test_differs_a_list_shows_what_was_asked_for_too() -> None:
    async with service_of(1) as (_, cms):
        await cms.ask("t", "h0", action="prepare", comment="new disks", extra={"ticket": "A-1"}, host_group_id="g")
        [one] = (await cms.call("GET", "")).body["result"]
        assert (one["issuer"], one["action"], one["type"]) == ("wall-e", "prepare", "automated")
        assert (one["comment"], one["extra"], one["host_group_id"]) == ("new disks", {"ticket": "A-1"}, "g")


async def _put_budget(cms: Cms, budget: dict[str, object]) -> None:
    reply = await cms.call_connect("PutBudget", {"budget": budget})
    assert reply.status == 200, reply
