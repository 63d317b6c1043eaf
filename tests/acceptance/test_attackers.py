"""Hostile calls of every method, with a token of each role: nobody changes or is shown what belongs to others."""

from __future__ import annotations

import os
import random
import ssl
import sys
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.support.authority import requests
from tests.support.authority.attacker import CANARY, MAIL, WEB, Attack, Belongings, Side
from tests.support.authority.matrix import Matrix
from tests.support.authority.servers import every_server

# Longer: ATTACK_CALLS=20000 ATTACK_SEED=7 .venv/bin/pytest -m long tests/acceptance/test_attackers.py
CALLS: Final = int(os.environ.get("ATTACK_CALLS", "150"))
SEED: Final = int(os.environ.get("ATTACK_SEED", "1"))
ATTACKERS: Final = {  # in this order: those of web change and delete what is theirs
    "none": MAIL,
    "mo-2": WEB,
    "he-2": WEB,
    "expi": MAIL,
    "aud": MAIL,
    "re-w": MAIL,
    "age1": MAIL,
    "up-w": MAIL,
    "op-1": MAIL,
    "op-w": MAIL,
    "ad-w": MAIL,
    "ad-a": MAIL,
}
_LOOK_EVERY: Final = 100
_STRANGERS: Final = ("none", "expi", "aud")  # nothing of theirs is let in
_RARE: Final = "mo-2"  # it may report checks of one node, and nothing else
# Written into the objects of both sides: one that shows up at the other side is a leak.
SAID: Final = (
    ("hq", "hq.v1.InstanceService/UpdateInstance", lambda side: {
        "instance": {"meta": {"id": side.instance, "labels": {"said": f"{CANARY}-{side.service}"}}},
        "updateMask": "meta.labels",
    }),
    ("nanny", "nanny.v1.NannyService/UpdateService", lambda side: {
        "serviceId": side.service, "info": {"description": f"{CANARY}-{side.service}"}, "updateMask": "description",
    }),
    ("walle", "walle.v1.WalleService/AddScenario", lambda side: {
        "scenario": side.scenario, "kind": "SCENARIO_KIND_REBOOT", "hosts": [side.node],
        "reason": f"{CANARY}-{side.service}",
    }),
)  # fmt: skip
FROZEN: Final = (
    ("cms", "cms.v1.CmsAdminService/Freeze", {"reason": "attack"}),
    ("nanny", "nanny.v1.NannyService/SetControl", {"order": "CONTROL_ORDER_FREEZE", "by": {"comment": "attack"}}),
    ("walle", "walle.v1.WalleService/Freeze", {"frozen": True, "reason": "attack"}),
)


_NO, _GONE = "PERMISSION_DENIED", "NOT_FOUND"
_CMS, _WALLE, _HQ = "cms.v1.CmsService", "walle.v1.WalleService", "hq.v1.InstanceService"
_DAY: Final = [{"begin": "00:00", "end": "24:00"}]


def _task(**named: object) -> requests.Body:
    return {"task": {"id": "mine", "action": "reboot", "issuer": "uploader-here", **named}}


def _work(*hosts: str) -> requests.Body:
    return {"scenario": "mine", "kind": "SCENARIO_KIND_REBOOT", "hosts": list(hosts), "reason": "attack"}


