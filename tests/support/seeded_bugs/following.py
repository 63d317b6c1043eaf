"""Bugs in following the store: gaps, restarts, restores."""

from __future__ import annotations

import asyncio

import pytest

from hq.store_events import StoreEvents
from store.epoch import Epoch
from store.follow import StoreFollower
from store.listing import Difference
from store.port import Batch
from store.proof import Proof
from tests.support.seeded_bugs import scenes
from tests.support.seeded_bugs.bug import bug

Patch = pytest.MonkeyPatch


@bug("What was deleted while history was compacted stays in memory.", "CONVERGED", scenes.gap)
def deletions_lost_in_a_gap(patch: Patch) -> None:
    patch.setattr(Difference, "deletions", lambda _, revision: iter(()))


@bug("Memory is never compared with the store.", "GHOST", scenes.compacted_by_a_stranger)
def memory_not_compared(patch: Patch) -> None:
    patch.setattr(Proof, "run", forever)


async def forever(_: Proof) -> None:
    await asyncio.Event().wait()


@bug("A watch on the store that ended is opened again at the head.", "CONVERGED", scenes.gap)
def reopened_at_the_head(patch: Patch) -> None:
    patch.setattr(Proof, "run", forever)  # which would mend it
    once = StoreFollower._follow_once

    async def skipping(self: StoreFollower) -> None:
        if self.applied:
            _, self.applied = await self._store.get(self._keys.epoch)
        await once(self)

    patch.setattr(StoreFollower, "_follow_once", skipping)


@bug(
    "A watch on the store that ended is opened again too early, and old events are taken for news.",
    "UNIQUE",
    scenes.gap,
)
def old_events_again(patch: Patch) -> None:
    once = StoreFollower._follow_once

    async def repeating(self: StoreFollower) -> None:
        self.applied = max(0, self.applied - 4)
        await once(self)

    patch.setattr(StoreFollower, "_follow_once", repeating)


@bug("Watches go on over a gap in history without being told of a difference.", "COMPLETE", scenes.gap)
def gap_not_told(patch: Patch) -> None:
    apply = StoreEvents.apply

    def quiet(self: StoreEvents, batch: Batch, *, collapsed: bool) -> None:
        if not collapsed:
            apply(self, batch, collapsed=False)
            return
        self._cache.apply(batch, collapsed=True)
        self._fanout.version = batch.revision

    patch.setattr(StoreEvents, "apply", quiet)


@bug("The epoch stays the same when the store was restored.", "GENUINE", scenes.restored)
def epoch_survives_a_restore(patch: Patch) -> None:
    async def same(self: Epoch) -> None:
        await self.settle()

    patch.setattr(Epoch, "on_history_changed", same)
