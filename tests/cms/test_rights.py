"""With security: who may ask for what, whose tasks are whose, and what the audit log says."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click
import pytest

from cms.ledger import why as reasons
from cms.ledger.book import TaskLedger
from cms.ledger.limits import DomainLimit
from cms.options import settings_of
from control import Kind
from controlpb.v1 import control_pb2
from tests.cms.cloud import Cms, cloud, known, task
from tests.support.sample_instances import eventually
from tests.support.secured import POLICY, Secured

FULL = Path("/dev/full")


class Guarded:
    """A secured CMS, and calls to it with somebody's token."""

    def __init__(self, cms: Cms, files: Secured) -> None:
        self.cms, self._files = cms, files

    async def call(self, who: str, method: str, path: str, body: object = None, **more: str) -> tuple[int, Any]:
        """`path` from the root; who "": no token; `more`: headers."""
        return await asyncio.to_thread(self._call, who, method, path, body, more)

    async def ask(self, who: str, task_id: str, host: str, issuer: str = "wall-e") -> int:
        return (await self.call(who, "POST", "/v1.4/tasks", task(task_id, host, issuer=issuer)))[0]

    async def order(self, who: str, name: str, body: object, service: str = "CmsService") -> int:
        return (await self.call(who, "POST", f"/cms.v1.{service}/{name}", body))[0]

    def _call(self, who: str, method: str, path: str, body: object, more: dict[str, str]) -> tuple[int, Any]:
        headers = {"content-type": "application/json"} | more
        if who:
            headers["authorization"] = f"Bearer {self._files.issuer.token(who)}"
        data = None if body is None else json.dumps(body).encode()
        url = f"https://127.0.0.1:{self.cms.port}{path}"
        context = ssl.create_default_context(cafile=str(self._files.authority.cert))
        context.check_hostname = False
        try:
            request = urllib.request.Request(url, data, headers, method=method)
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:
                text = answer.read()
                return answer.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")


@asynccontextmanager
async def guarded(folder: Path, audit: Path | None = None) -> AsyncIterator[Guarded]:
    files = Secured(folder)
    files.audit = audit or files.audit
    async with cloud() as made:
        crew = await made.location("ams")
        for number in range(4):
            await crew.add(f"web-{number}", "web", f"h{number}")
        issuers = {"wall-e": ["operator"], "nanny": ["web-uploader"], "ci": ["web-uploader"], "ci-prod": ["operator"]}
        cms = await made.cms(security=files.security(), issuers=issuers)
        await known(cms, 4)
        yield Guarded(cms, files)


async def test_nobody_asks_without_a_token_and_readers_only_read(tmp_path: Path) -> None:
    async with guarded(tmp_path) as one:
        assert await one.ask("", "t", "h0") == 401
        assert await one.ask("reader/ann", "t", "h0") == 403
        assert (await one.call("reader/ann", "GET", "/v1.4/tasks"))[0] == 200
        assert await one.order("reader/ann", "ListBudgets", {}) == 200
        assert await one.order("reader/ann", "Freeze", {"reason": "no"}, "CmsAdminService") == 403
        assert await one.order("operator", "Freeze", {"reason": "drill"}, "CmsAdminService") == 200


async def test_a_body_is_not_read_from_a_caller_that_may_not_send_it(tmp_path: Path) -> None:
    """Megabytes of JSON are parsed in one go, and everybody waits meanwhile."""
    async with guarded(tmp_path) as one:
        for path in ("/v1/pre-reboot", "/v1/steady-state", "/v1.4/tasks"):
            assert (await one.call("", "POST", path, ["not a request"]))[0] == 401
            assert (await one.call("reader/ann", "POST", path, ["not a request"]))[0] == 403


