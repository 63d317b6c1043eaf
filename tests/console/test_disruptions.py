"""The pages of the CMS: who may be taken down now, who is in the way, and the orders of operators."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.console.fake_cms import FakeCms
from tests.console.fakes import serving
from tests.console.scene import HOSTILE, WithController, check_absence, cloud, secured_console
from tests.support.secured import Secured


@dataclass
class WithCms(WithController):
    cms: FakeCms


@pytest.fixture
async def at() -> AsyncIterator[WithCms]:
    cms = FakeCms()
    async with serving(cms.methods()) as address, cloud(cms=address) as made:
        yield WithCms(made, cms)


async def test_tasks_and_budgets_stand_on_one_page_with_their_reasons(at: WithCms) -> None:
    page = (await at.browser.get("/disruptions")).text
    assert "overdue" in page
    assert "waits" in page
    assert "rejected" in page
    assert HOSTILE in html.unescape(page)
    assert HOSTILE not in page
    assert "below its floor" in page  # cart
    assert "nothing left" in page  # web
    assert "at least 3" in page


async def test_a_task_says_who_is_in_its_way(at: WithCms) -> None:
    page = (await at.browser.get("/disruptions/reboot-1")).text
    assert "In its way" in page
    assert 'href="/disruptions/rack-7"' in page
    assert "this task would take 1" in page


async def test_the_first_page_tells_who_waits_for_too_long_and_what_is_overdue(at: WithCms) -> None:
    page = (await at.browser.get("/")).text
    assert "reboot of node-1 has waited for 1 h" in page
    assert "Asked for by wall-e." in page
    assert "power-off of node-1 is overdue" in page


async def test_floors_are_those_of_the_budgets(at: WithCms) -> None:
    at.cms.cart.floor = 1
    page = (await at.browser.get("/")).text
    assert "3 instances are away, though its floor of 1 holds." in page
    assert "floor 1" in (await at.browser.get("/services/cart")).text


async def test_a_plan_shows_waves_and_what_fits_in_none(at: WithCms) -> None:
    page = (await at.browser.get("/plan?hosts=node-1%20node-2,node-3&action=reboot")).text
    assert "Wave 2" in page
    assert "holds all of mail" in page
    assert "Name the hosts" in (await at.browser.get("/plan")).text


async def test_operators_freeze_and_unfreeze_with_a_reason(at: WithCms) -> None:
    assert (await at.browser.submit("/cms/freeze", {})).status_code == 400
    assert at.cms.orders == []
    await at.browser.submit("/cms/freeze", {"reason": "storm"})
    assert at.cms.orders[-1][1].reason == "storm"
    assert "the CMS grants nothing" in (await at.browser.get("/")).text
    await at.browser.submit("/cms/unfreeze", {"reason": "over"})
    assert "the CMS grants nothing" not in (await at.browser.get("/")).text


async def test_the_calendar_is_frozen_windows_are_made_and_deleted(at: WithCms) -> None:
    page = (await at.browser.get("/windows")).text
    assert "Freeze…" in page
    assert "roll-outs that have begun stop at once" in page
    assert "Delete nights…" in page
    days = {"begin": "2026-12-05", "end": "2026-12-06", "zone": "Europe/Berlin", "service": "web"}
    assert (await at.browser.submit("/windows/freeze", days)).status_code == 400, "it has no reason"
    await at.browser.submit("/windows/freeze", {**days, "reason": "sales"})
    frozen = at.cms.orders[-1][1].windows
    assert (frozen.name, frozen.service, frozen.zone) == ("freeze-web-2026-12-05", "web", "Europe/Berlin")
    (period,) = frozen.freeze
    assert (period.begin, period.end, period.reason, period.repairs) == ("2026-12-05", "2026-12-06", "sales", False)
    await at.browser.submit("/windows/freeze", {**days, "end": "2026-12-05", "reason": "inventory"})
    assert at.cms.orders[-1][1].windows == frozen, "one with the same first day does not replace it"
    assert "freeze-web-2026-12-05 already exists" in (await at.browser.get("/windows")).text
    hours = {"days": "mon-fri", "begin": "22:00", "end": "06:00"}
    await at.browser.submit("/windows/put", {**hours, "name": "nights", "project": "shop", "margin": "30m"})
    made = at.cms.orders[-1][1].windows
    assert (made.name, made.project, made.margin) == ("nights", "shop", "30m")
    assert (made.hours[0].days, made.hours[0].begin, made.hours[0].end) == ("mon-fri", "22:00", "06:00")
    await at.browser.submit("/windows/delete", {"name": "nights"})
    assert at.cms.orders[-1][1].name == "nights"
    assert (await at.browser.submit("/windows/open", {})).status_code == 404


async def test_a_hold_is_extended_or_ended(at: WithCms) -> None:
    await at.browser.submit("/disruptions/rack-7/extend", {"hours": "3", "reason": "late parts"})
    assert at.cms.orders[-1][1].seconds == 10_800
    await at.browser.submit("/disruptions/rack-7/end", {"reason": "gone home"})
    assert at.cms.orders[-1][0] == "EndTask"
    assert (await at.browser.submit("/disruptions/rack-7/extend", {"hours": "0", "reason": "x"})).status_code == 400
    assert (await at.browser.submit("/disruptions/rack-7/eat", {"reason": "x"})).status_code == 404


async def test_an_unknown_task_is_not_found(at: WithCms) -> None:
    assert (await at.browser.get("/disruptions/none")).status_code == 404


@pytest.mark.parametrize("path", ["/disruptions", "/disruptions/x", "/plan?hosts=a"])
async def test_a_page_says_that_there_is_no_cms_or_that_it_is_silent(path: str) -> None:
    await check_absence(path, "cms", "CMS")


async def test_a_reader_sees_no_order_and_a_forged_one_fails(tmp_path: Path) -> None:
    files, cms = Secured(tmp_path), FakeCms()
    own = files.security(audit_log=str(tmp_path / "cms.jsonl"))
    async with (
        serving(cms.methods(), own) as address,
        secured_console(files, "reader/anna", cms=address) as (browser, _),
    ):
        assert "Stop approvals…" not in (await browser.get("/disruptions")).text
        assert "Extend…" not in (await browser.get("/disruptions/rack-7")).text
        assert "…" not in (await browser.get("/windows")).text
        for path in ("/cms/freeze", "/disruptions/rack-7/end", "/windows/freeze"):
            await browser.submit(path, {"reason": "x"})
            assert "Nothing was done" in await browser.flash()
        assert cms.orders == []
        await browser.submit("/signin", {"token": files.issuer.token("operator"), "to": "/"})
        assert "Stop approvals…" in (await browser.get("/disruptions")).text
