"""FleetLock: machines that update themselves ask the same ledger, in curl's words."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from cms.ledger.book import Rules
from cms.wire.fleetlock import lock_path, parse_lock, refusal_words
from serving.errors import InvalidRequest
from serving.standard.site import SiteRequest
from tests.cms.cloud import Cms, service_of
from tests.cms.test_rights import guarded
from tests.support.sample_instances import eventually


def lock(node: str, group: str = "workers") -> str:
    return json.dumps({"client_params": {"id": node, "group": group}})


async def curl(cms: Cms, path: str, body: str, *more: str, is_protocol: str = "true") -> tuple[int, Any]:
    """The status and the body of one POST."""
    command = ("curl", "-s", "-w", "\n%{http_code}", "-H", f"fleet-lock-protocol: {is_protocol}", "-d", body, *more)
    running = await asyncio.create_subprocess_exec(
        *command, f"http://127.0.0.1:{cms.port}/v1/{path}", stdout=asyncio.subprocess.PIPE
    )
    text, _, code = (await running.communicate())[0].decode().rpartition("\n")
    return int(code), json.loads(text)


async def lock_status(cms: Cms, node: str) -> int:
    return (await curl(cms, "pre-reboot", lock(node)))[0]


async def test_two_machines_of_a_service_reboot_one_after_the_other() -> None:
    async with service_of(10) as (_, cms):
        assert await lock_status(cms, "h0") == 200
        assert await lock_status(cms, "h0") == 200, "it is re-entrant"
        code, refusal = await curl(cms, "pre-reboot", lock("h1"))
        assert (code, refusal["kind"]) == (409, "failed_lock")
        assert "fleetlock-h0 (reboot) holds 1" in refusal["value"]
        assert (await curl(cms, "steady-state", lock("h0")))[0] == 200

        async def has_lock() -> bool:
            return await lock_status(cms, "h1") == 200

        await eventually(has_lock, 20.0, "h1 to get the lock")


async def test_a_lock_that_was_impossible_is_decided_anew_once_the_budget_lets_it_be() -> None:
    async with service_of(3) as (_, cms):
        budget = {"name": "web", "service": "web", "rejectImpossible": True}
        await cms.call_connect("PutBudget", {"budget": {**budget, "maxUnavailable": "0"}})
        code, refusal = await curl(cms, "pre-reboot", lock("h0"))
        assert code == 409
        assert refusal["value"].startswith("rejected: budget web")
        await cms.call_connect("PutBudget", {"budget": {**budget, "maxUnavailable": "1"}})

        async def has_lock() -> bool:
            return await lock_status(cms, "h0") == 200

        await eventually(has_lock, 20.0, "h0 to get the lock")


async def test_unlocking_what_is_not_held_succeeds() -> None:
    async with service_of(3) as (_, cms):
        assert (await curl(cms, "steady-state", lock("h0")))[0] == 200
        assert (await curl(cms, "steady-state", lock("elsewhere")))[0] == 200


async def test_a_machine_whose_group_changed_keeps_its_lock_and_gives_it_back() -> None:
    async with service_of(3) as (_, cms):
        assert await lock_status(cms, "h0") == 200
        assert (await curl(cms, "pre-reboot", lock("h0", "others")))[0] == 200
        assert (await curl(cms, "steady-state", lock("h0", "others")))[0] == 200
        assert not cms.server.desk.tasks.keys()


async def test_the_lock_is_a_task_that_operators_see_and_the_automaton_does_not() -> None:
    async with service_of(3) as (_, cms):
        await lock_status(cms, "h0")
        assert (await cms.call("GET", "")).body["result"] == [], "it would delete what it does not know"
        (state,) = (await cms.call_connect("ListTasks", {})).body["state"]
        assert (state["task"]["id"], state["task"]["issuer"], state["need"]) == ("fleetlock-h0", "fleetlock", "planned")
        assert state["task"]["comment"] == "FleetLock group workers"


async def test_steady_state_ends_no_task_of_others() -> None:
    async with service_of(3) as (_, cms):
        assert (await cms.ask("h0", "h0")).body["status"] == "ok"
        assert await lock_status(cms, "h0") == 200, "the host is down already"
        assert (await curl(cms, "steady-state", lock("h0")))[0] == 200
        assert await cms.status("h0") == "ok"


async def test_a_wait_that_is_not_repeated_is_dropped() -> None:
    async with service_of(10, rules=Rules(unasked_s=0.5)) as (_, cms):
        assert await lock_status(cms, "h0") == 200
        assert await lock_status(cms, "h1") == 409
        await eventually(
            lambda: list(cms.server.desk.tasks.keys()) == ["fleetlock-h0"], 20.0, "h1's wait to be dropped"
        )


async def test_a_wait_that_is_repeated_keeps_its_place() -> None:
    async with service_of(10, rules=Rules(unasked_s=2.0)) as (made, cms):
        other = await made.cms("cms-2")  # which has not stored a question yet, and so stores each first one
        assert await lock_status(cms, "h0") == 200
        assert await lock_status(cms, "h1") == 409
        version = cms.server.desk.book.tasks["fleetlock-h1"].order
        assert await lock_status(other, "h1") == 409
        assert cms.server.desk.tasks["fleetlock-h1"].polls == 1
        assert cms.server.desk.book.tasks["fleetlock-h1"].order == version


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{", "JSON"),
        ("[]", "object"),
        ("{}", "client_params"),
        ('{"client_params": {"group": "g"}}', "client_params.id"),
        ('{"client_params": {"id": 7, "group": "g"}}', "client_params.id"),
        ('{"client_params": {"id": "a b", "group": "g"}}', "client_params.id"),
        ('{"client_params": {"id": "h0", "group": ""}}', "client_params.group"),
        ('{"client_params": {"id": "h0", "group": "a/b"}}', "client_params.group"),
    ],
)
def test_what_is_malformed_is_refused_and_names_the_field(body: str, field: str) -> None:
    request = SiteRequest("POST", "/v1/pre-reboot", b"", {b"fleet-lock-protocol": b"true"}, "cms", body.encode())
    at = lock_path(request.path)
    assert at is not None
    with pytest.raises(InvalidRequest) as refused:
        parse_lock(request, at, 20)
    assert field in refusal_words(refused.value)["value"]


async def test_without_the_protocols_header_nothing_is_locked() -> None:
    async with service_of(3) as (_, cms):
        code, refusal = await curl(cms, "pre-reboot", lock("h0"), is_protocol="")
        assert code == 400
        assert "fleet-lock-protocol: true" in refusal["value"]
        assert not cms.server.desk.tasks.keys()


async def test_other_methods_are_405() -> None:
    async with service_of(3) as (_, cms):
        assert (await curl(cms, "pre-reboot", lock("h0"), "-X", "PUT"))[0] == 405


async def test_an_agent_locks_its_own_node_only(tmp_path: Path) -> None:
    async with guarded(tmp_path) as one:
        assert await lock_of(one, "") == 401
        assert await lock_of(one, "reader/ann") == 403
        assert await lock_of(one, "agent/h1") == 403
        assert await lock_of(one, "agent/h0") == 200
        assert await lock_of(one, "agent/h1", "steady-state") == 403
        assert await lock_of(one, "operator", "steady-state") == 200, "the lock is the node's, whoever speaks for it"


async def lock_of(one: Any, who: str, path: str = "pre-reboot") -> int:
    said = {"fleet-lock-protocol": "true"}
    return int((await one.call(who, "POST", f"/v1/{path}", json.loads(lock("h0")), **said))[0])


# --- Zincati, the update agent of Fedora CoreOS


class Zincati:
    """What it says and when, by its documents: it unlocks until that succeeds, looks for updates, and locks until it
    may reboot. Its id is a number; the node is named by `base_url`.
    """

    def __init__(self, cms: Cms, base_path: str, number: int) -> None:
        self._url = urlsplit(urljoin(f"http://127.0.0.1:{cms.port}{base_path}", "v1/"))
        self._body = json.dumps({"client_params": {"id": f"{number:032x}", "group": "default"}}, indent=2)
        self.refusals: list[dict[str, str]] = []
        self.retry_after_s = 0

    async def initialize(self) -> None:
        """Until what it may hold is given back."""
        await eventually(self._steady_state, 20.0, "the lock to be given back")

    async def update(self) -> None:
        """Until it may reboot."""
        await eventually(self._pre_reboot, 20.0, "the reboot to be allowed")

    async def _steady_state(self) -> bool:
        return await asyncio.to_thread(self.succeeds, "steady-state")

    async def _pre_reboot(self) -> bool:
        return await asyncio.to_thread(self.succeeds, "pre-reboot")

    def succeeds(self, call: str) -> bool:
        with closing(HTTPConnection(self._url.netloc, timeout=10)) as connection:
            connection.request("POST", self._url.path + call, self._body, {"fleet-lock-protocol": "true"})
            answer = connection.getresponse()
            said = answer.read()
            self.retry_after_s = int(answer.headers["retry-after"] or 0)
        if 200 <= answer.status < 300:
            return True
        refusal = json.loads(said)
        assert refusal["kind"], "it counts its refusals by this word"
        self.refusals.append(refusal)
        return False


@pytest.mark.long
async def test_zincati_names_its_node_by_its_base_url() -> None:
    async with service_of(10) as (_, cms):
        first, second = (Zincati(cms, f"/fleetlock/h{n}/", n + 1) for n in range(2))
        await first.initialize()
        await second.initialize()
        await first.update()
        second_updates = asyncio.create_task(second.update())
        await eventually(lambda: second.refusals, 20.0, "the second one to be refused")
        assert "fleetlock-h0 (reboot) holds 1" in second.refusals[0]["value"]
        assert not second_updates.done()
        await first.initialize()  # it has rebooted
        await second_updates
        assert list(cms.server.desk.tasks.keys()) == ["fleetlock-h1"]


async def test_a_machine_that_waits_for_a_window_of_tomorrow_is_told_to_ask_before_its_wait_is_dropped() -> None:
    async with service_of(3) as (_, cms):
        calm = {"begin": "2000-01-01", "end": "2100-01-01", "reason": "calm"}
        await cms.call_connect("PutWindows", {"windows": {"name": "all", "freeze": [calm]}})
        machine = Zincati(cms, "/fleetlock/h0/", 1)
        assert not await asyncio.to_thread(machine.succeeds, "pre-reboot")
        assert "freeze of all: calm" in machine.refusals[0]["value"]
        assert 0 < machine.retry_after_s <= 450


async def test_a_number_that_is_no_node_is_told_how_to_name_one() -> None:
    """It would be granted at once: nothing is known to run there."""
    async with service_of(3) as (_, cms):
        code, refusal = await curl(cms, "pre-reboot", lock("c988d2509fdf5cdcbed39037c56406fb"))
        assert (code, list(cms.server.desk.tasks.keys())) == (400, [])
        assert "send to /fleetlock/NODE/v1/pre-reboot" in refusal["value"]
        assert (await curl(cms, "steady-state", lock("c988d2509fdf5cdcbed39037c56406fb")))[0] == 200


# --- the script for machines whose packages ask for a reboot

SCRIPT = Path(__file__).parents[2] / "deploy/fleetlock/hq-reboot"


class Machine:
    """A machine with the script: its `reboot` leaves a mark, and nothing else."""

    def __init__(self, folder: Path, node: str, cms: str) -> None:
        self.required, self.rebooted = folder / f"{node}-required", folder / f"{node}-rebooted"
        self._settings = {
            "PATH": "/usr/bin:/bin",
            "HQ_CMS": cms,
            "HQ_NODE": node,
            "REBOOT_REQUIRED": str(self.required),
            "HQ_REBOOT_STATE": str(folder / node),
            "REBOOT": f"touch {self.rebooted}",
        }

    async def run(self) -> int:
        running = await asyncio.create_subprocess_exec("/bin/sh", str(SCRIPT), env=self._settings)
        return await running.wait()


@pytest.mark.long
async def test_the_script_reboots_machines_one_after_the_other(tmp_path: Path) -> None:
    async with service_of(10) as (_, cms):
        url = f"http://127.0.0.1:1 http://127.0.0.1:{cms.port}"  # nobody is at the first one
        first, second = Machine(tmp_path, "h0", url), Machine(tmp_path, "h1", url)
        assert await first.run() == 0, "nothing is to be done"
        assert not cms.server.desk.tasks.keys()
        first.required.touch()
        second.required.touch()
        assert await first.run() == 0
        assert first.rebooted.exists()
        assert await second.run() == 8
        assert not second.rebooted.exists()
        first.required.unlink()
        assert await first.run() == 0

        async def is_done() -> bool:
            return await second.run() == 0

        await eventually(is_done, 20.0, "the second machine to reboot")
        assert second.rebooted.exists()
        assert list(cms.server.desk.tasks.keys()) == ["fleetlock-h1"]


async def test_the_script_keeps_in_mind_what_it_may_hold_while_the_cms_is_away(tmp_path: Path) -> None:
    async with service_of(3) as (_, cms):
        lost, found = (Machine(tmp_path, "h0", url) for url in ("http://127.0.0.1:1", f"http://127.0.0.1:{cms.port}"))
        lost.required.touch()
        assert await lost.run() == 1
        assert not lost.rebooted.exists()
        assert await lock_status(cms, "h0") == 200  # the answer to it was lost
        lost.required.unlink()
        assert await lost.run() == 1
        assert await found.run() == 0
        assert not cms.server.desk.tasks.keys()