async def test_tasks_belong_to_who_created_them(tmp_path: Path) -> None:
    async with guarded(tmp_path) as one:
        assert await one.ask("operator", "theirs", "h0") == 200
        status, listed = await one.call("admin", "GET", "/v1.4/tasks")
        assert (status, listed) == (200, {"result": []})
        assert (await one.call("admin", "GET", "/v1.4/tasks/theirs"))[0] == 404
        assert (await one.call("admin", "DELETE", "/v1.4/tasks/theirs"))[0] == 404
        assert await one.ask("admin", "theirs", "h0", "ann") == 409
        assert (await one.call("operator", "DELETE", "/v1.4/tasks/theirs"))[0] == 204


async def test_a_page_of_another_site_cannot_use_the_certificate_of_its_browser(tmp_path: Path) -> None:
    """A browser shows its certificate wherever a page sends a form, and sends JSON as plain text without asking."""
    async with guarded(tmp_path) as one:
        plain, own = {"content-type": "text/plain"}, f"https://127.0.0.1:{one.cms.port}"
        for foreign in ("https://evil.example", "null", f"{own}0"):
            for path in ("/v1.4/tasks", "/v1/pre-reboot"):
                body = task("t", "h0") | {"client_params": {"id": "h0", "group": "g"}}
                status, _ = await one.call("operator", "POST", path, body, origin=foreign, **plain)
                assert (status, path, foreign) == (403, path, foreign)
        for site in ("cross-site", "same-site"):
            headers = {"sec-fetch-site": site, **plain}
            assert (await one.call("operator", "POST", "/v1.4/tasks", task("t", "h0"), **headers))[0] == 403
        assert (await one.call("operator", "GET", "/v1.4/tasks"))[1] == {"result": []}
        mine = {"origin": own, "sec-fetch-site": "same-origin"}
        assert (await one.call("operator", "POST", "/v1.4/tasks", task("t", "h0"), **mine))[0] == 200


async def test_the_scope_of_a_role_is_compared_with_the_hosts_and_instances_of_a_task(tmp_path: Path) -> None:
    async with guarded(tmp_path) as one:
        assert await one.ask("rack-operator", "t", "h0", "ann") == 403
        assert await one.ask("rack-operator", "t", "rack1-7", "ann") == 200
        mine = {"id": "u", "action": "roll-out", "instance": [{"location": "ams", "id": "web-0"}], "issuer": "nanny"}
        assert await one.order("mail-uploader", "CreateTask", {"task": mine}) == 403
        assert await one.order("web-uploader", "CreateTask", {"task": mine}) == 200
        budget = {"name": "web", "service": "web", "minReady": "1"}
        assert await one.order("mail-uploader", "PutBudget", {"budget": budget}) == 403
        assert await one.order("web-uploader", "PutBudget", {"budget": budget}) == 200


async def test_writes_and_denials_are_in_the_audit_log(tmp_path: Path) -> None:
    async with guarded(tmp_path) as one:
        await one.ask("operator", "mine", "h0")
        await one.ask("reader/ann", "t", "h0")
        await one.order("operator", "Freeze", {"reason": "drill"}, "CmsAdminService")
        nights = {"name": "nights", "service": "web", "hours": [{"begin": "00:00", "end": "24:00"}]}
        assert await one.order("admin", "PutWindows", {"windows": nights}) == 200
        lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
        told = {(line.get("identity"), line.get("method"), line.get("decision")) for line in lines}
        assert ("operator", "cms.wire/Create", "allow") in told
        assert ("reader/ann", "cms.wire/Create", "deny") in told
        assert ("operator", "cms.v1.CmsAdminService/Freeze", "allow") in told
        assert {"mine", "nights"} <= {line.get("key") for line in lines}


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
async def test_orders_over_both_protocols_are_refused_while_they_cannot_be_recorded_but_a_freeze_is_not(
    tmp_path: Path,
) -> None:
    async with guarded(tmp_path, FULL) as one:
        for method, path, body in (
            ("POST", "/v1.4/tasks", task("t", "h0")),
            ("POST", "/v1.4/tasks/t/confirm", {}),
            ("DELETE", "/v1.4/tasks/t", None),
            (
                "POST",
                "/cms.v1.CmsService/CreateTask",
                {"task": {"id": "t", "action": "reboot", "host": ["h0"], "issuer": "ann"}},
            ),
            ("POST", "/cms.v1.CmsService/PutBudget", {"budget": {"name": "web", "service": "web", "minReady": "1"}}),
            ("POST", "/cms.v1.CmsService/EndDeclaration", {"issuer": "wall-e"}),
            ("POST", "/cms.v1.CmsAdminService/Open", {"reason": "looked"}),
        ):
            status, answer = await one.call("operator", method, path, body)
            assert (status, "audit log" in answer["message"]) == (503, True), (path, answer)
        assert "audit log cannot be written" in one.cms.server.desk.why_closed(), "nothing is granted either"
        assert (await one.call("operator", "GET", "/v1.4/tasks")) == (200, {"result": []})
        assert (await one.call("operator", "GET", "/v1.4/tasks/t"))[0] == 404
        assert await one.order("operator", "Freeze", {"reason": "all is red"}, "CmsAdminService") == 200
        assert await one.order("operator", "Unfreeze", {"reason": "over"}, "CmsAdminService") == 503
        assert one.cms.server.controller.frozen is not None