# Tried by hand on an installation that `hq init` wrote: who, at which server, what, and the answer.
BY_HAND: Final[tuple[tuple[str, str, str, Any, str], ...]] = (
    ("up-w", "cms", f"{_CMS}/PutBudget", {"budget": {"name": "mail", "service": "web", "minReady": "1"}}, _NO),
    ("up-w", "cms", f"{_CMS}/PutWindows", {"windows": {"name": "all", "hours": _DAY}}, _NO),
    ("up-w", "cms", f"{_CMS}/PutWindows", {"windows": {"name": "p", "project": "web", "hours": _DAY}}, _NO),
    ("up-w", "cms", f"{_CMS}/CreateTask", _task(host=["n1"]), _NO),
    ("up-w", "cms", f"{_CMS}/CreateTask", _task(instance=[{"id": "mail-1", "location": "ams"}]), _NO),
    ("up-w", "cms", f"{_CMS}/CreateTask", _task(instance=[{"id": "web-1", "location": "ams"}], issuer="wall-e"), _NO),
    ("up-w", "cms", f"{_CMS}/WhyTask", {"id": "task-n2"}, _GONE),
    ("up-w", "cms", f"{_CMS}/Plan", {"host": ["n2"]}, _NO),
    ("up-w", "cms", "cms.v1.CmsAdminService/EndTask", {"id": "task-n2", "reason": "attack"}, _NO),
    ("up-w", "nanny", "nanny.v1.NannyService/GetService", {"serviceId": "mail"}, _GONE),
    ("op-w", "nanny", "nanny.v1.NannyService/SetControl", {"order": "CONTROL_ORDER_FREEZE"}, _NO),
    ("op-1", "walle", f"{_WALLE}/AddScenario", {**_work(), "kind": "SCENARIO_KIND_SWITCH_MAINTENANCE"}, _NO),
    ("op-1", "walle", f"{_WALLE}/AddScenario", _work("n1", "n2"), _GONE),
    ("op-1", "walle", f"{_WALLE}/AddScenario", _work("n*"), "FAILED_PRECONDITION"),  # none in reach
    ("op-1", "walle", f"{_WALLE}/GetProject", {"project": "mail"}, _GONE),
    ("age1", "walle", f"{_WALLE}/ReportChecks", {"hosts": [{"host": "n2", "check": [{"name": "ssh"}]}]}, _NO),
    ("age1", "hq", f"{_HQ}/BeginReporting", {"instanceId": "mail-1", "revisionId": "r1", "node": "n2"}, _NO),
    ("age1", "hq", f"{_HQ}/GetRevision", {"instanceId": "mail-1", "revisionId": "r1"}, _GONE),
    ("age1", "cms", "/v1/pre-reboot", ("POST", "/v1/pre-reboot", {"client_params": {"id": "n2", "group": "web"}}), _NO),
    ("re-w", "hq", f"{_HQ}/FindInstances", {"filter": {"nodeName": ["n2"]}}, _NO),
    ("re-w", "recorder", "history.v1.HistoryService/ReadLedger", {}, _NO),
    ("re-w", "recorder", "history.v1.HistoryService/ListDecisions", {}, "OK"),
    ("re-w", "recorder", "history.v1.HistoryService/ListEvents", {}, "OK"),
)


@pytest.mark.long
async def test_calls_that_people_tried_by_hand_get_their_designed_answers(tmp_path: Path) -> None:
    async with every_server(tmp_path) as servers:
        tls = ssl.create_default_context(cafile=str(servers.files.authority.cert))
        async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=20) as http:
            matrix = Matrix(servers, http)
            try:
                for server in servers.all.values():
                    await matrix._prepare(server)
                for who, name, path, body, wanted in BY_HAND:
                    code, text = await matrix._ask(servers.all[name], path, body, who)
                    assert code == wanted, (who, path, body, text)
                    assert wanted != "OK" or "mail" not in text, (who, path, text)
            finally:
                await matrix.close()


@pytest.mark.long
@pytest.mark.timeout(120 + CALLS)
async def test_nobody_changes_or_is_shown_what_is_out_of_its_reach(tmp_path: Path) -> None:
    async with every_server(tmp_path) as servers:
        tls = ssl.create_default_context(cafile=str(servers.files.authority.cert))
        async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=20) as http:
            matrix = Matrix(servers, http)
            for name, path, body in FROZEN:  # so that nothing happens by itself
                assert (await matrix._ask(servers.all[name], path, body, "oper"))[0] == "OK"
            for name, setup in requests.SETUP.items():
                for path, body in setup:
                    if not path.endswith(("reeze", "SetControl", "AddScenario")):
                        who = "oper" if "AdminService" in path else "admi"
                        assert (await matrix._ask(servers.all[name], path, body, who))[0] == "OK", path
            for side in (WEB, MAIL):
                for name, path, said in SAID:
                    code, text = await matrix._ask(servers.all[name], path, said(side), "admi")
                    assert code == "OK", text
            for number, (caller, foreign) in enumerate(ATTACKERS.items()):
                rng = random.Random(SEED * 1_000 + number)
                attack = Attack(servers, http, caller, foreign, rng, canary=f"{CANARY}-{foreign.service}")
                await _attack(attack, Belongings(servers, foreign), foreign)
            await matrix.close()


async def _attack(attack: Attack, belongings: Belongings, foreign: Side) -> None:
    try:
        before = await belongings.look()
        for number in range(CALLS):
            await attack.call_once()
            if number % _LOOK_EVERY == _LOOK_EVERY - 1 or number == CALLS - 1:
                after = await belongings.look()
                changed = [
                    f"{key}: {before[key]} -> {after.get(key)}" for key in before if after.get(key) != before[key]
                ]
                assert not changed, f"{attack.caller} changed {foreign}: {changed} by one of {attack.done}"
                attack.done.clear()
        sys.stdout.write(f"{attack.caller}: {dict(sorted(attack.codes.items()))}\n")
        are_let_in = attack.codes.get("OK", 0) > 0
        assert are_let_in is not (attack.caller in _STRANGERS) or attack.caller == _RARE, "or the attack proves nothing"
        assert attack.leaks == [], attack.caller
        assert attack.broken == [], attack.caller
    finally:
        await attack.close()
        await belongings.close()
