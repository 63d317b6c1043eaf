"""All locations of HQ, and which of them can be relied on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from cms.hqview.location import HqLocationFollower
from cms.ledger.hearing import PATIENCE
from cms.ledger.picture import InstanceIndex
from hqclient import Client
from serving.clock import Clock


class HqFollower:
    """Follows every location.

    Attributes:
        by_name: the locations.
    """

    def __init__(self, clients: Mapping[str, Client], picture: InstanceIndex, clock: Clock) -> None:
        self.moved: Callable[[], None] = lambda: None
        self._picture = picture
        self.by_name = {
            name: HqLocationFollower(name, client, picture, clock, lambda: self.moved())
            for name, client in clients.items()
        }

    async def run(self) -> None:
        """Follow for ever."""
        async with asyncio.TaskGroup() as tasks:
            for location in self.by_name.values():
                tasks.create_task(location.run(), name=location.name)

    def look(self) -> None:
        """Trust the locations that answer."""
        self._believe(name for name, location in self.by_name.items() if not location.doubt())

    async def fence(self, timeout_s: float = 1.0) -> None:
        """Trust the locations that prove that everything they acknowledged is known here."""
        locations = self.by_name.values()
        proven = await asyncio.gather(*(location.fence(timeout_s) for location in locations))
        self._believe(location.name for location, is_proven in zip(locations, proven, strict=True) if is_proven)

    def _believe(self, names: Iterable[str]) -> None:
        intervals = [location.report_interval_s for location in self.by_name.values()]
        if longest_s := max(intervals, default=0.0):
            self._picture.hearing.patience_s = PATIENCE * longest_s
        self._picture.believe(names)