async def test_only_the_identities_that_are_bound_to_an_issuer_speak_for_it_over_both_protocols(tmp_path: Path) -> None:
    """An uploader of `web` declared that Wall-E had no more running work, and everything was granted again."""
    async with guarded(tmp_path) as one:
        assert await one.order("web-uploader", "EndDeclaration", {"issuer": "wall-e"}) == 403
        assert await one.order("admin", "EndDeclaration", {"issuer": "wall-e"}) == 403
        assert not one.cms.server.desk.declared
        for running in (False, True):
            theirs: dict[str, Any] = {"id": "t", "action": "roll-out", "issuer": "wall-e", "alreadyRunning": running}
            theirs["instance"] = [{"location": "ams", "id": "web-0"}]
            assert await one.order("web-uploader", "CreateTask", {"task": theirs}) == 403
            wire = task("t", "rack1-1", already_running=running)
            status, answer = await one.call("rack-operator", "POST", "/v1.4/tasks", wire)
            assert (status, "--task-issuer" in answer["message"]) == (403, True)
        assert not one.cms.server.desk.tasks
        assert await one.ask("operator", "mine", "h0") == 200
        assert (await one.call("operator", "POST", "/v1.4/tasks", task("u", "h1", already_running=True)))[0] == 200
        assert await one.order("operator", "EndDeclaration", {"issuer": "wall-e"}) == 200


@pytest.mark.parametrize(("bound", "value"), [("MOST_BYTES", 20_000), ("MOST_TASKS", 4)])
async def test_the_tasks_of_one_owner_are_bounded_in_number_and_size(
    bound: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"cms.owner_sizes.{bound}", value)
    async with guarded(tmp_path) as one:
        mine = {"action": "roll-out", "instance": [{"location": "ams", "id": "web-0"}], "issuer": "ann"}
        mine["comment"] = "x" * 4_000
        codes = [await one.order("web-uploader", "CreateTask", {"task": {**mine, "id": f"t{n}"}}) for n in range(6)]
        assert (codes.count(200), codes[-1]) == (4, 429)
        assert await one.ask("operator", "another", "h0") == 200, "others have room of their own"
        assert await one.order("web-uploader", "DeleteTask", {"id": "t0"}) == 200

        async def has_room() -> bool:
            return await one.order("web-uploader", "CreateTask", {"task": {**mine, "id": "t9"}}) == 200

        await eventually(has_room, 20.0, "room, once a task has ended")


async def test_the_number_of_instances_is_told_only_to_callers_that_see_them_all(tmp_path: Path) -> None:
    async with guarded(tmp_path) as one:
        for who, told in (("admin", 4), ("web-uploader", None)):
            _, answer = await one.call(who, "POST", "/cms.v1.CmsService/GetStatus", {})
            assert answer["location"][0].get("instances") == told, who


