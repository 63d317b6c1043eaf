"""Follows services by Python's client: `python -m tests.bench.following ADDRESS SERVICE...`.

The same as go/following.go.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from functools import partial

from hqclient import Discovery


async def follow(address: str, services: Sequence[str]) -> None:
    """Print how many endpoints there are, with every change of the number; for ever."""
    async with Discovery([address]).services(services, port="http") as found:
        counts = dict.fromkeys(services, 0)
        total = 0

        def count(service: str, _changes: object = None) -> None:
            nonlocal total
            before, now = counts[service], len(found[service].endpoints)
            if now != before:
                counts[service], total = now, total + now - before
                print(total, flush=True)

        for service in services:
            found[service].on_change(partial(count, service))
            count(service)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(follow(sys.argv[1], sys.argv[2:]))
