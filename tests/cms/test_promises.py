"""The sentences of the design, one by one, over real HTTP and a real HQ."""

from __future__ import annotations

import asyncio
import random
import time
from typing import NoReturn

import pytest

from cms.ledger.book import Rules
from cms.ledger.limits import DomainLimit, Site
from cmspb.storage.v1 import ledger_pb2
from store.port import Disconnected, Write
from tests.cms.cloud import Cms, LastingStore, cloud, known, service_of
from tests.support.faulty_store import FaultyStore, rewound
from tests.support.sample_instances import eventually

# So long that the calls that must come before an end come before it, also on a machine that stalls.
QUICK = Rules(settle_s=0.5, lapse_s=5.0, pass_s=5.0)
SETTLED = Rules(settle_s=5.0)


async def budget(cms: Cms, name: str, service: str, **rule: object) -> None:
    reply = await cms.call_connect("PutBudget", {"budget": {"name": name, "service": service, **rule}})
    assert reply.status == 200, reply


async def test_posting_twice_is_one_task_and_another_content_is_a_conflict() -> None:
    async with service_of(3) as (_, cms):
        first = await cms.ask("t", "h0")
        second = await cms.ask("t", "h0")
        assert first.body["status"] == second.body["status"] == "ok"
        assert len((await cms.call("GET", "")).body["result"]) == 1
        other = await cms.ask("t", "h1")
        assert other.status == 409
        assert "different content" in other.body["message"]


async def test_a_verdict_names_the_floor_the_holders_the_instances_not_ready_and_when_to_ask_again() -> None:
    async with service_of(10) as (made, cms):
        await budget(cms, "web", "web", minReady="8")
        made.crews["ams"].ready["web-9"] = False
        await known(cms, 9)
        assert (await cms.ask("t1", "h0")).body["status"] == "ok"
        blocked = (await cms.ask("t2", "h1")).body
        assert blocked["status"] == "in-process"
        [seen] = blocked["details"]["budgets"]
        assert (seen["floor"], seen["total"], seen["available"], seen["needs"]) == (8, 10, 8, 1)
        assert [held["task"] for held in seen["holders"]] == ["t1"]
        assert [missing["instance"] for missing in seen["not_ready"]] == ["web-9"]
        assert blocked["details"]["retry_after_s"] > 0
        assert "t1" in blocked["message"]


async def test_a_broken_host_is_not_kept_from_repair_though_its_budget_is_broken() -> None:
    async with service_of(2) as (made, cms):
        await budget(cms, "web", "web", minReady="2")
        made.crews["ams"].ready["web-0"] = False
        await known(cms, 1)
        assert (await cms.ask("t", "h0", action="change-disk")).body["status"] == "ok"


@pytest.mark.long
async def test_after_work_an_instance_counts_again_once_it_was_heard_again() -> None:
    async with service_of(10) as (made, cms):
        crew = made.crews["ams"]
        assert (await cms.ask("t1", "h0")).body["status"] == "ok"
        crew.silent.add("web-0")  # HQ goes on to call it ready
        await asyncio.sleep(1.0)  # a report may be under way
        await cms.call("DELETE", "/t1")
        waiting = (await cms.ask("t2", "h1")).body
        assert waiting["status"] == "in-process"
        assert "its agent has not reported since work on it ended" in waiting["message"]
        crew.silent.clear()
        await cms.becomes("t2", "ok")


async def test_after_a_roll_out_of_instances_hqs_word_on_them_counts_at_once() -> None:
    async with service_of(10) as (made, cms):
        mine = {"id": "t1", "action": "roll-out", "instance": [{"location": "ams", "id": "web-0"}], "issuer": "nanny"}
        assert (await cms.call_connect("CreateTask", {"task": mine})).status == 200
        made.crews["ams"].silent.add("web-0")
        await asyncio.sleep(0.2)
        assert (await cms.call_connect("DeleteTask", {"id": "t1"})).status == 200
        assert (await cms.ask("t2", "h1")).body["status"] == "ok"


@pytest.mark.long
async def test_tasks_of_a_group_are_decided_as_one_once_none_was_added_for_a_while() -> None:
    async with service_of(10, rules=SETTLED) as (_, cms):
        await budget(cms, "web", "web", maxUnavailable="2")
        first = await cms.ask("a", "h0", host_group_id="g")
        assert (first.body["status"], "more tasks of group g" in first.body["message"]) == ("in-process", True)
        await cms.ask("b", "h1", host_group_id="g")
        await cms.becomes("a", "ok")
        assert await cms.status("b") == "ok"