@pytest.mark.long
async def test_a_task_cannot_take_an_id_that_an_issuer_will_use(tmp_path: Path) -> None:
    """They can be guessed: an uploader of `web` kept `mail` from being rolled out, and a node from rebooting."""
    async with guarded(tmp_path) as one:
        mine = {"action": "roll-out", "instance": [{"location": "ams", "id": "web-0"}], "issuer": "ann"}
        for taken in ("wall-e.1-0-0", "walle-prod.0-0-0", "fleetlock-h0"):
            assert await one.order("web-uploader", "CreateTask", {"task": {**mine, "id": taken}}) == 403, taken
            assert await one.order("web-uploader", "CreateTask", {"task": {**mine, "id": taken}, "dryRun": True}) == 403
            status, answer = await one.call(
                "rack-operator", "POST", "/v1.4/tasks", task(taken, "rack1-1", issuer="ann")
            )
            assert (status, "use another" in answer["message"]) == (403, True)
        assert await one.order("operator", "CreateTask", {"task": {**mine, "id": "nanny-mail-1-0-2"}}) == 403
        as_lock = {**mine, "id": "t", "issuer": "fleetlock"}
        assert await one.order("operator", "CreateTask", {"task": as_lock}) == 403
        assert not one.cms.server.desk.tasks
        nannys = {**mine, "id": "nanny-web-1-0-1", "issuer": "nanny"}
        assert await one.order("web-uploader", "CreateTask", {"task": nannys}) == 200
        assert await one.ask("operator", "walle-prod.0-0-0", "h0") == 200
        assert await one.order("web-uploader", "CreateTask", {"task": {**mine, "id": "wallet-1"}}) == 200
        # The name of one issuer begins as another's: ids belong to the longer one.
        assert await one.order("web-uploader", "CreateTask", {"task": {**mine, "id": "ci-prod-1"}}) == 403
        assert await one.ask("operator", "ci-prod-1", "h1", "ci-prod") == 200
        assert await one.ask("operator", "ci-1", "h2", "ci-prod") == 403
        assert await one.order("web-uploader", "CreateTask", {"task": {**mine, "id": "ci-1"}}) == 200


def test_an_issuer_that_nobody_is_bound_to_is_refused_at_the_start_with_the_way_to_write_it() -> None:
    given = {"task_issuer": ("wall-e",), "fence": 1.0, "policy": "policy.yaml"}
    with pytest.raises(click.UsageError, match="write --task-issuer wall-e=IDENTITY"):
        settings_of(given)
    assert settings_of(given | {"policy": ""}).issuers == {"wall-e": []}
    bound = settings_of(given | {"task_issuer": ("wall-e=ops/*", "wall-e=walle", "nanny=nanny")}).issuers
    assert {name: [one.text for one in who] for name, who in bound.items()} == {
        "wall-e": ["ops/*", "walle"],
        "nanny": ["nanny"],
    }


async def test_a_verdict_counts_work_of_others_and_does_not_name_it(tmp_path: Path) -> None:
    async with guarded(tmp_path) as one:
        budget = {"name": "web", "service": "web", "minReady": "3"}
        assert await one.order("admin", "PutBudget", {"budget": budget}) == 200
        assert await one.ask("operator", "secret-work", "h0") == 200
        mine = {"id": "u", "action": "roll-out", "instance": [{"location": "ams", "id": "web-1"}], "issuer": "nanny"}
        for _ in range(100):
            _, told = await one.call("web-uploader", "POST", "/cms.v1.CmsService/CreateTask", {"task": mine})
            if "holds 1" in told["state"]["message"]:
                break
            await asyncio.sleep(0.1)
        status, why = await one.call("web-uploader", "POST", "/cms.v1.CmsService/WhyTask", {"id": "u"})
        assert (status, "work holds 1" in why["state"]["message"]) == (200, True)
        assert "secret-work" not in json.dumps(why)
        _, all_of_it = await one.call("admin", "POST", "/cms.v1.CmsService/WhyTask", {"id": "u"})
        assert "secret-work" in json.dumps(all_of_it)


