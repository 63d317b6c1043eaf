"""Many watches of the Python client: `python -m tests.bench.rewatchers ADDRESSES COUNT SERVICE`.

As go/reconnecting.go, each with connections of its own: `synced` when all have their snapshot; told the moment of a
fault to come, how many seconds after it each was back.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import uvloop

from hqclient.client import Client
from hqclient.watch_items import Interrupted, Synced
from hqpb.v1 import service_pb2

_PATIENCE_S = 60.0


class Followers:
    """What the watches went through."""

    def __init__(self) -> None:
        self.synced = self.interruptions = 0
        self.fault_at = 0.0
        self.back_s: list[float] = []

    async def follow(self, addresses: list[str], service: str) -> None:
        """One client with one watch, for ever."""
        where = service_pb2.InstanceFilter(service_id=[service])
        is_synced = is_broken = False
        async with Client(addresses) as client, client.watch(where) as items:
            async for item in items:
                if isinstance(item, Interrupted):
                    self.interruptions += 1
                    is_broken = is_broken or bool(self.fault_at)
                elif isinstance(item, Synced) and not is_synced:
                    is_synced = True
                    self.synced += 1
                elif is_broken:
                    is_broken = False
                    self.back_s.append(time.time() - self.fault_at)


async def main(addresses: list[str], count: int, service: str) -> None:
    """Watch, wait, tell."""
    followers, tasks = Followers(), list[asyncio.Task[None]]()
    for _ in range(count):
        tasks.append(asyncio.create_task(followers.follow(addresses, service)))
        await asyncio.sleep(0.001)
    while followers.synced < count:
        await asyncio.sleep(0.05)
    print("synced", flush=True)
    followers.fault_at = float(await asyncio.to_thread(sys.stdin.readline))
    followers.interruptions = 0
    ends = time.monotonic() + _PATIENCE_S
    while len(followers.back_s) < count and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    print(json.dumps({"back_s": followers.back_s, "streams": followers.interruptions}), flush=True)
    await asyncio.gather(*tasks)  # until it is killed


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1].split(","), int(sys.argv[2]), sys.argv[3]))
