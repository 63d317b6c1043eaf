"""The use cases of a gateway, put together."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from federated.calls.lists import CountCalls, Lists
from federated.calls.owners import OwnerSearch
from federated.calls.refusals import FederatedRefusals
from federated.calls.single import Single
from federated.calls.watch import FederatedWatches
from federated.calls.writes import Applying, FederatedWrites
from federated.clock import FederatedClock
from federated.followed.followed import FollowedFilters
from federated.locations.locations import Locations
from hqapi.pieces import Pieces

_JSON_BYTES: Final = 64 << 20  # of instances kept as JSON


class FederatedGateway:
    """Everything that a gateway does, over its locations."""

    def __init__(self, locations: Locations, clock: FederatedClock, rng: random.Random, page_bytes: int) -> None:
        pieces = Pieces(_JSON_BYTES)
        self.followed = FollowedFilters(locations, clock, rng, page_bytes, pieces)
        search_lists = Lists(locations, clock, page_bytes, pieces, self.followed.last_list)
        search = OwnerSearch(locations, search_lists, clock)
        self.locations = locations
        self.lists = search_lists
        self.single = Single(locations, search_lists, clock)
        self.counts = CountCalls(locations, clock)
        self.writes = FederatedWrites(locations, search, clock)
        self.applying = Applying(self.writes, search)
        self.refusals = FederatedRefusals(locations, search)
        self.watches = FederatedWatches(locations, clock, rng)

    async def run(self) -> None:
        """Probe locations, and follow what is asked for often, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.locations.run(), name="locations")
            group.create_task(self.followed.run(), name="followed filters")