async def test_an_operator_of_some_nodes_is_told_of_others_work_by_number_only(tmp_path: Path) -> None:
    """Both when it asks what would fit, and when a limit of hosts is in its way."""
    files = Secured(tmp_path)
    async with cloud() as made:
        crew = await made.location("ams")
        for name, host in (("web-0", "rack1-0"), ("secret-1", "h1"), ("web-2", "h2")):
            await crew.add(name, "web", host)
        cms = await made.cms(security=files.security(), limits=[DomainLimit("two", "host", 2)])
        await known(cms, 3)
        crew.ready["secret-1"] = False
        one = Guarded(cms, files)
        budget = {"name": "web", "service": "web", "minReady": "2"}
        assert await one.order("admin", "PutBudget", {"budget": budget}) == 200
        tallies = cms.server.desk.book.picture.tallies
        await eventually(lambda: "web" in tallies and tallies["web"].available == 2, 20.0, "one is down")
        status, plan = await one.call("rack-operator", "POST", "/cms.v1.CmsService/Plan", {"host": ["rack1-0"]})
        assert (status, "one is down" in plan["misfit"][0]["reason"]) == (200, True), plan
        assert "secret-1" not in json.dumps(plan)
        _, plan = await one.call("admin", "POST", "/cms.v1.CmsService/Plan", {"host": ["rack1-0"]})
        assert "secret-1 is down" in plan["misfit"][0]["reason"], "who sees everything, sees it"

        for host in ("h7", "h8"):
            assert await one.ask("operator", f"work-on-{host}", host) == 200
        assert await one.ask("rack-operator", "t", "rack1-9", "ann") == 200
        status, why = await one.call("rack-operator", "POST", "/cms.v1.CmsService/WhyTask", {"id": "t"})
        assert "under work: of others, of others" in why["state"]["message"], why
        assert (status, why["limit"][0]["busy"]) == (200, ["of others", "of others"])
        assert "h7" not in json.dumps([why, (await one.call("rack-operator", "GET", "/v1.4/tasks/t"))[1]])
        _, why = await one.call("admin", "POST", "/cms.v1.CmsService/WhyTask", {"id": "t"})
        assert why["limit"][0]["busy"] == ["h7", "h8"]

        await crew.add("hidden-1", "hidden", "h9")
        await eventually(lambda: "default:hidden" in tallies, 20.0, "it is known")
        for task_id, host in (("g-1", "rack1-0"), ("g-2", "h9")):
            both = {"id": task_id, "action": "power-off", "host": [host], "issuer": "ann", "groupId": "g"}
            assert await one.order("operator", "CreateTask", {"task": both}) == 200
        _, why = await one.call("rack-operator", "POST", "/cms.v1.CmsService/WhyTask", {"id": "g-1"})
        assert why["state"]["message"] == "it waits together with others of its group"
        assert [budget["name"] for budget in why["budget"]] == ["web"]
        _, why = await one.call("admin", "POST", "/cms.v1.CmsService/WhyTask", {"id": "g-1"})
        assert "default:hidden" in [budget["name"] for budget in why["budget"]]


