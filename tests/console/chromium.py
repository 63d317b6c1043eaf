"""A real Chromium, the system's own: what people see and press."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, Page, async_playwright, expect

FOUND = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(FOUND is None, reason="needs a Chromium (Debian: apt-get install chromium)")
_WAIT_MS = 30_000
expect.set_options(timeout=_WAIT_MS)


@dataclass
class Screen:
    """A page in the browser, and what went wrong on it."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        """Go there, and wait until it is shown."""
        await self.page.goto(self.base + path, wait_until="load")

    async def see(self, text: str) -> None:
        """Wait until the text is on the page."""
        await self.page.get_by_text(text).first.wait_for(state="visible", timeout=_WAIT_MS)

    async def unseen(self, text: str) -> None:
        """Wait until the text is not on the page any more."""
        await self.page.get_by_text(text).first.wait_for(state="hidden", timeout=_WAIT_MS)

    async def is_too_wide(self) -> bool:
        """Whether it must be scrolled sideways."""
        wide: bool = await self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return wide

    async def barriers(self) -> list[str]:
        """What axe-core finds, of any severity."""
        found = await Axe().run(self.page)
        return [
            f"{one['id']} ({one['impact']}): {one['help']}: {one['nodes'][0]['html'][:200]}"
            for one in found.response["violations"]
        ]

    async def dialogs(self) -> list[str]:
        """The ids of the page's own dialogs."""
        found: list[str] = await self.page.evaluate("[...document.querySelectorAll('main dialog')].map(one => one.id)")
        return found

    async def open_dialog(self, name: str) -> None:
        """By its button, if it has one."""
        await self.page.evaluate(
            "name => { const one = document.getElementById(name);"
            " document.querySelector(`[data-dialog='${name}']`)?.click(); one.open || one.showModal(); }",
            name,
        )


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The browser itself."""
    assert FOUND is not None
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=FOUND, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def screen(browser: Browser, base: str, width: int = 1440, **context: Any) -> AsyncIterator[Screen]:
    """One page in a profile of its own; its errors are kept, those of a broken connection excepted."""
    made = await browser.new_context(viewport={"width": width, "height": 900}, **context)
    made.set_default_timeout(_WAIT_MS)
    try:
        shown = Screen(await made.new_page(), base)
        shown.page.on("pageerror", lambda error: shown.faults.append(str(error)))
        shown.page.on("console", lambda said: shown.faults.append(said.text) if _is_fault(said) else None)
        yield shown
    finally:
        await made.close()


def _is_fault(said: Any) -> bool:
    return said.type == "error" and "net::ERR" not in said.text and "status of" not in said.text
