"""The calendar at a real CMS: windows and freezes by `hqctl windows`, kept at the ok and at the confirmation."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cms.ledger.book import Rules
from cms.ledger.limits import Site
from tests.cms.cloud import Cms, service_of
from tests.cms.test_hqctl import hqctl
from tests.support.sample_instances import eventually
from walle.approval.protocol import answer_of

QUICK = Rules(settle_s=0.2)


def around(hours: float) -> tuple[str, str]:
    """An hour of the day that begins so long from now (UTC)."""
    begin = datetime.now(UTC) + timedelta(hours=hours)
    return f"{begin:%H:%M}", f"{begin + timedelta(hours=1):%H:%M}"


def in_three_hours() -> str:
    return f"{datetime.now(UTC) + timedelta(hours=3):%a %Y-%m-%d at %H:%M}"


def window(name: str, hours: float, **more: Any) -> dict[str, Any]:
    begin, end = around(hours)
    return {"name": name, "hours": [{"begin": begin, "end": end}], **more}


def freeze(name: str, **more: Any) -> dict[str, Any]:
    today = datetime.now(UTC).date()
    period = {"begin": str(today - timedelta(days=1)), "end": str(today + timedelta(days=1)), "reason": "year end"}
    return {"name": name, "freeze": [period | more]}


async def put(cms: Cms, windows: dict[str, Any]) -> None:
    reply = await cms.call_connect("PutWindows", {"windows": windows})
    assert reply.status == 200, reply


@pytest.mark.parametrize(
    ("begin", "end", "hours"),
    [
        ("2026-01-01", "9999-12-31T23:59:59", []),  # the minute after it is no time any more
        ("2026-01-01", "9999-12-31", []),  # nor the day after it
        ("0001-01-01", "9999-12-30", [{"begin": "00:00", "end": "12:00"}]),  # nor the month after it
    ],
)
async def test_a_freeze_for_ever_of_one_service_keeps_nobody_else_waiting(
    begin: str, end: str, hours: list[Any]
) -> None:
    """Such a freeze, set by an uploader of one service, broke every decision of the CMS and every list of windows."""
    async with service_of(4) as (_, cms):
        await put(cms, {"name": "ever", "service": "web", "hours": hours, "freeze": [freeze_of(begin, end)]})
        waits = (await cms.ask("t1", "h0")).body
        assert waits["status"] == "in-process"
        assert "freeze of ever: always" in waits["message"]
        assert (await cms.ask("t2", "h9")).body["status"] == "ok"
        tasks = (await cms.call_connect("ListTasks", {})).body
        assert tasks["state"][0]["retryAfterSeconds"] == 365 * 86_400
        listed = (await cms.call_connect("ListWindows", {})).body
        assert listed["state"][0]["openTime"].startswith("9000-01-0")


def freeze_of(begin: str, end: str) -> dict[str, str]:
    return {"begin": begin, "end": end, "reason": "always"}


async def test_work_that_waits_for_its_window_says_when_that_opens_and_stands_in_nobodys_way() -> None:
    async with service_of(4) as (_, cms):
        await put(cms, window("nights", 3, service="web"))
        waits = (await cms.ask("t1", "h0")).body
        assert waits["status"] == "in-process"
        assert f"window nights is closed; work may begin on {in_three_hours()} UTC" in waits["message"]
        assert 3 * 3600 - 90 < waits["details"]["retry_after_s"] <= 3 * 3600
        assert answer_of("t1", waits).opens_in_s == waits["details"]["retry_after_s"]
        await put(cms, window("nights", 3, service="mail"))
        await cms.becomes("t1", "ok")  # nobody had to ask
        assert (await cms.ask("t2", "h9")).body["status"] == "ok"  # no instance of web is there


async def test_a_closed_window_reserves_nothing() -> None:
    async with service_of(4, sites={"h0": Site(project="a")}) as (_, cms):
        await put(cms, window("a", 3, project="a"))
        assert (await cms.ask("closed", "h0")).body["status"] == "in-process"
        assert (await cms.ask("open", "h1")).body["status"] == "ok"


async def test_an_ok_that_is_not_confirmed_ends_with_its_window() -> None:
    async with service_of(4) as (_, cms):
        assert (await cms.ask("t", "h0", confirm=True)).body["details"]["provisional"]
        await put(cms, freeze("all"))
        refused = await cms.call("POST", "/t/confirm", {})
        assert refused.status == 409
        assert "freeze of all: year end; work may begin on " in refused.body["message"]
        assert (await cms.call_connect("DeleteWindows", {"name": "all"})).status == 200
        await cms.becomes("t", "ok")
        assert (await cms.call("POST", "/t/confirm", {})).status == 200


async def test_a_group_whose_windows_never_meet_is_impossible_and_says_so() -> None:
    async with service_of(2, rules=QUICK, sites={"h0": Site(project="a"), "h1": Site(project="b")}) as (_, cms):
        await put(cms, window("a", 3, project="a"))
        await put(cms, window("b", 6, project="b"))
        dry = (await cms.ask("t", "h0", "h1", path="?dry_run=true")).body
        assert dry["status"] == "rejected"
        assert "the windows a, b never meet: this request cannot begin at any time" in dry["message"]
        for task, host in (("g1", "h0"), ("g2", "h1")):
            await cms.ask(task, host, host_group_id="g")

        async def says_so() -> bool:
            why = (await cms.call("GET", "/g1")).body
            return why["status"] == "in-process" and "the windows a, b never meet" in why["message"]

        await eventually(says_so, 20.0, "the group to be told that its windows never meet")


@pytest.mark.long
async def test_windows_are_applied_listed_and_deleted_by_hqctl(tmp_path: Path) -> None:
    file = tmp_path / "windows.yaml"
    file.write_text(
        "name: nights\nservice: web\nzone: Europe/Berlin\nmargin: 30m\n"
        "hours: [{days: mon-fri, begin: '22:00', end: '06:00'}]\n---\n"
        f"{json.dumps(freeze('all'))}\n"
    )
    async with service_of(2) as (_, cms):
        assert await hqctl(cms, "windows", "apply", "-f", str(file)) == (0, "windows nights set\nwindows all set\n")
        code, printed = await hqctl(cms, "windows", "list")
        every, nights = printed.splitlines()[1:]
        assert (code, every.split()[:6]) == (0, ["all", "all", "always", "UTC", "-", "freeze"])
        assert nights.split()[:7] == ["nights", "service", "web", "mon-fri", "22:00-06:00", "Europe/Berlin", "30m"]
        assert (await hqctl(cms, "windows", "delete", "all"))[0] == 0
        assert (await hqctl(cms, "windows", "delete", "all"))[0] == 3
        for wrong, field in (
            ({"zone": "Mars"}, "windows.zone"),
            ({"hours": [{"begin": "25:00", "end": "06:00"}]}, "windows.hours[0].begin"),
            ({"hours": [{"begin": "22:00", "end": "23:00", "days": "moon"}]}, "windows.hours[0].days"),
            ({"overrun": "25h"}, "windows.overrun"),
            ({"margin": "2h", "hours": [{"begin": "22:00", "end": "23:00"}]}, "windows.margin"),
            ({"freeze": [{"begin": "2026-12-20", "end": "2026-12-19", "reason": "x"}]}, "windows.freeze[0].end"),
            ({"freeze": [{"begin": "2026-12-20", "end": "2026-12-24"}]}, "windows.freeze[0].reason"),
            ({"project": "p"}, "windows.service"),
            ({"hours": [], "freeze": []}, "windows.hours"),
        ):
            document = {"name": "x", "service": "s", "hours": [{"begin": "22:00", "end": "23:00"}], **wrong}
            file.write_text(json.dumps(document))
            code, printed = await hqctl(cms, "windows", "apply", "-f", str(file))
            assert (code, field in printed) == (1, True), printed