@pytest.mark.long
async def test_two_groups_that_each_hold_half_of_what_they_need_do_not_wait_for_each_other() -> None:
    async with service_of(4, rules=SETTLED) as (_, cms):
        await budget(cms, "web", "web", maxUnavailable="2")
        for task_id, host, group in (("a", "h0", "g1"), ("b", "h1", "g2"), ("c", "h2", "g1"), ("d", "h3", "g2")):
            await cms.ask(task_id, host, host_group_id=group)
        await cms.becomes("a", "ok")
        assert [await cms.status(one) for one in "abcd"] == ["ok", "in-process", "ok", "in-process"]
        for done in "ac":
            await cms.call("DELETE", f"/{done}")
        await cms.becomes("d", "ok")


async def test_a_provisional_ok_is_confirmed_before_the_first_effect() -> None:
    async with service_of(10) as (_, cms):
        offered = (await cms.ask("t", "h0", confirm=True)).body
        assert (offered["status"], offered["details"]["provisional"]) == ("ok", True)
        confirmed = await cms.call("POST", "/t/confirm")
        assert (confirmed.status, confirmed.body["details"]["provisional"]) == (200, False)
        assert (await cms.call("POST", "/t/confirm")).status == 200


async def test_a_provisional_ok_is_withdrawn_when_the_floor_no_longer_holds_with_it() -> None:
    async with service_of(10) as (made, cms):
        assert (await cms.ask("t", "h0", confirm=True)).body["status"] == "ok"
        made.crews["ams"].ready["web-5"] = False
        await cms.becomes("t", "in-process")
        refused = await cms.call("POST", "/t/confirm")
        assert (refused.status, refused.body["status"]) == (409, "in-process")
        assert "web-5" in refused.body["message"]
        made.crews["ams"].ready["web-5"] = True
        await cms.becomes("t", "ok")


@pytest.mark.long
async def test_a_provisional_ok_that_nobody_polls_lapses_and_holds_nothing() -> None:
    async with service_of(10, rules=QUICK) as (_, cms):
        assert (await cms.ask("dead", "h0", confirm=True)).body["status"] == "ok"
        assert (await cms.ask("next", "h1")).body["status"] == "in-process"
        await cms.becomes("next", "ok")  # the first one's client is gone


@pytest.mark.long
async def test_a_task_that_waits_for_something_broken_lets_others_pass_after_a_while() -> None:
    async with service_of(4, rules=QUICK) as (made, cms):
        await budget(cms, "web", "web", maxUnavailable="1")
        await made.crews["ams"].add("db-0", "db", "h1")
        await made.crews["ams"].add("db-1", "db", "h5")
        await known(cms, 6)
        made.crews["ams"].ready["db-1"] = False
        await known(cms, 5)
        assert (await cms.ask("stuck", "h1")).body["status"] == "in-process"  # db-1 is broken
        assert (await cms.ask("later", "h2")).body["status"] == "in-process"
        await cms.becomes("later", "ok")
        assert "later tasks may pass it" in (await cms.call("GET", "/stuck")).body["message"]


async def test_an_impossible_task_is_rejected_in_a_dry_run_and_waits_otherwise() -> None:
    async with service_of(2) as (made, cms):
        await budget(cms, "web", "web", minReady="2")
        dry = (await cms.ask("t", "h0", path="?dry_run=true")).body
        assert dry["status"] == "rejected"
        assert "lower the floor" in dry["message"]
        assert (await cms.ask("t", "h0")).body["status"] == "in-process"
        await made.crews["ams"].add("web-2", "web", "h9")  # a scale-up ends it
        await cms.becomes("t", "ok")


async def test_a_host_may_have_a_new_task_before_the_old_one_is_deleted_and_tasks_may_overlap() -> None:
    async with service_of(10) as (_, cms):
        await cms.ask("reboot", "h0", failure="unreachable")
        await cms.becomes("reboot", "ok")
        await cms.ask("redeploy", "h0", action="redeploy")
        await cms.becomes("redeploy", "ok")  # it costs nothing more
        assert (await cms.ask("overlaps", "h0", "h1")).body["status"] == "in-process", "that takes one more"
        await cms.call("DELETE", "/reboot")
        assert (await cms.ask("other", "h2")).body["status"] == "in-process", "the new task holds the host"
        await cms.call("DELETE", "/other")
        await cms.call("DELETE", "/redeploy")
        assert await cms.status("overlaps") == "in-process"
        message = (await cms.call("GET", "/overlaps")).body["message"]
        assert "cannot be granted even when all are ready" in message, "two of ten are more than a tenth"


