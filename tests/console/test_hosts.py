"""The pages of Wall-E: racks, a host's operation in steps, fuses with ledger and forecast, scenarios."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.console.fake_cms import FakeCms
from tests.console.fake_walle import FakeWalle
from tests.console.fakes import serving
from tests.console.scene import HOSTILE, WithController, check_absence, cloud, secured_console
from tests.support.secured import Secured
from wallepb.v1 import host_pb2 as hpb
from wallepb.v1 import project_pb2 as ppb
from wallepb.v1 import service_pb2 as pb

PAGES = (
    *("/hosts", "/hosts/host-01", "/hosts/host-02", "/hosts/host-04", "/projects", "/projects/search"),
    *("/scenarios", "/scenarios/s1-upgrade"),
)


@dataclass
class WithWalle(WithController):
    walle: FakeWalle


@pytest.fixture
async def at() -> AsyncIterator[WithWalle]:
    walle = FakeWalle()
    async with (
        serving(walle.methods()) as address,
        cloud(walle=address) as made,
    ):
        yield WithWalle(made, walle)


@pytest.mark.parametrize("path", PAGES)
async def test_hostile_texts_stay_texts(at: WithWalle, path: str) -> None:
    page = await at.browser.get(path)
    assert page.status_code == 200
    assert HOSTILE not in page.text


async def test_dead_hosts_stand_on_the_first_page_above_the_services_that_they_explain(at: WithWalle) -> None:
    page = (await at.browser.get("/")).text
    assert "1 host is dead, healing has given up" in page
    assert page.index("1 host is dead") < page.index("cart: 1 of 4 instances ready")


async def test_a_dead_host_says_how_it_is_taken_back(at: WithWalle) -> None:
    page = (await at.browser.get("/hosts/host-01")).text
    assert "Wall-E has given up on this host" in page
    assert "Take it back…" in page
    assert "Take it back…" not in (await at.browser.get("/hosts/host-00")).text
    await at.browser.submit("/hosts/host-01/ready", {"reason": "new disk"})
    name, sent = at.walle.orders[-1]
    assert (name, sent.status, sent.state) == ("SetHostState", hpb.HOST_STATUS_READY, 0)
    assert "host-01 is taken back" in await at.browser.flash()
    await at.browser.submit("/hosts/host-01/state", {"state": "MAINTENANCE", "reason": "looking"})
    assert "host-01 is in maintenance: Wall-E leaves it alone" in await at.browser.flash()


async def test_all_hosts_are_a_click_away_and_each_names_its_switch(at: WithWalle) -> None:
    page = (await at.browser.get("/hosts?project=search")).text
    assert 'href="/hosts?project=search&amp;all=1">Show all 24</a>' in page
    assert "host-00" not in page
    everything = (await at.browser.get("/hosts?project=search&all=1")).text
    assert "host-00" in everything
    assert 'href="/hosts?switch=s1"' in everything


async def test_planned_work_that_waits_is_not_under_work(at: WithWalle) -> None:
    at.walle.hosts[0].host.scenario = "s1-upgrade"
    at.walle.hosts[0].decision = "host-00: nothing to do"
    page = (await at.browser.get("/hosts")).text
    assert "planned work s1-upgrade, waits for approval" in page
    assert "2 waiting for approval" in page
    assert "nothing to do" not in page


async def test_a_node_shows_the_status_of_its_host(at: WithWalle) -> None:
    at.walle.hosts[1].host.name = "node-1"
    for path in ("/nodes/node-1", "/instances/test/web-1"):
        page = (await at.browser.get(path)).text
        assert "Host: " in page
        assert "dead" in page


async def test_racks_are_a_picture_and_troubled_hosts_stand_below(at: WithWalle) -> None:
    page = (await at.browser.get("/hosts")).text
    assert 'aria-label="12 hosts, 0 under work, 1 waiting for approval, 1 with trouble"' in page
    assert "3 hosts with trouble or work" in page
    assert "rack-9 of dc: 12 of 12 fail" in page
    assert HOSTILE in html.unescape(page)


async def test_an_operation_shows_its_step_and_who_keeps_it_waiting(at: WithWalle) -> None:
    page = (await at.browser.get("/hosts/host-02")).text
    assert '<li class="past">requested</li>' in page
    assert '<li class="now" aria-current="step">approval</li>' in page
    assert "web has no room" in page
    assert "Cancel the operation" in page


async def test_a_host_says_what_would_be_done_and_why_it_is_not(at: WithWalle) -> None:
    page = (await at.browser.get("/hosts/host-04")).text
    assert "reboot for ssh" in page
    assert "healing is off" in page


@pytest.mark.long
async def test_a_fuse_shows_ledger_limits_and_forecast_with_credits(at: WithWalle) -> None:
    page = (await at.browser.get("/projects/search")).text
    assert "It switched itself off: limit ssh 1d:10 would be exceeded" in page
    assert "140 hosts wait, the limit is 10" in page
    assert "it would trip at once" in page
    assert 'Switch <span data-show="automation">automation</span> of search on</h2>' in page
    assert "1d:10" in page
    assert "it would not trip" in (await at.browser.get("/projects/search?credits=ssh%3D200")).text
    assert (await at.browser.get("/projects/search?credits=nonsense")).status_code == 400


async def test_a_fuse_is_switched_on_with_credits(at: WithWalle) -> None:
    form = {"automation": "healing", "on": "yes", "credits": "ssh=200", "hours": "2", "reason": "the switch is back"}
    await at.browser.submit("/projects/search/automation", form)
    name, sent = at.walle.orders[-1]
    assert name == "SwitchAutomation"
    assert (sent.on, dict(sent.credits), sent.credit_time.seconds) == (True, {"ssh": 200}, 7_200)
    assert "Switch off…" in (await at.browser.get("/projects/search")).text
    assert (await at.browser.submit("/projects/search/automation", {**form, "reason": ""})).status_code == 400


async def test_a_scenario_says_who_blocks_it_and_is_ended(at: WithWalle) -> None:
    listed = (await at.browser.get("/scenarios")).text
    assert "s1-upgrade" in listed
    assert "s0-upgrade" in listed, "Wall-E answers in pages"
    page = (await at.browser.get("/scenarios/s1-upgrade")).text
    assert "Who blocks it" in page
    assert "bob holds rack-7" in page
    assert "agree by hand" in page
    assert "The work is done…" not in page  # it has not begun
    assert "Agree for search…" in page
    await at.browser.submit("/scenarios/s1-upgrade/agree", {"project": "search", "refuse": "on", "reason": "not today"})
    assert (at.walle.orders[-1][1].project, at.walle.orders[-1][1].refused) == ("search", True)
    assert (await at.browser.submit("/scenarios/s1-upgrade/agree", {"reason": "x"})).status_code == 400
    at.walle.scenario.stage = ppb.SCENARIO_STAGE_WORKING
    assert "The work is done…" in (await at.browser.get("/scenarios/s1-upgrade")).text
    await at.browser.submit("/scenarios/s1-upgrade/end", {"done": "yes", "reason": "upgraded"})
    assert at.walle.orders[-1][1].done
    assert "Cancel…" not in (await at.browser.get("/scenarios/s1-upgrade")).text


async def test_a_switch_is_chosen_from_those_that_are_known_and_an_unknown_one_is_named(at: WithWalle) -> None:
    assert '<option value="s1">' in (await at.browser.get("/scenarios")).text
    form = {"scenario": "s3", "switch": "s11", "reason": "upgrade"}
    answer = await at.browser.submit("/scenarios", form, **{"x-dialog": "1"})
    assert answer.status_code == 400
    assert answer.text == "switch: no host is behind a switch s11; did you mean s1?"
    assert at.walle.orders == []


async def test_a_name_that_does_not_fit_is_refused_with_its_rule(at: WithWalle) -> None:
    form = {"scenario": "new firmware", "switch": "s1", "reason": "upgrade"}
    answer = await at.browser.submit("/scenarios", form, **{"x-dialog": "1"})
    assert (answer.status_code, answer.text.split(":")[0]) == (400, "Name")
    assert "up to 63" in (await at.browser.get("/scenarios")).text
    assert at.walle.orders == []


async def test_work_that_waits_says_when_it_gives_up(at: WithWalle) -> None:
    assert "It gives up unless all agree: " in (await at.browser.get("/scenarios/s1-upgrade")).text


async def test_orders_to_a_host_and_a_new_scenario_reach_walle_and_bad_forms_do_not(at: WithWalle) -> None:
    await at.browser.submit("/hosts/host-00/operation", {"kind": "power-off", "reason": "noise"})
    assert at.walle.orders[-1][1].kind == hpb.OPERATION_KIND_POWER_OFF
    await at.browser.submit("/hosts/host-00/state", {"state": "MAINTENANCE", "reason": "bench"})
    assert at.walle.orders[-1][1].state == hpb.HOST_STATE_MAINTENANCE
    await at.browser.submit("/scenarios", {"scenario": "s2", "switch": "s1", "reason": "upgrade"})
    assert at.walle.orders[-1][0] == "AddScenario"
    await at.browser.submit("/scenarios", {"scenario": "", "switch": "s1", "reason": "upgrade"})
    assert at.walle.orders[-1][1].scenario == "s1-maintenance"
    orders = len(at.walle.orders)
    for path, form in (
        ("/hosts/host-00/operation", {"kind": "explode", "reason": "x"}),
        ("/hosts/host-00/state", {"state": "GONE", "reason": "x"}),
        ("/scenarios", {"reason": "x"}),
    ):
        assert (await at.browser.submit(path, form)).status_code == 400
    assert len(at.walle.orders) == orders


async def test_the_first_page_tells_fuses_incidents_and_work_that_waits(at: WithWalle) -> None:
    page = (await at.browser.get("/")).text
    assert "healing of search is off" in page
    assert "rack-9 of dc: 12 of 12 fail" in page
    assert "s1-upgrade has waited for approval for 20 min" in page
    assert "Asked for by bob." in page


@pytest.mark.parametrize("path", ["/hosts/none", "/projects/none", "/scenarios/none"])
async def test_an_unknown_host_project_or_scenario_is_not_found(at: WithWalle, path: str) -> None:
    assert (await at.browser.get(path)).status_code == 404


@pytest.mark.long
@pytest.mark.parametrize("path", ["/hosts", "/hosts/x", "/projects", "/projects/x", "/scenarios", "/scenarios/x"])
async def test_a_page_says_that_there_is_no_walle_or_that_it_is_silent(path: str) -> None:
    await check_absence(path, "walle", "Wall-E")


@pytest.mark.parametrize(("who", "may"), [("reader/anna", False), ("web-uploader", True), ("operator", True)])
async def test_owners_and_operators_order_and_forged_orders_fail(tmp_path: Path, who: str, *, may: bool) -> None:
    files, walle = Secured(tmp_path), FakeWalle()
    own = files.security(audit_log=str(tmp_path / "walle.jsonl"))
    async with serving(walle.methods(), own) as address, secured_console(files, who, walle=address) as (browser, _):
        assert ("Switch on…" in (await browser.get("/projects/search")).text) == may
        assert ("Operation…" in (await browser.get("/hosts/host-00")).text) == may
        form = {"automation": "healing", "on": "yes", "reason": "x"}
        await browser.submit("/projects/search/automation", form)
        assert ("Nothing was done" in await browser.flash()) == (not may)
        assert bool(walle.orders) == may


async def test_work_on_a_switch_is_one_line_with_its_tasks_and_a_dark_rack_with_its_services() -> None:
    walle, cms = FakeWalle(), FakeCms()
    walle.project.fuse.healing.off = False
    for task in cms.tasks[1:]:
        task.task.group_id = "g"
    walle.incidents = ["rack dc/rack-0: 4 of 12 fail"]
    for number, host in enumerate(walle.hosts[:8:2]):
        host.host.name = f"node-{number}"
        host.host.check.add(name="ssh", failing=True)
    async with (
        serving(walle.methods()) as of_walle,
        serving(cms.methods()) as of_cms,
        cloud(
            walle=of_walle,
            cms=of_cms,
        ) as at,
    ):
        page = (await at.browser.get("/")).text
        titles = re.findall(r"<h2>(?:<a [^>]*>)?([^<]*)", page)
        assert [one for one in titles if "s1-upgrade" in one] == ["s1-upgrade has waited for approval for 20 min"]
        assert not [one for one in titles if one.startswith("reboot of")]
        assert "and 2 things of the same cause" in page
        assert not [one for one in titles if one.startswith("cart:")], titles
        assert "cart: 1 of 4 instances ready" in page


async def test_work_in_waves_shows_each_place_what_failed_and_the_ways_on(at: WithWalle) -> None:
    page = (await at.browser.get("/scenarios/kernel")).text
    assert HOSTILE not in page
    told = html.unescape(re.sub(r"<[^>]+>", "", page))
    assert "10% of all hosts at a time, of one rack. It stops once any failed in the first wave" in told
    places = re.findall(r'<div class="place">.*?</svg>', page, re.DOTALL)
    kinds = [re.findall(r'<(?:rect|path) class="(\w+)"', place) for place in places]
    assert kinds == [["done", "done"], ["failed", "done"], ["wait", "wait"]]
    assert f"kernel panic {HOSTILE}" in told
    assert re.findall(r'data-dialog="(continue|retry|pause)"', page) == ["continue", "retry"]
    await at.browser.submit("/scenarios/kernel/steer", {"steering": "retry", "reason": "new kernel"})
    [(name, sent)] = at.walle.orders
    assert (name, sent.scenario, sent.steering) == ("SteerScenario", "kernel", pb.STEERING_RETRY)


async def test_a_project_says_how_its_repairs_are_bounded(at: WithWalle) -> None:
    page = (await at.browser.get("/projects/search")).text
    assert "Of one host at most 3 within 1 d repairs begin" in page
    assert "once at least 3 hosts and more than 50% of them fail, until at most 25% do" in page
    at.walle.project.project.max_repairs_per_host.pair.add(period_s=7_200, count=5)
    at.walle.project.project.incidents.min_hosts = 8
    page = (await at.browser.get("/projects/search")).text
    assert "Of one host at most 5 within 2 h repairs begin" in page
    assert "once at least 8 hosts" in page
