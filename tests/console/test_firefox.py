"""The pages in a real Firefox: read, signed in over TLS, live, ordered with the mouse and with the keyboard alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from tests.console.firefox import firefox, needs_firefox
from tests.console.scene import cloud, instance, report
from tests.console.test_every_page import PAGES, STATES, whole_cloud
from tests.console.test_tls import secured

pytestmark = [needs_firefox, pytest.mark.long, pytest.mark.timeout(900)]
_ENTER: Final = "\ue007"  # as WebDriver names the key
_DIALOGS: Final = "[...document.querySelectorAll('main dialog')].map(one => one.id)"
_SHOW: Final = (
    "(name => {{ const one = document.getElementById(name);"
    " document.querySelector(`[data-dialog='${{name}}']`)?.click(); one.open || one.showModal(); }})({})"
)
_IS_TOO_WIDE: Final = "document.documentElement.scrollWidth > innerWidth"


@pytest.mark.parametrize(("width", "is_dark"), [(375, True), (768, False), (1440, False)])
async def test_every_page_and_dialog_is_accessible_and_fits_the_width(width: int, *, is_dark: bool) -> None:
    found: list[str] = []
    async with whole_cloud() as (at, _), firefox(at.base, width, is_dark=is_dark) as shown:
        for path, wanted in (*PAGES.values(), *((path, "HQ") for path in STATES)):
            await shown.open(path)
            assert await shown.run("matchMedia('(prefers-color-scheme: dark)').matches") == is_dark
            assert await shown.run(f"document.body.textContent.includes({json.dumps(wanted)})"), path
            for dialog in ["", *await shown.run(_DIALOGS)]:
                if dialog:
                    await shown.run(_SHOW.format(json.dumps(dialog)))
                found += [f"{path}#{dialog}: {one}" for one in await shown.barriers()]
                found += [f"{path}#{dialog}: is too wide"] if await shown.run(_IS_TOO_WIDE) else []
                if dialog:
                    await shown.run(f"document.getElementById({json.dumps(dialog)}).close()")
        assert shown.faults == []
    assert found == []


async def test_signing_in_works_over_the_consoles_own_tls(tmp_path: Path) -> None:
    async with secured(tmp_path) as (files, console), firefox(console.base) as shown:
        await shown.open("/services")
        await shown.see("Sign in")
        await shown.run("document.querySelector('[name=token]').focus()")
        await shown.press(*files.issuer.token("reader/anna"), _ENTER)
        await shown.see("Sign out")
        await shown.open("/services")
        await shown.see("Sign out")


async def test_a_change_appears_and_an_order_is_given_with_mouse_and_keyboard() -> None:
    async with cloud() as at, firefox(at.base) as shown:
        await shown.open("/")
        await shown.see("cart: 1 of 4 instances ready")
        for number in range(1, 4):
            await report(at.client, instance(f"cart-{number}", "cart", f"node-{number}"), ready=True)
        await shown.until("!document.body.innerText.includes('cart: 1 of 4 instances ready')")
        await shown.open("/nodes/node-0")
        await shown.click("[data-dialog=suspend]")
        await shown.until("document.querySelector('dialog[open] #suspend-reason')")
        await shown.run("document.getElementById('suspend-reason').focus()")
        await shown.press(*"new disks", _ENTER)
        await shown.see("Nothing on node-0 expires for 2 hours")
        assert (await at.client.admin.list_suspensions()).suspensions[0].reason == "new disks"
        await shown.until("document.readyState === 'complete'")
        await shown.press("/")
        await shown.until("document.activeElement.id === 'find'")
        await shown.press(*"web-2", _ENTER)
        await shown.until("location.pathname.endsWith('/instances/test/web-2')")
        assert shown.faults == []
