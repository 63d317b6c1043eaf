"""Many watches of one service in a process of their own: `python -m tests.bench.watchers ADDRESS COUNT SERVICE`.

Says `synced` when all have their snapshot. Told `N` on standard input it waits until every watch got N events (or half
a minute has passed), and says what arrived as JSON. Python, for load generators do not look at what they are sent;
messages stay encoded, and the stamps of every event are found in their bytes.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import grpc
import uvloop

from hqpb.v1 import service_pb2
from tests.bench import raw

STAMP = b"sent at "
STAMP_LENGTH = 17
_CHANNELS = 8


def stamp() -> str:
    """Goes into an annotation of a change."""
    return f"{STAMP.decode()}{time.time():{STAMP_LENGTH}.6f}"


class Watches:
    """What the watches have received."""

    def __init__(self, count: int) -> None:
        self.got = [0] * count
        self.synced = 0
        self.messages = 0
        self.latencies_ms: list[float] = []

    async def follow(self, number: int, channel: grpc.aio.Channel, request: bytes) -> None:
        """One watch, for ever."""
        is_synced = False
        call = raw.stream(channel, "/hq.v1.InstanceService/WatchInstances")(request)
        async for message in call:
            if is_synced:
                self._take(number, message, time.time())
            elif service_pb2.WatchInstancesResponse.FromString(message).kind == service_pb2.WATCH_KIND_SYNCED:
                is_synced = True
                self.synced += 1

    def _take(self, number: int, message: bytes, now: float) -> None:
        at = message.find(STAMP)
        if at >= 0:
            self.messages += 1
        while at >= 0:
            start = at + len(STAMP)
            self.latencies_ms.append((now - float(message[start : start + STAMP_LENGTH])) * 1000)
            self.got[number] += 1
            at = message.find(STAMP, start)


async def main(address: str, count: int, service: str) -> None:
    """Watch, wait, tell."""
    channels = [raw.channel(address) for _ in range(_CHANNELS)]
    watches = Watches(count)
    request = service_pb2.WatchInstancesRequest(filter={"service_id": [service]}).SerializeToString()
    tasks = [asyncio.create_task(watches.follow(i, channels[i % _CHANNELS], request)) for i in range(count)]
    while watches.synced < count:
        await asyncio.sleep(0.05)
    print("synced", flush=True)
    expected = int(await asyncio.to_thread(sys.stdin.readline))
    ends = time.monotonic() + 30
    while min(watches.got) < expected and time.monotonic() < ends:
        await asyncio.sleep(0.1)
    ordered = sorted(watches.latencies_ms)
    told = {
        "least": min(watches.got),
        "most": max(watches.got),
        "messages": watches.messages,
        "latencies_ms": [ordered[int(len(ordered) * q)] for q in (0.5, 0.9, 0.99)] + ordered[-1:],
    }
    print(json.dumps(told), flush=True)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
