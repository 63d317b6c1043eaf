"""What the guard of each location does, asked of the location itself: a gateway knows no guards."""

from __future__ import annotations

import asyncio

from hqclient.client import Client, HqApiError
from tools.demo.crews import SETTINGS
from tools.demo.locations import Location

_EVERY_S = 1.0


class GuardWatch:
    """Runs until cancelled.

    Attributes:
        words: by location, what its guard says while it holds expiries back; empty: it does not, or is not known to.
    """

    def __init__(self, locations: dict[str, Location]) -> None:
        self._locations = locations
        self.words = dict.fromkeys(locations, "")

    async def run(self) -> None:
        """Ask every location once a second."""
        async with asyncio.TaskGroup() as tasks:
            for location in self._locations.values():
                tasks.create_task(self._ask(location))

    async def _ask(self, location: Location) -> None:
        async with Client(location.addresses, settings=SETTINGS) as client:
            while True:
                try:
                    guard = (await client.admin.get_guard(timeout_s=1.0)).guard
                    self.words[location.name] = guard.verdict if guard.holding else ""
                except HqApiError:
                    self.words[location.name] = ""
                await asyncio.sleep(_EVERY_S)
