"""Python's collector of garbage, told what a replica's memory is like: a mountain that stays, and short-lived calls.

The instances are no garbage for as long as they are served, yet every full collection would walk through all of
them: a pause of a second for a million. So what is there when a replica has loaded is taken out of collections
(freeze), and the young are looked at less often than by default. What is in no circle goes at once, frozen or not.
"""

from __future__ import annotations

import asyncio
import gc

_THRESHOLDS = (50_000, 20, 100)  # allocations beyond what was freed; collections of the young; of the middle-aged


def relax() -> None:
    """For this process, from now on: collect less often."""
    gc.set_threshold(*_THRESHOLDS)


async def freeze_each_time(loaded: asyncio.Event) -> None:
    """Take everything out of collections whenever `loaded` is set anew; for ever."""
    while True:
        await loaded.wait()
        gc.freeze()
        while loaded.is_set():
            await asyncio.sleep(1.0)


__all__ = ["freeze_each_time", "relax"]
