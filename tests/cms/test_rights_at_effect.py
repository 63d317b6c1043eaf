"""What is asked of the CMS may be decided much later: by then a budget or an instance may be somebody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cms.ledger.instances import InstanceKey
from cms.ledger.why import explain
from cmspb.storage.v1 import ledger_pb2
from control import EventRefused
from hqclient import Client
from serving.auth.gate import Authenticator
from serving.rights.access import Identity, ProofKind
from serving.rights.rules import BUDGET
from serving.rights.stored import encode_access
from tests.cms.cloud import Cms, cloud, known
from tests.cms.test_rights import Guarded
from tests.support.sample_instances import eventually, instance
from tests.support.secured import POLICY, Secured

_BUDGET = {"name": "web", "service": "web"}
WEB_0 = [{"location": "ams", "id": "web-0"}]


class Running(Guarded):
    """A secured CMS over a cloud, whose policy may change."""

    def __init__(self, cms: Cms, files: Secured, gate: Authenticator, client: Client) -> None:
        super().__init__(cms, files)
        self.desk, self.gate, self.files, self.client = cms.server.desk, gate, files, client

    async def lose_uploader(self) -> None:
        """The policy grants web-uploader nothing any more."""
        self.files.policy.write_text(POLICY.replace("web-uploader", "somebody-else"))
        await eventually(lambda: not self.gate.scopes_of("web-uploader"), 20.0, "the policy is in force")

    async def give_to(self, service: str) -> None:
        """web-0 becomes another service's."""
        instance = (await self.client.get("web-0")).instance
        instance.meta.service_id = service
        await self.client.update(instance, fields=("meta.service_id",))

    def why(self, task_id: str) -> str:
        task = self.desk.book.tasks[task_id]
        return explain(self.desk.book, self.desk.current(), task, self.desk.clock.now()).message


@asynccontextmanager
async def two_of_web(folder: Path) -> AsyncIterator[Running]:
    """web-0 and web-1."""
    files = Secured(folder)
    async with cloud() as made:
        crew = await made.location("ams")
        for number in range(2):
            await crew.add(f"web-{number}", "web", f"h{number}")
        security = files.security()
        assert security.gate is not None
        cms = await made.cms(security=security)
        await known(cms, 2)
        yield Running(cms, files, security.gate, crew.client)


def budget_of(service: str, *, by: str, one: Running) -> ledger_pb2.Order:
    """An order that is stored: budget `main` of a service."""
    access = one.gate.access(Identity(by, ProofKind.TOKEN, 0.0), BUDGET)
    record = ledger_pb2.Budget(name="main", service=service, min_ready="1", by=by)
    return ledger_pb2.Order(put_budget=record, access=encode_access(access))


async def test_a_budget_that_became_another_service_s_before_the_order_took_effect_stays(tmp_path: Path) -> None:
    async with two_of_web(tmp_path) as one:
        desk = one.desk
        late = budget_of("web", by="web-uploader", one=one)
        await desk.orders.submit("main", budget_of("mail", by="admin", one=one))
        with pytest.raises(EventRefused, match="outside the granted scope") as refused:
            await desk.orders.submit("main", late)
        assert refused.value.code == "PERMISSION_DENIED"
        gone = ledger_pb2.Order(delete_budget=ledger_pb2.Order.DeleteBudget(name="main"), access=late.access)
        with pytest.raises(EventRefused, match="there is no budget main"):
            await desk.orders.submit("main", gone)
        assert desk.budgets["main"].service == "mail"


async def test_an_order_whose_author_lost_its_rights_meanwhile_says_so(tmp_path: Path) -> None:
    async with two_of_web(tmp_path) as one:
        late = budget_of("web", by="web-uploader", one=one)
        await one.lose_uploader()
        with pytest.raises(EventRefused, match="rights of its author were withdrawn since it was ordered"):
            await one.desk.orders.submit("main", late)
        assert not one.desk.budgets


