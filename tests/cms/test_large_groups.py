"""Groups and long tasks that are too large for one transaction."""

from __future__ import annotations

import pytest

from cms import leave
from cms.ledger.book import Rules
from cms.records import ALL, LEDGER, TASK
from cmspb.storage.v1 import ledger_pb2
from tests.cms.cloud import Cms, service_of
from tests.support.sample_instances import eventually

MANY = 200


async def ask_at_once(cms: Cms, ids: list[str], *, confirm: bool = False) -> None:
    """Tasks of one group, as if each had been asked for."""
    for first in range(0, len(ids), 50):
        change = cms.server.controller.creation()
        for task_id in ids[first : first + 50]:
            change.get(TASK, task_id)
            change.put(
                TASK,
                task_id,
                ledger_pb2.Task(
                    id=task_id,
                    action="reboot",
                    type="automated",
                    issuer="wall-e",
                    host=["h0"],
                    group_id="g",
                    state="waiting",
                    confirm=confirm,
                    is_wire=True,
                ),
            )
        await change.commit()


def states(cms: Cms) -> set[str]:
    return {record.state for record in cms.server.desk.tasks.values()}


@pytest.mark.long
async def test_a_group_of_200_is_granted_and_confirmed_as_one() -> None:
    ids = [f"t{number}" for number in range(MANY)]
    async with service_of(10, rules=Rules(settle_s=0.5)) as (_, cms):
        await ask_at_once(cms, ids, confirm=True)
        await eventually(lambda: states(cms) == {"provisional"}, 20.0, "all of the group to have an ok")
        assert (await cms.call("POST", f"/{ids[-1]}/confirm")).status == 200
        assert states(cms) == {"granted"}
        assert (await cms.call("POST", f"/{ids[0]}/confirm")).status == 200


@pytest.mark.long
async def test_the_next_acting_process_carries_on_with_a_group_before_anything_else_is_decided() -> None:
    async with service_of(10, rules=Rules(settle_s=3600), term_s=1.0) as (made, cms):
        await ask_at_once(cms, ["a", "b"])
        moves = [
            ledger_pb2.Ledger.Move(task_id=one.id, order=one.order, event="grant")
            for one in cms.server.desk.book.tasks.values()
        ]
        moves += [ledger_pb2.Ledger.Move(task_id="a", order=1, event="grant"), ledger_pb2.Ledger.Move(task_id="gone")]
        await cms.kill()
        other = await made.cms("cms-2", rules=Rules(settle_s=3600), term_s=1.0)
        ledger = ledger_pb2.Ledger(moving=moves, epoch=other.server.controller.epoch)
        await other.server.controller._changes.switch(LEDGER, ALL, ledger)
        await eventually(lambda: states(other) == {"granted"}, 20.0, "what was noted to be stored")


async def test_moves_noted_in_another_epoch_are_decided_anew() -> None:
    async with service_of(10, rules=Rules(settle_s=3600)) as (_, cms):
        await ask_at_once(cms, ["a"])
        order = cms.server.desk.book.tasks["a"].order
        ledger = ledger_pb2.Ledger(moving=[{"task_id": "a", "order": order, "event": "grant"}], epoch="an older one")
        await cms.server.controller._changes.switch(LEDGER, ALL, ledger)
        assert (await cms.ask("alone", "h0")).body["status"] == "ok"
        ledgers = cms.server.controller.records(LEDGER)
        assert (states(cms), list(ledgers[ALL].moving)) == ({"waiting", "granted"}, [])


async def test_a_group_that_is_too_large_is_refused_with_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leave, "_MOST_IN_GROUP", 2)
    async with service_of(10) as (_, cms):
        for task_id in ("a", "b"):
            assert (await cms.ask(task_id, "h0", host_group_id="g")).status == 200
        refused = await cms.ask("c", "h0", host_group_id="g")
        assert (refused.status, refused.body["errors"][0]["field"]) == (400, "host_group_id")
        assert (await cms.call("GET", "/c")).status == 404


@pytest.mark.parametrize("group", ["", "g"])
async def test_long_tasks_granted_at_once_are_stored_in_parts_that_the_store_takes(group: str) -> None:
    """Two megabytes of an uploader's tasks, granted by one change of its budget, ended all decisions of the CMS."""
    async with service_of(2, rules=Rules(settle_s=0.2)) as (_, cms):
        budget = {"name": "web", "service": "web"}
        assert (await cms.call_connect("PutBudget", {"budget": {**budget, "minReady": "2"}})).status == 200
        for number in range(7):
            names = [{"location": "ams", "id": name} for name in ("web-0", *(f"{n:0250}" for n in range(1_100)))]
            asked = {"id": f"t{number}", "action": "roll-out", "issuer": "ann", "instance": names, "groupId": group}
            assert (await cms.call_connect("CreateTask", {"task": asked})).status == 200
        assert sum(record.ByteSize() for record in cms.server.desk.tasks.values()) > 3 << 19
        assert (await cms.call_connect("PutBudget", {"budget": {**budget, "minReady": "0"}})).status == 200
        await eventually(lambda: states(cms) == {"granted"}, 20.0, "all to be granted")
