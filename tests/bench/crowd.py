"""Many watches of one instance each, in a process of their own: `python -m tests.bench.crowd ADDRESS FILE CONNECTIONS
BOOKMARK_S`. FILE has an id for each watch, one a line.

Says `synced` when all have their snapshot. From one line on standard input to the next it counts, and says then as
JSON what came: messages, and how late each stamped change was (`watchers.py`).
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop

from hqpb.v1 import service_pb2
from serving.transport.client import Channel
from tests.bench.watchers import STAMP, STAMP_LENGTH

_AT_ONCE = 500  # that have no snapshot yet


class Crowd:
    """What the watches have received."""

    def __init__(self) -> None:
        self.synced = self.messages = 0
        self.late_ms: list[float] = []

    async def follow(self, channel: Channel, instance_id: str, bookmark_s: int) -> None:
        """One watch, for ever."""
        request = service_pb2.WatchInstancesRequest(filter={"instance_id": [instance_id]})
        request.bookmark_interval.seconds = bookmark_s
        is_synced = False
        async for message in channel.stream("/hq.v1.InstanceService/WatchInstances", request.SerializeToString()):
            if is_synced:
                self._take(message)
            elif service_pb2.WatchInstancesResponse.FromString(message).kind == service_pb2.WATCH_KIND_SYNCED:
                is_synced = True
                self.synced += 1

    def _take(self, message: bytes) -> None:
        self.messages += 1
        if (at := message.find(STAMP)) >= 0:
            start = at + len(STAMP)
            self.late_ms.append((time.time() - float(message[start : start + STAMP_LENGTH])) * 1000)


def _check(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Raises what one of them ended with."""
    for task in tasks:
        if task.done():
            task.result()


async def main(address: str, file: str, connections: int, bookmark_s: int) -> None:
    """Watch, count, tell."""
    crowd, tasks = Crowd(), list[asyncio.Task[None]]()
    channels = [Channel(address) for _ in range(connections)]
    for number, instance_id in enumerate(Path(file).read_text().split()):
        while crowd.synced <= number - _AT_ONCE:
            await asyncio.sleep(0.005)
            _check(tasks[crowd.synced :])
        tasks.append(asyncio.create_task(crowd.follow(channels[number % connections], instance_id, bookmark_s)))
    while crowd.synced < len(tasks):
        await asyncio.sleep(0.05)
        _check(tasks)
    print("synced", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        crowd.messages, crowd.late_ms = 0, []
        await asyncio.to_thread(sys.stdin.readline)
        print(json.dumps({"messages": crowd.messages, "late_ms": sorted(crowd.late_ms)}), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
