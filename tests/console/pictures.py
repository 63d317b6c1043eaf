"""The screenshots of docs/console.md: `python -m tests.console.pictures docs/console` draws them again.

They show `make cloud TROUBLE=1`: every server is a process of its own, and what went wrong did go wrong.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal, NamedTuple

from playwright.async_api import Browser

from tests.acceptance.test_cloud import Running, Terminal, a_crashing_canary_stopped_itself, running_cloud
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


async def draw(folder: Path) -> None:
    """One file for each."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        async with running_cloud(Path(directory), "--trouble") as cloud, chromium() as browser:
            await cloud.shows("Ctrl-C stops everything", 400)
            addresses = dict(re.findall(r"^  (\w+) +(?:gRPC and HTTP )?(127\S+)", cloud.output(), re.MULTILINE))
            await a_crashing_canary_stopped_itself(addresses["nanny"])
            pages = f"http://{addresses['console']}"
            for shot in TROUBLE:
                await _draw(browser, pages, shot, folder)
            await _stop_at_a_bad_kernel(cloud)
            for shot in WAVES:
                await _draw(browser, pages, shot, folder)


async def _draw(browser: Browser, pages: str, shot: Shot, folder: Path) -> None:
    async with screen(browser, pages, shot.width, color_scheme=shot.scheme) as shown:
        await shown.page.set_viewport_size({"width": shot.width, "height": _HEIGHT})
        await shown.open(shot.path)
        if shot.link:
            await shown.page.get_by_role("link", name=re.compile(f"^{re.escape(shot.link)}")).first.click()
            await shown.page.wait_for_load_state("load")
        what = shown.page.locator(shot.piece).first if shot.piece else shown.page
        await what.screenshot(path=folder / f"{shot.name}.png")


async def _stop_at_a_bad_kernel(cloud: Running) -> None:
    """Once the rack is back and nobody holds a host, the reboots begin, and stop at a host that does not boot."""
    terminal = Terminal(cloud.output())
    for file in (cloud.data / "broken").iterdir():
        file.unlink(missing_ok=True)
    await terminal.ends("hqctl disruptions done move-east-n10")
    await terminal.ends("walle scenarios cancel NET-7")
    touch, add, get = terminal.commands(7)
    await terminal.ends(touch)
    await terminal.ends(add)
    await terminal.tells(get, "stopped: 1 of 2 failed: east-n12")


if __name__ == "__main__":
    asyncio.run(draw(Path(sys.argv[1])))
