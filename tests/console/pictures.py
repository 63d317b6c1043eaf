"""The screenshots of docs/console.md: `python -m tests.console.pictures docs/console [NAME...]` draws them again.

They show `make cloud`, broken by TROUBLE=1 but for the waves: every server is a process, and what went wrong did so.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

from playwright.async_api import Browser

from tests.acceptance.test_cloud import (
    Running,
    Terminal,
    a_crashing_canary_stopped_itself,
    a_planned_reboot_stops_at_a_bad_kernel,
    running_cloud,
)
from tests.console.chromium import chromium, screen

Scheme = Literal["light", "dark"]
_HEIGHT: Final = 800


class Shot(NamedTuple):
    """A page, or one piece of it, as a file. `link`: followed first, by what its name begins with."""

    name: str
    path: str
    scheme: Scheme = "light"
    width: int = 1200
    piece: str = ""
    link: str = ""


TROUBLE: Final = (
    Shot("problems", "/"),
    Shot("instance", "/services/shop", "dark", link="shop-east-1"),
    Shot("snapshots", "/services/shop/snapshots"),
    Shot("steps", "/services/shop/snapshots", piece="[data-live=rollout] section.card"),
    Shot("task", "/scenarios/NET-7", link="the budgets and who holds them"),
    Shot("hosts", "/hosts"),
    Shot("narrow", "/services/web", "dark", 375),
    Shot("many", "/many/nodes?order=suspend&chosen=north-n06&chosen=north-n07&chosen=north-n01"),
)
WAVES: Final = (Shot("waves", "/scenarios/kernel-6.12", piece="section:has(> h2:text-is('Waves'))"),)


async def draw(folder: Path, names: Sequence[str]) -> None:
    """One file for each of these names; for each picture, if there are none."""
    folder.mkdir(parents=True, exist_ok=True)
    trouble, waves = ([one for one in shots if one.name in names or not names] for shots in (TROUBLE, WAVES))
    if trouble:
        async with _cloud("--trouble") as (cloud, addresses), chromium() as browser:
            await a_crashing_canary_stopped_itself(addresses["nanny"])
            for shot in trouble:
                await _draw(browser, f"http://{addresses['console']}", shot, folder)
    if waves:
        async with _cloud() as (cloud, addresses), chromium() as browser:
            await a_planned_reboot_stops_at_a_bad_kernel(Terminal(cloud.output()))
            for shot in waves:
                await _draw(browser, f"http://{addresses['console']}", shot, folder)


@asynccontextmanager
async def _cloud(*flags: str) -> AsyncIterator[tuple[Running, dict[str, str]]]:
    with tempfile.TemporaryDirectory() as directory:
        async with running_cloud(Path(directory), *flags) as cloud:
            await cloud.shows("Ctrl-C stops everything", 400)
            yield cloud, dict(re.findall(r"^  (\w+) +(?:gRPC and HTTP )?(127\S+)", cloud.output(), re.MULTILINE))


async def _draw(browser: Browser, pages: str, shot: Shot, folder: Path) -> None:
    async with screen(browser, pages, shot.width, color_scheme=shot.scheme) as shown:
        await shown.page.set_viewport_size({"width": shot.width, "height": _HEIGHT})
        await shown.open(shot.path)
        if shot.link:
            await shown.page.get_by_role("link", name=re.compile(f"^{re.escape(shot.link)}")).first.click()
            await shown.page.wait_for_load_state("load")
        what = shown.page.locator(shot.piece).first if shot.piece else shown.page
        await what.screenshot(path=folder / f"{shot.name}.png")


if __name__ == "__main__":
    asyncio.run(draw(Path(sys.argv[1]), sys.argv[2:]))
