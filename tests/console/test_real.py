"""A service's life on its pages, in a real browser over real servers: rolled out, paused, changed, rolled back."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from playwright.async_api import Page, expect

from nannypb.v1 import service_pb2 as npb
from nannypb.v1.service_stubs import NannyServiceStub
from tests.console.chromium import Screen, chromium, needs_chromium, screen
from tests.console.real import call_until_taken, everything
from tests.support.sample_instances import eventually
from wallepb.v1 import host_pb2 as hpb
from wallepb.v1 import service_pb2 as wpb
from wallepb.v1.service_stubs import WalleServiceStub

pytestmark = [needs_chromium, pytest.mark.long, pytest.mark.timeout(600)]

CONTENT = """
service: site
instances:
  - {{id: site-1, node: node-a, allocation: {{host: 127.0.0.1, ports: {{http: 8081}}}}}}
  - {{id: site-2, node: node-b, allocation: {{host: 127.0.0.1, ports: {{http: 8082}}}}}}
revisions:
  - id: {title}
    container: [{{name: web, command: [serve, {title}]}}]
"""


async def test_a_service_is_rolled_out_paused_changed_and_rolled_back_on_its_page() -> None:
    async with everything() as at, chromium() as browser, grpc.aio.insecure_channel(at.nanny) as channel:
        nanny = NannyServiceStub(channel)
        info = npb.InfoAttributes(rollout=npb.RolloutPolicy(min_ready_s=0, soak_s=0, max_unavailable="1"))
        await call_until_taken(nanny.CreateService, npb.CreateServiceRequest(service_id="site", info=info))
        first = await _snapshot(nanny, "v1")
        async with screen(browser, at.browser.base) as shown:
            await shown.open("/services/site/snapshots")
            await _change(shown.page, first, "Active")
            await _becomes(shown, first, "ACTIVE")
            await expect(shown.page.locator(".state-line")).to_contain_text("Online", timeout=30_000)

            second = await _snapshot(nanny, "v2")
            await shown.see(second[:12])
            await _press(shown.page, "Pause actions", "look first")
            await shown.see("look first")
            await _change(shown.page, second, "Active")
            await shown.page.get_by_role("button", name="Resume actions").click()
            await shown.page.locator("dialog[open]").get_by_role("button", name="Resume actions").click()
            await _becomes(shown, second, "ACTIVE")
            await _becomes(shown, first, "PREPARED")

            await shown.page.get_by_role("link", name=first[:12]).click()
            await shown.see("What activating it would change")
            await shown.page.get_by_role("link", name="Snapshots").click()
            way_back = shown.page.locator("li.snapshot").filter(has=shown.page.get_by_text("Roll back to this…"))
            await expect(way_back).to_contain_text(first[:12])
            await way_back.get_by_role("button", name="Roll back to this…").click()
            dialog = shown.page.locator("dialog[open]")
            await expect(dialog.get_by_role("heading")).to_contain_text(f"Roll site back to {first[:12]}")
            await expect(dialog).to_contain_text(f"Active now: {second[:12]}")
            await dialog.get_by_role("button", name="Roll back").click()
            await _becomes(shown, first, "ACTIVE")
            await shown.open("/services/site")
            await shown.see("complete")
            assert shown.faults == []


async def test_every_page_shows_what_the_real_servers_say() -> None:
    async with everything() as at, grpc.aio.insecure_channel(at.walle) as channel:
        walle = WalleServiceStub(channel)
        project = wpb.CreateProjectRequest()
        project.project.id = "search"
        await call_until_taken(walle.CreateProject, project)
        host = wpb.AddHostRequest(host="node-a", project="search", state=hpb.HOST_STATE_FREE)
        host.location.dc, host.location.rack, host.location.switch = "dc", "rack-1", "s1"
        await call_until_taken(walle.AddHost, host)  # orders take effect in order; the project comes first
        await call_until_taken(walle.GetHost, wpb.GetHostRequest(host=host.host))
        pages = {
            "/": "of 1 location fresh",
            "/disruptions": "Budgets",
            "/plan?hosts=node-a": "Plan work on hosts",
            "/hosts": "rack-1",
            "/hosts/node-a": "No check ever failed here",
            "/projects": "search",
            "/projects/search": "it would not trip",
            "/scenarios": "No planned work",
        }
        for path, text in pages.items():

            async def is_shown(path: str = path, text: str = text) -> bool:
                """Not before each has read its store: until then the console says that it does not answer."""
                page = await at.browser.get(path)
                return page.status_code == 200 and text in page.text and "does not answer" not in page.text

            await eventually(is_shown, what=f"{path} shows {text}")


async def _snapshot(nanny: Any, title: str) -> str:
    content = CONTENT.format(title=title).encode()
    made = await call_until_taken(nanny.CreateSnapshot, npb.CreateSnapshotRequest(service_id="site", content=content))
    return str(made.snapshot.id)


async def _change(page: Page, snapshot: str, target: str) -> None:
    element = page.locator("li.snapshot").filter(has_text=snapshot[:12])
    await element.get_by_role("button", name="Change…").click()
    dialog = page.locator("dialog[open]")
    await dialog.get_by_text(target, exact=True).click()
    await dialog.get_by_role("button", name="Apply").click()
    await page.get_by_text(f"{snapshot[:12]} becomes").wait_for()


async def _press(page: Page, button: str, why: str) -> None:
    await page.get_by_role("button", name=button).click()
    dialog = page.locator("dialog[open]")
    await dialog.get_by_label("Why").fill(why)
    await dialog.get_by_role("button", name=button).click()


async def _becomes(shown: Screen, snapshot: str, state: str) -> None:
    element = shown.page.locator("li.snapshot").filter(has_text=snapshot[:12])
    await expect(element.locator(".current .state").first).to_have_text(
        f"● {state}" if state == "ACTIVE" else f"▪ {state}", timeout=30_000
    )