async def test_a_scale_up_does_not_block_itself() -> None:
    async with service_of(10) as (made, cms):
        for number in range(10, 15):
            await made.crews["ams"].add(f"web-{number}", "web", f"h{number}", ready=None)
        await asyncio.sleep(0.3)
        assert (await cms.ask("t", "h0")).body["status"] == "ok"


async def test_a_task_also_holds_an_instance_that_its_host_gains_later() -> None:
    async with service_of(10) as (made, cms):
        await budget(cms, "web", "web", maxUnavailable="1")
        assert (await cms.ask("t1", "elsewhere")).body["status"] == "ok"
        await made.crews["ams"].add("web-10", "web", "elsewhere")
        await eventually(lambda: cms.server.desk.book.picture.tallies["web"].total == 11)
        waiting = (await cms.ask("t2", "h0")).body
        assert waiting["status"] == "in-process"
        assert waiting["details"]["budgets"][0]["holders"][0]["task"] == "t1"


async def test_a_budget_that_is_changed_under_tasks_counts_from_then_on() -> None:
    async with service_of(10) as (_, cms):
        assert (await cms.ask("t1", "h0")).body["status"] == "ok"
        assert (await cms.ask("t2", "h1")).body["status"] == "in-process"
        await budget(cms, "web", "web", maxUnavailable="2")
        await cms.becomes("t2", "ok")
        assert (await cms.call_connect("DeleteBudget", {"name": "web"})).status == 200
        assert (await cms.ask("t3", "h2")).body["status"] == "in-process"
        assert await cms.status("t2") == "ok"


async def test_a_domain_limit_counts_broken_hosts_too() -> None:
    sites = {f"h{n}": Site(rack=f"r{n // 2}") for n in range(6)}
    limit = DomainLimit("racks", "rack", 1)
    async with service_of(6, sites=sites, limits=[limit]) as (made, cms):
        await budget(cms, "web", "web", maxUnavailable="50%")
        made.crews["ams"].ready["web-0"] = False
        await known(cms, 5)
        assert (await cms.ask("t1", "h0")).body["status"] == "ok"
        assert (await cms.ask("t2", "h1")).body["status"] == "ok"  # the same rack
        blocked = (await cms.ask("t3", "h2")).body
        assert (blocked["status"], "limit racks" in blocked["message"]) == ("in-process", True)


async def test_a_freeze_grants_nothing_and_says_why() -> None:
    async with service_of(3) as (_, cms):
        froze = await cms.call_connect("Freeze", {"reason": "fire drill", "by": "ann"}, "CmsAdminService")
        assert froze.status == 200
        waiting = (await cms.ask("t", "h0")).body
        assert (waiting["status"], "fire drill" in waiting["message"]) == ("in-process", True)
        assert (await cms.call_connect("Unfreeze", {"reason": "over"}, "CmsAdminService")).status == 200
        await cms.becomes("t", "ok")


async def test_hosts_of_a_silent_location_wait_and_others_do_not() -> None:
    async with cloud() as made:
        for name in ("ams", "fra"):
            crew = await made.location(name)
            for number in range(6):
                await crew.add(f"web-{number}", f"web-{name}", f"{name}-{number}")
        cms = await made.cms()
        await known(cms, 12)
        made.hqs["fra"].stop()
        assert await eventually(lambda: bool(cms.server.locations.by_name["fra"].doubt()), 25)
        assert (await cms.ask("here", "ams-0")).body["status"] == "ok"
        there = (await cms.ask("there", "fra-0")).body
        assert (there["status"], "location fra is silent" in there["message"]) == ("in-process", True)


