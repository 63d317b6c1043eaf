"""The screenshots of docs/console.md: `python -m tests.console.pictures docs/console` draws them anew."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Final, Literal

from hqclient import Client
from tests.console.chromium import chromium, screen
from tests.console.fake_cms import FakeCms
from tests.console.fake_walle import FakeWalle
from tests.console.fakes import FakeNanny, serving
from tests.console.scene import cloud, instance, report

Scheme = Literal["light", "dark"]
SHOTS: Final[tuple[tuple[str, str, Scheme, int], ...]] = (
    ("problems", "/", "light", 1200),
    ("instance", "/instances/test/cart-2", "dark", 1200),
    ("snapshots", "/services/web/snapshots", "light", 1200),
    ("task", "/disruptions/reboot-1", "light", 1200),
    ("hosts", "/hosts", "light", 1200),
    ("narrow", "/services/cart", "dark", 375),
)


async def draw(folder: Path) -> None:
    """One file for each."""
    folder.mkdir(parents=True, exist_ok=True)
    nanny = FakeNanny()
    nanny.roll_out(11, failed=1, message="the next batch waits for approval of the CMS")
    async with (
        serving(nanny.methods()) as nannys,
        serving(FakeCms().methods()) as cmss,
        serving(FakeWalle().methods()) as walles,
        cloud(
            nanny=nannys,
            cms=cmss,
            walle=walles,
        ) as at,
        chromium() as browser,
    ):
        await _more(at.client)
        for name, path, scheme, width in SHOTS:
            async with screen(browser, at.base, width, color_scheme=scheme) as shown:
                await shown.page.set_viewport_size({"width": width, "height": 800})
                await shown.open(path)
                await shown.page.screenshot(path=folder / f"{name}.png")


async def _more(client: Client) -> None:
    """Enough to look like a cloud."""
    for service, size in (("api", 24), ("auth", 12), ("search", 40)):
        made = [instance(f"{service}-{n:02}", service, f"node-{n % 8}", ("r7", "r8")) for n in range(size)]
        await client.apply(made)
        for number, one in enumerate(made):
            await report(client, one, ready=not (service == "search" and number % 5 == 0), message="")


if __name__ == "__main__":
    asyncio.run(draw(Path(sys.argv[1])))