async def test_a_task_whose_instance_became_another_service_s_is_not_granted_and_says_why(tmp_path: Path) -> None:
    async with two_of_web(tmp_path) as one:
        desk = one.desk
        assert await one.order("admin", "PutBudget", {"budget": {**_BUDGET, "minReady": "2"}}) == 200
        asked = {"id": "mine", "action": "roll-out", "instance": WEB_0, "issuer": "ann"}
        assert await one.order("web-uploader", "CreateTask", {"task": asked}) == 200
        assert desk.tasks["mine"].state == "waiting"
        await one.give_to("mail")
        await eventually(lambda: "outside the granted scope" in one.why("mine"), 20.0, "it says why it waits")
        assert desk.tasks["mine"].state == "waiting", "though it takes nothing of the budget any more"
        await one.give_to("web")
        assert await one.order("admin", "PutBudget", {"budget": {**_BUDGET, "minReady": "1"}}) == 200
        await eventually(lambda: desk.tasks["mine"].state == "granted", 20.0, "it is granted")


async def test_a_new_instance_with_the_id_of_a_deleted_one_is_not_held_by_the_old_task(tmp_path: Path) -> None:
    """An uploader took ids that another service would use, asked for leave, and deleted them: that service was held."""
    async with two_of_web(tmp_path) as one:
        desk, key = one.desk, InstanceKey("ams", "web-0")
        assert await one.order("admin", "PutBudget", {"budget": {**_BUDGET, "minReady": "1"}}) == 200
        asked = {"id": "mine", "action": "roll-out", "instance": WEB_0, "issuer": "ann"}
        assert await one.order("web-uploader", "CreateTask", {"task": asked}) == 200
        await eventually(lambda: desk.tasks["mine"].state == "granted", 20.0, "it is granted")
        await one.client.delete("web-0")
        await eventually(lambda: desk.tasks["mine"].instance[0].gone, 20.0, "it holds nothing any more")
        await one.client.create(instance("web-0", "mail", "h0"))
        await eventually(lambda: key in desk.book.picture.instances, 20.0, "mail's is known")
        assert not desk.book.picture.holders(desk.book.picture.instances[key])


async def test_nor_if_it_was_created_before_anybody_looked(tmp_path: Path) -> None:
    """A deletion and a creation that came together left the hold."""
    async with two_of_web(tmp_path) as one:
        desk, picture, key = one.desk, one.desk.book.picture, InstanceKey("ams", "web-0")
        assert await one.order("admin", "PutBudget", {"budget": {**_BUDGET, "minReady": "1"}}) == 200
        asked = {"id": "mine", "action": "roll-out", "instance": WEB_0, "issuer": "ann"}
        assert await one.order("web-uploader", "CreateTask", {"task": asked}) == 200
        await eventually(lambda: desk.tasks["mine"].state == "granted", 20.0, "it is granted")
        held = picture.instances[key]
        assert desk.tasks["mine"].instance[0].uid == held.uid
        picture.drop_instance(key)
        picture.put_instance(held)
        await eventually(lambda: not picture.unverified, 20.0, "it was looked at")
        assert picture.holders(held) == {"mine"}, "a store that was restored has the same one again"
        picture.drop_instance(key)
        picture.put_instance(replace(held, service="mail", uid=held.uid + 1))
        await eventually(lambda: desk.tasks["mine"].instance[0].gone, 20.0, "it holds nothing any more")
        assert not picture.holders(picture.instances[key])


@pytest.mark.long
async def test_a_provisional_ok_ends_when_its_owner_loses_the_right(tmp_path: Path) -> None:
    async with two_of_web(tmp_path) as one:
        desk = one.desk
        asked = {"id": "mine", "action": "roll-out", "instance": WEB_0, "issuer": "ann", "confirm": True}
        assert await one.order("web-uploader", "CreateTask", {"task": asked}) == 200
        await eventually(lambda: desk.tasks["mine"].state == "provisional", 20.0, "it is offered")
        await one.lose_uploader()
        await eventually(lambda: desk.tasks["mine"].state == "waiting", 20.0, "it is withdrawn")
        assert "withdrawn since it was ordered" in one.why("mine")
