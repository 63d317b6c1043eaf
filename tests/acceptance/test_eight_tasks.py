"""Eight tasks in the console of `make cloud TROUBLE=1`, in a real browser, by somebody who begins at Problems.

Counted are clicks and keys. What a person needs for them is estimated by the keystroke-level model of Card, Moran and
Newell: 1.35 s to make up one's mind, 1.1 s to point and 0.2 s to press for each click, 0.28 s for each key. Reading is
not in it. A task is short with three clicks at most, or 30 s.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Locator, expect

from tests.acceptance.test_cloud import a_crashing_canary_stopped_itself, running_cloud
from tests.console.chromium import Screen, chromium, needs_chromium, screen

pytestmark = [needs_chromium, pytest.mark.long, pytest.mark.timeout(600)]
_CLICK_S: Final = 1.35 + 1.1 + 0.2
_KEY_S: Final = 0.28
_MOST_CLICKS: Final = 3
_MOST_S: Final = 30.0


@dataclass
class Person:
    """Somebody before the browser."""

    shown: Screen
    clicks: int = 0
    keys: int = 0

    async def click(self, what: Locator) -> None:
        await what.click()
        self.clicks += 1

    async def press(self, name: str) -> None:
        """The button of the open dialog."""
        await self.click(self.shown.page.locator("dialog[open]").get_by_role("button", name=name, exact=True))

    async def type(self, label: str, text: str) -> None:
        """Into a field of the open dialog; going there is a click unless it has the focus."""
        field = self.shown.page.locator("dialog[open]").get_by_label(label)
        if not await field.evaluate("one => one === document.activeElement"):
            await self.click(field)
        await self.shown.page.keyboard.type(text)
        self.keys += len(text)

    async def open_link(self, name: str | re.Pattern[str]) -> None:
        await self.click(self.shown.page.get_by_role("link", name=name).first)

    async def open_button(self, name: str) -> None:
        await self.click(self.shown.page.get_by_role("button", name=name).first)

    async def unfold(self, text: str) -> None:
        await self.click(self.shown.page.locator("summary", has_text=text).first)

    @property
    def lasts_s(self) -> float:
        return _CLICK_S * self.clicks + _KEY_S * self.keys


async def why_below_its_floor(person: Person) -> None:
    await person.unfold("of the same cause")
    await person.shown.see("web: 50 of 60 instances ready")
    await person.shown.see("heartbeat timeout")


async def what_the_failing_instance_printed(person: Person) -> None:
    await person.unfold("What shop-east-")
    await person.shown.see("cannot open /etc/search/index")


async def since_when_and_what_happened_before(person: Person) -> None:
    await person.unfold("of the same cause")
    await person.open_link(re.compile("^web: 50 of 60"))
    await person.shown.see("What happened before")
    await person.unfold("events, the latest")
    await person.shown.see("heartbeat timeout")


async def who_blocks_the_switch_upgrade(person: Person) -> None:
    await person.open_link(re.compile("^NET-7: work on s-east-r3"))
    await person.shown.see("bob holds 5 instances for power-off")
    await person.shown.see("web is below its floor of 54")


async def edit_a_variable_and_run_it_on_one_instance(person: Person) -> None:
    page = person.shown.page
    await person.open_link("shop: the roll-out failed")
    await person.open_link("Edit HEAD…")
    text = page.locator("#edit-content")
    await text.evaluate("one => { const at = one.value.indexOf(\"'12'\") + 1; one.setSelectionRange(at, at + 2); }")
    person.clicks += 1  # a double click on the number selects it
    await text.focus()
    await page.keyboard.type("9000")
    person.keys += 4
    await person.open_button("Show what changes")
    await person.shown.see("Nanny takes it.")
    await person.open_button("Store and prepare")
    gear = page.get_by_role("button", name="Change the target of shop-west-2")
    row = page.locator("tr", has=page.get_by_role("link", name="shop-west-2"))
    await expect(row).to_contain_text("Prepared", timeout=60_000)  # when preparing begins, it cancels such orders
    await person.click(gear)
    await person.click(page.locator("dialog[open]").get_by_label("Active", exact=True))
    await person.press("Apply")
    await expect(row).to_contain_text("for this one alone")
    await expect(row).to_contain_text("yes", timeout=60_000)


async def freeze_for_the_weekend(person: Person) -> None:
    await person.open_link("Windows")
    await person.open_button("Freeze…")
    await person.type("Why", "weekend")
    await person.press("Freeze")
    await person.shown.see("weekend")
    await person.shown.page.get_by_role("button", name="Delete freeze", exact=False).first.wait_for()


async def switch_a_tripped_fuse_on_with_credits(person: Person) -> None:
    await person.open_link("healing of lab is off")
    await person.open_button("Switch on…")
    await person.type("Credits beyond the limits", "disk=2")
    await person.type("Why", "bad batch")
    await person.press("Switch on")
    await person.shown.see("healing switched on")
    await person.shown.see("Credits: disk")  # two, or fewer: the hosts that wait take them at once


async def roll_back(person: Person) -> None:
    await person.open_link("shop: the roll-out failed")
    await person.open_button("Roll back to this…")
    await person.press("Roll back")
    await person.shown.see("It is handled in order")


_TASKS: Final[tuple[Callable[[Person], Awaitable[None]], ...]] = (
    why_below_its_floor,
    what_the_failing_instance_printed,
    since_when_and_what_happened_before,
    who_blocks_the_switch_upgrade,
    switch_a_tripped_fuse_on_with_credits,
    edit_a_variable_and_run_it_on_one_instance,
    roll_back,
    freeze_for_the_weekend,
)


async def test_each_task_takes_three_clicks_or_half_a_minute(tmp_path: Path) -> None:
    async with running_cloud(tmp_path, "--trouble") as cloud:
        await cloud.shows("Ctrl-C stops everything", 300)
        addresses = dict(re.findall(r"^  (\w+) +(?:gRPC and HTTP )?(127\S+)", cloud.output(), re.MULTILINE))
        await a_crashing_canary_stopped_itself(addresses["nanny"])
        told, long = "", ""
        async with chromium() as browser:
            for task in _TASKS:
                async with screen(browser, f"http://{addresses['console']}") as shown:
                    await shown.open("/")
                    person = Person(shown)
                    try:
                        await task(person)
                    except Exception:
                        await shown.page.screenshot(path=tmp_path / f"{task.__name__}.png", full_page=True)
                        raise
                    line = f"{task.__name__}: {person.clicks} clicks, {person.keys} keys, {person.lasts_s:.0f} s\n"
                    told += line
                    long += line if person.clicks > _MOST_CLICKS and person.lasts_s > _MOST_S else ""
                    assert shown.faults == [], task.__name__
        print(told)
        assert long == ""