async def test_a_list_looks_at_no_budget_that_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some hundred tasks of one owner, with a hundred budgets of its service, kept each list busy for minutes."""
    looked_at: list[str] = []
    look = reasons.view

    def counted(book: TaskLedger, name: str, *more: Any, **named: Any) -> reasons.BudgetView:
        looked_at.append(name)
        return look(book, name, *more, **named)

    async with guarded(tmp_path) as one:
        assert await one.ask("operator", "granted", "h0") == 200
        assert await one.ask("operator", "waits", "h1") == 200
        monkeypatch.setattr(reasons, "view", counted)
        status, listed = await one.call("operator", "GET", "/v1.4/tasks")
        assert (status, [task["status"] for task in listed["result"]]) == (200, ["ok", "in-process"])
        assert len(looked_at) == 2, "for the words of the one that waits, and for what may be told of them"
        assert await one.order("operator", "ListTasks", {}) == 200
        assert len(looked_at) == 4


async def test_the_size_of_a_budget_and_of_windows_is_limited(tmp_path: Path) -> None:
    """Those of one service were more than a recorder is sent at once, so that it could not follow the CMS any more."""
    async with guarded(tmp_path) as one:
        names = [f"cluster-{number}-{'x' * 200}" for number in range(100)]
        budget = {"name": "web", "service": "web", "minReady": "1", "cluster": names}
        assert await one.order("web-uploader", "PutBudget", {"budget": budget}) == 400
        freeze = {"begin": "2026-01-01", "end": "2026-01-02", "reason": "x" * 1_000}
        windows = {"name": "web", "service": "web", "freeze": [freeze] * 20}
        assert await one.order("web-uploader", "PutWindows", {"windows": windows}) == 400


async def test_deleting_what_does_not_exist_stores_no_order(tmp_path: Path) -> None:
    """Orders are stored in records that all callers share."""
    async with guarded(tmp_path) as one:
        for name in ("no-task", "x" * 200_000):
            assert await one.order("web-uploader", "DeleteTask", {"id": name}) == 404
            assert await one.order("web-uploader", "DeleteBudget", {"name": name}) == 404
        inboxes = one.cms.server.controller.records(Kind("events.order", control_pb2.Inbox))
        assert sum(inbox.ByteSize() for inbox in inboxes.values()) < 10_000


async def test_a_caller_with_rights_for_many_services_is_told_only_of_the_one_that_it_asks_for(tmp_path: Path) -> None:
    """Nanny shows the owners of a service what the CMS says of its batches."""
    files = Secured(tmp_path)
    grant = "  uploader:\n    - {identities: [nanny], services: [web, mail]}\n"
    files.policy.write_text(POLICY.replace("  uploader:\n", grant))
    async with cloud() as made:
        crew = await made.location("ams")
        for name, service in (("web-0", "web"), ("mail-0", "mail"), ("mail-1", "mail")):
            await crew.add(name, service, f"host-of-{name}", ready=name != "mail-1")
            labelled = (await crew.client.get(name)).instance
            labelled.meta.labels["tier"] = "front"
            await crew.client.update(labelled, fields=("meta.labels",))
        cms = await made.cms(security=files.security())
        await known(cms, 2)  # mail-1 is not ready
        one = Guarded(cms, files)
        every = {"budget": {"name": "every", "labels": {"tier": "front"}, "minReady": "1"}}
        assert await one.order("admin", "PutBudget", every) == 200
        for service in ("web", "mail"):  # instead of a tenth of each
            own = {"budget": {"name": service, "service": service, "maxUnavailable": "2"}}
            assert await one.order("admin", "PutBudget", own) == 200
        tallies = cms.server.desk.book.picture.tallies
        await eventually(lambda: "every" in tallies and tallies["every"].total == 3, 20.0, "all come under it")
        answer: Any = None
        for task_id, instance in (("batch-of-mail", "mail-0"), ("batch-of-web", "web-0")):
            named = [{"location": "ams", "id": instance}]
            asked = {"task": {"id": task_id, "action": "roll-out", "instance": named, "issuer": "ann"}}
            status, answer = await one.call("nanny", "POST", "/cms.v1.CmsService/CreateTask", asked)
            assert status == 200, answer
        status, why = await one.call("nanny", "POST", "/cms.v1.CmsService/WhyTask", {"id": "batch-of-web"})
        assert (status, "work holds 1; one is down" in why["state"]["message"]) == (200, True), why
        assert "mail" not in json.dumps([answer, why])
        _, why = await one.call("admin", "POST", "/cms.v1.CmsService/WhyTask", {"id": "batch-of-web"})
        assert "batch-of-mail" in json.dumps(why), "who sees everything, sees it"