@pytest.mark.long
@pytest.mark.parametrize("by_operator", [True, False])
async def test_in_a_new_epoch_nothing_is_granted_until_work_was_declared_or_an_operator_opens(
    by_operator: bool,
) -> None:
    async with service_of(10, issuers={"wall-e": ()}) as (_, cms):
        await budget(cms, "web", "web", maxUnavailable="1")
        cms.server.controller._epoch.is_first = False  # as after a restore: an epoch with a predecessor
        assert (await cms.ask("new", "h1")).body["status"] == "in-process"
        said = (await cms.call("GET", "/new")).body["message"]
        assert "restored or replaced" in said
        assert "wall-e" in said
        running = (await cms.ask("old", "h0", already_running=True)).body
        assert running["status"] == "ok"
        if by_operator:
            await cms.call_connect("Open", {"reason": "looked at it"}, "CmsAdminService")
        else:
            ended = await cms.call_connect("EndDeclaration", {"issuer": "wall-e"})
            assert ended.status == 200
            assert not ended.body.get("missing")
        await asyncio.sleep(1.5)
        assert await cms.status("new") == "in-process"  # the declared work holds the budget
        await cms.call("DELETE", "/old")
        await cms.becomes("new", "ok")


async def test_a_stranger_may_not_declare_work() -> None:
    async with service_of(1) as (_, cms):
        reply = await cms.ask("t", "h0", already_running=True)
        assert (reply.status, reply.body["errors"][0]["field"]) == (400, "already_running")


async def test_an_operator_extends_and_ends_a_hold_on_record() -> None:
    async with service_of(10) as (_, cms):
        await cms.ask("t", "h0")
        extended = await cms.call_connect(
            "ExtendTask", {"id": "t", "seconds": 7200, "reason": "slow disk", "by": "ann"}, "CmsAdminService"
        )
        assert extended.status == 200
        seen = await cms.call_connect("WhyTask", {"id": "t"})
        assert "slow disk" in seen.body["state"]["note"][0]
        ended = await cms.call_connect("EndTask", {"id": "t", "reason": "its issuer is gone"}, "CmsAdminService")
        assert ended.status == 200
        assert (await cms.call("GET", "/t")).status == 404


async def test_a_plan_says_in_which_waves_it_could_be_done() -> None:
    sites = {f"h{n}": Site(rack=f"r{n // 2}") for n in range(6)}
    async with service_of(6, sites=sites) as (_, cms):
        await budget(cms, "web", "web", maxUnavailable="2")
        made = await cms.call_connect("Plan", {"host": [f"h{n}" for n in range(6)]})
        assert [wave["host"] for wave in made.body["wave"]] == [["h0", "h1"], ["h2", "h3"], ["h4", "h5"]]
        await budget(cms, "web", "web", minReady="6")
        impossible = await cms.call_connect("Plan", {"host": ["h0"]})
        assert "cannot be granted even when all are ready" in impossible.body["misfit"][0]["reason"]


async def test_while_a_record_cannot_be_read_nothing_is_granted_and_the_verdict_names_it() -> None:
    async with service_of(3) as (made, cms):
        key = b"/cms/v1/task/from-the-future"
        await made.store.commit((), [Write((), ((key, _from_the_future()),))], 5.0)
        await eventually(lambda: cms.server.desk.why_closed())
        waiting = (await cms.ask("t", "h0")).body
        assert (waiting["status"], "from-the-future" in waiting["message"]) == ("in-process", True)
        await made.store.commit((), [Write((), deletes=(key,))], 5.0)
        await cms.becomes("t", "ok")


def _from_the_future() -> bytes:
    task = ledger_pb2.Task(id="from-the-future", action="levitate", host=["h1"], state="granted")
    return task.SerializeToString()


@pytest.mark.long
async def test_a_task_that_memory_cannot_show_is_answered_in_time_and_not_asked_for_without_end() -> None:
    """The store was put back to an earlier state, and the watch that would tell cannot be opened yet."""
    store = FaultyStore(LastingStore(), random.Random(1))
    async with service_of(10, store=store) as (_, cms):
        before = store.store._revision
        assert (await cms.ask("old", "h0")).status == 200

        def no_watch(*_: object, **__: object) -> NoReturn:
            raise Disconnected("connection refused")

        store.watch = no_watch  # type: ignore[method-assign]
        store.store.disconnect()
        store.store = rewound(store.store, before)
        took_s: list[float] = []
        while not took_s or (took_s[-1] >= 2.5 and len(took_s) < 3):  # again: one may meet a stall of the machine
            sent, began = len(store.sent), time.monotonic()
            assert (await cms.ask(f"new-{len(took_s)}", "h1")).status == 503
            took_s.append(time.monotonic() - began)
            assert len(store.sent) < sent + 50
        assert took_s[-1] < 2.5, took_s
