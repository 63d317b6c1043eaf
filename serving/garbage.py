"""Python's collector of garbage, told what a server's memory is like: much that stays, and short-lived calls.

What a server has loaded is no garbage for as long as it is served, yet every full collection would walk through all
of it: a pause of a second for a million instances. So that is taken out of collections (freeze). What is in no
circle goes at once, frozen or not.
"""

from __future__ import annotations

import asyncio
import gc

# Allocations beyond what was freed; collections of the young; of the middle-aged. Every object is looked at once
# on its way up, so a lower first number is no more work: pauses are shorter, and less garbage lies about.
_THRESHOLDS = (10_000, 20, 500)


def relax() -> None:
    """For this process, from now on: look less often at what has grown old."""
    gc.set_threshold(*_THRESHOLDS)


def freeze() -> None:
    """Take everything that is there and no garbage out of collections: milliseconds once a process has started."""
    gc.collect()
    gc.freeze()


async def freeze_each_time(loaded: asyncio.Event) -> None:
    """Take everything out of collections whenever `loaded` is set anew, for ever. Collects nothing: that would last."""
    while True:
        await loaded.wait()
        gc.freeze()
        while loaded.is_set():
            await asyncio.sleep(1.0)


__all__ = ["freeze", "freeze_each_time", "relax"]
