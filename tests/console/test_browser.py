"""The pages in a real browser over a real HQ: seen, pressed, wide and narrow, light and dark, live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

import pytest
from playwright.async_api import Browser, expect

from nannypb.v1 import service_pb2 as npb
from tests.console.chromium import chromium, needs_chromium, screen
from tests.console.scene import Cloud, cloud, instance, report
from tests.console.test_every_page import PAGES, STATES, whole_cloud
from tests.support.sample_instances import eventually

_ALL_ISOLATED = (
    "[...document.querySelectorAll('main a, main b, main span, main time, main p, main td, main dd, main pre')]"
    ".every(one => ['isolate', 'plaintext', 'isolate-override'].includes(getComputedStyle(one).unicodeBidi))"
)
pytestmark = [needs_chromium, pytest.mark.long]


@pytest.fixture
async def at() -> AsyncIterator[Cloud]:
    async with cloud() as made:
        yield made


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as made:
        yield made


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 375), ("light", 768), ("dark", 1440)])
async def test_every_page_and_dialog_is_accessible_and_fits_the_width(
    browser: Browser, scheme: Literal["light", "dark"], width: int
) -> None:
    """Every address of the console (test_every_page.py) and each of its dialogs."""
    barriers: list[str] = []
    async with whole_cloud() as (at, _), screen(browser, at.base, width, color_scheme=scheme) as shown:
        for path in (*(path for path, _ in PAGES.values()), *STATES):
            await shown.open(path)
            barriers += [f"{path}: {one}" for one in await shown.barriers()]
            barriers += [f"{path}: is too wide"] if await shown.is_too_wide() else []
            for name in await shown.dialogs():
                await shown.open_dialog(name)
                barriers += [f"{path}#{name}: {one}" for one in await shown.barriers()]
                barriers += [f"{path}#{name}: is too wide"] if await shown.is_too_wide() else []
                await shown.page.keyboard.press("Escape")
        assert shown.faults == []
    assert "\n".join(barriers) == ""


async def test_a_change_appears_without_a_reload(at: Cloud, browser: Browser) -> None:
    async with screen(browser, at.base) as shown:
        await shown.open("/")
        await shown.see("cart: 1 of 4 instances ready")
        await shown.page.evaluate("window.stayed = true")
        for number in range(1, 4):
            await report(at.client, instance(f"cart-{number}", "cart", f"node-{number}"), ready=True)
        await shown.unseen("cart: 1 of 4 instances ready")
        assert await shown.page.evaluate("window.stayed")
        assert shown.faults == []


async def test_an_age_that_grows_highlights_nothing(at: Cloud, browser: Browser) -> None:
    later = (
        "words => { const old = document.querySelector('[data-live=why]');"
        " const mark = 'data-mark=' + words.length;"
        " const html = old.outerHTML.replace(/last report [^;<]*/g, words).replace(/data-mark=.[^ >]*/, mark);"
        " apply(own.page, { why: html });"
        " return document.querySelectorAll('[data-live=why] .changed').length; }"
    )
    async with screen(browser, at.base) as shown:
        await shown.open("/instances/test/web-1")
        await shown.see("last report")
        assert await shown.page.evaluate(later, "last report 19 s ago") == 0
        assert await shown.page.evaluate(later, "last report of nobody") > 0


async def test_ten_tabs_share_one_stream(at: Cloud, browser: Browser) -> None:
    streams = at.console.surroundings.admission
    context = await browser.new_context()
    tabs = [await context.new_page() for _ in range(10)]
    for tab in tabs:
        await tab.goto(at.base + "/services/cart")
    await at.client.apply([instance("cart-new", "cart", "node-1")])
    for tab in tabs:
        await tab.bring_to_front()
        await tab.get_by_text("cart-new").first.wait_for()
    # A tab that comes to the front may have the stream opened anew: the server sees the end of the old one later.
    await eventually(lambda: streams.streams == 1, what="one stream of ten tabs")
    await tabs[0].close()
    await at.client.apply([instance("cart-newer", "cart", "node-1")])
    for tab in tabs[1:]:
        await tab.bring_to_front()
        await tab.get_by_text("cart-newer").first.wait_for()
    await context.close()


async def test_the_focus_stays_where_it_was_when_the_page_changes(at: Cloud, browser: Browser) -> None:
    async with screen(browser, at.base) as shown:
        await shown.open("/services")
        link = shown.page.get_by_role("link", name="web", exact=True)
        await link.focus()
        await at.client.apply([instance("another-1", "another", "node-1")])
        await shown.see("another")
        await expect(shown.page.get_by_role("link", name="web", exact=True)).to_be_focused()


async def test_planned_work_is_ordered_with_the_keyboard_alone(at: Cloud, browser: Browser) -> None:
    async with screen(browser, at.base) as shown:
        await shown.open("/nodes/node-0")
        keys = shown.page.keyboard
        for _ in range(30):
            await keys.press("Tab")
            if await shown.page.evaluate("document.activeElement.dataset.dialog === 'suspend'"):
                break
        await keys.press("Enter")
        await shown.see("Planned work on node-0")
        await keys.press("Escape")
        await shown.unseen("Planned work on node-0")
        await keys.press("Enter")
        await shown.page.get_by_label("Why").focus()
        await keys.type("new disks")
        await keys.press("Enter")
        await shown.see("Nothing on node-0 expires for 2 hours")
        assert (await at.client.admin.list_suspensions()).suspensions[0].reason == "new disks"


async def test_an_order_that_fails_keeps_its_dialog_and_what_was_typed(at: Cloud, browser: Browser) -> None:
    async with screen(browser, at.base) as shown:
        await shown.open("/nodes/node-0")
        await shown.page.get_by_role("button", name="Planned work…").click()
        dialog = shown.page.locator("dialog[open]")
        await dialog.get_by_label("Hours").fill("7")
        await shown.page.evaluate("document.getElementById('suspend-reason').required = false")
        await dialog.get_by_role("button", name="Begin").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("reason: say why")
        await expect(dialog.get_by_label("Why")).to_be_focused()
        await expect(dialog.get_by_label("Hours")).to_have_value("7")
        await dialog.get_by_label("Why").fill("new disks")
        await dialog.get_by_role("button", name="Begin").click()
        await shown.see("Nothing on node-0 expires for 7 hours")
        assert len((await at.client.admin.list_suspensions()).suspensions) == 1


async def test_a_snapshot_is_activated_with_the_keyboard_alone_and_watched(browser: Browser) -> None:
    async with whole_cloud() as (at, nanny), screen(browser, at.base) as shown:
        await shown.open("/services/web/snapshots")
        keys = shown.page.keyboard
        for _ in range(40):
            await keys.press("Tab")
            if await shown.page.evaluate("document.activeElement.dataset.dialog === 'change'"):
                break
        await keys.press("Enter")
        await shown.see("Change target state")
        inner = shown.page.get_by_text("Fill pods configuration")
        await expect(inner).to_be_hidden()
        await shown.page.get_by_label("Present in HQ only").focus()
        await keys.press("Space")
        await expect(inner).to_be_visible()
        await expect(shown.page.locator("[data-choice=PREPARED]")).to_be_hidden()  # it is that already
        await shown.page.get_by_label("Active", exact=False).last.focus()
        await keys.press("Space")
        await expect(inner).to_be_hidden()
        await keys.press("Enter")
        await shown.see("It is handled in order")
        assert [name for name, _ in nanny.orders] == ["SetTarget"]
        nanny.web.snapshot[2].action.location[0].done = 19
        await expect(shown.page.locator(".place .numbers").first).to_have_text("19 of 20")
        assert shown.faults == []


async def test_a_failed_order_is_given_again_from_its_snapshot(browser: Browser) -> None:
    async with whole_cloud() as (at, nanny), screen(browser, at.base) as shown:
        state = nanny.web.snapshot[1]
        state.current, state.target = npb.CURRENT_STATE_PARTIALLY_PREPARED, npb.TARGET_DESTROYED
        await shown.open("/services/web/snapshots")
        await shown.page.get_by_role("button", name="Retry…").click()
        await shown.see("has not become DESTROYED")
        await shown.page.locator("dialog[open]").get_by_role("button", name="Retry").click()
        await shown.see("It is handled in order")
        [(name, sent)] = nanny.orders
        assert (name, sent.snapshot_id, sent.target) == ("SetTarget", state.snapshot_id, npb.TARGET_DESTROYED)
        assert shown.faults == []


async def test_rows_are_marked_planned_and_ordered_and_stay_marked_when_the_page_changes(
    at: Cloud, browser: Browser
) -> None:
    async with screen(browser, at.base) as shown:
        await shown.open("/nodes?sort=name")
        await shown.page.get_by_label("Choose node-1").check()
        await shown.page.get_by_label("Choose node-3").check()
        await at.client.apply([instance("late-1", "late", "node-9")])
        await shown.see("node-9")
        await expect(shown.page.locator("[name=chosen]:checked")).to_have_count(2)
        await shown.page.get_by_role("button", name="Show what it would do").click()
        await shown.see("For 2 of 2 nodes.")
        await shown.page.get_by_label("Why").fill("new switch")
        await shown.page.get_by_role("button", name="Order it for 2 nodes").click()
        await shown.see("Begin planned work: done for 2 nodes.")
        held = (await at.client.admin.list_suspensions()).suspensions
        assert sorted(one.node_name for one in held) == ["node-1", "node-3"]
        await shown.page.get_by_label("Choose all of this page").check()
        await expect(shown.page.locator("[name=chosen]:checked")).to_have_count(5)
        assert shown.faults == []


async def test_a_snapshot_that_failed_is_activated_only_after_a_second_confirmation(browser: Browser) -> None:
    async with whole_cloud() as (at, nanny), screen(browser, at.base) as shown:
        await shown.open("/services/web/snapshots")
        element = shown.page.locator("li.snapshot").filter(has_text="3 failed, 2 allowed")
        await element.get_by_role("button", name="Change…").click()
        dialog = shown.page.locator("dialog[open]")
        again = dialog.get_by_label("Activate it although it failed")
        await expect(again).to_be_hidden()
        await dialog.locator("input[value=ACTIVE]").check()
        await dialog.get_by_role("button", name="Apply").click()
        await expect(again).to_be_visible()
        assert nanny.orders == []
        await again.check()
        await dialog.get_by_role("button", name="Apply").click()
        await shown.see("It is handled in order")
        [(name, sent)] = nanny.orders
        assert (name, sent.target) == ("SetTarget", npb.TARGET_ACTIVE)
        assert shown.faults == []


async def test_keys_are_listed_and_lead_through_the_pages_of_a_list(at: Cloud, browser: Browser) -> None:
    await at.client.apply([instance(f"many-{n:03}", f"many-{n:03}", "node-9") for n in range(150)])
    async with screen(browser, at.base) as shown:
        await shown.open("/services?sort=name")
        while not await shown.page.locator("a[rel=next]").count():
            await shown.open("/services?sort=name")
        keys = shown.page.keyboard
        await keys.press("?")
        await shown.see("the next page of a list")
        assert await shown.barriers() == []
        await keys.press("Escape")
        await shown.unseen("the next page of a list")
        # What had the focus loses it with the next frame; until then keys are the closed dialog's.
        await shown.page.wait_for_function("!document.activeElement?.closest('dialog')")
        await keys.press("n")
        await shown.page.wait_for_url("**/services?sort=name&from=101")
        await keys.press("p")
        await shown.page.wait_for_url("**/services?sort=name")
        assert shown.faults == []


@pytest.mark.parametrize("key", ["/", "Control+k"])
async def test_a_key_goes_to_the_search(at: Cloud, browser: Browser, key: str) -> None:
    async with screen(browser, at.base) as shown:
        await shown.open("/services")
        await shown.page.keyboard.press(key)
        await shown.page.keyboard.type("web-2")
        await shown.page.keyboard.press("Enter")
        await shown.page.wait_for_url("**/instances/test/web-2")


async def test_pages_can_be_read_without_javascript(at: Cloud, browser: Browser) -> None:
    async with screen(browser, at.base, java_script_enabled=False) as shown:
        await shown.open("/")
        await shown.see("cart: 1 of 4 instances ready")
        await shown.page.get_by_role("link", name="cart: 1 of 4 instances ready").click()
        await shown.see("GET /ping answered 503")


async def test_a_hostile_text_runs_nothing(at: Cloud, browser: Browser) -> None:
    async with screen(browser, at.base) as shown:
        shouted: list[str] = []
        shown.page.on("dialog", lambda dialog: shouted.append(dialog.message))
        for path in ("/services/evil", "/instances/test/evil-1", "/nodes/node-0", "/instances"):
            await shown.open(path)
            await asyncio.sleep(0)
            assert await shown.page.evaluate(_ALL_ISOLATED), path
        assert await shown.page.locator("main img").count() == 0
        assert shouted == []
        assert shown.faults == []


async def test_a_page_says_when_the_console_is_away_and_goes_on_when_it_is_back(browser: Browser) -> None:
    async with cloud() as at, screen(browser, at.base) as shown:
        await shown.open("/services/cart")
        await shown.page.wait_for_load_state("load")
        await expect(shown.page.locator("#stale")).to_be_hidden()
        await at.console.stop()
        await shown.see("The console does not answer: this page shows the state of")
        await at.console.start()
        await at.client.apply([instance("cart-late", "cart", "node-1")])
        await shown.see("cart-late")
        await expect(shown.page.locator("#stale")).to_be_hidden()
