"""A user of the library, as a program: agents report, and somebody looks and follows, until SIGTERM.

However quick what it is run beside was, it ends once it has looked, reported and seen changes more than ENOUGH times.

It is started from either version's tree, so it takes only what both libraries have. The arguments: replicas, separated
by commas, and the ids of the instances that it reports. It prints `begun` when all of them are ready, and at its end
what it saw, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys

from hqclient import Changes, Client, HqApiError, Resync, SnapshotPart, Synced
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb

SERVICE = pb.InstanceFilter(service_id=["svc"])
TRUE = model.CONDITION_STATUS_TRUE
ENOUGH = 20


class OutsideReader:
    """What it saw; `faults` has a line for all that must not be."""

    def __init__(self, client: Client, ids: list[str]) -> None:
        self._client, self._ids = client, ids
        self.lookups = self.reports = self.changes = self.snapshots = 0
        self.faults: list[str] = []

    async def look(self) -> None:
        """Get each instance in turn, and find all."""
        while True:
            try:
                await self._client.get(self._ids[self.lookups % len(self._ids)], timeout_s=15)
                ids = set()
                async for page in self._client.find(SERVICE, timeout_s=15):
                    ids |= {each.meta.id for each in page.instances}
                    not_ready = [each.meta.id for each in page.instances if each.status.ready.status != TRUE]
                    self.faults += [f"not ready: {id_}" for id_ in not_ready if id_ in self._ids]
                self.faults += [f"lost: {id_}" for id_ in set(self._ids) - ids]
            except HqApiError as error:
                self.faults.append(f"a lookup: {error}")
            self.lookups += 1
            await asyncio.sleep(0.02)

    async def report(self, id_: str, begun: asyncio.Event) -> None:
        """Report like an agent: heartbeats, and now and then a change."""
        mine = await self._client.begin_reporting(id_, "r1", node="node-1", timeout_s=30)
        status = model.RevisionStatus(id="r1", incarnation=mine.incarnation)
        status.installed.status = status.ready.status = TRUE
        while True:
            status.sequence += 1
            status.ready.message = f"part {status.sequence // 10}"
            try:
                await self._client.report(id_, status, uid=mine.uid, node="node-1", timeout_s=15)
            except HqApiError as error:
                self.faults.append(f"a report: {error}")
            self.reports += 1
            begun.set()
            await asyncio.sleep(0.3)

    async def follow(self) -> None:
        """One watch for the whole time: one snapshot, then changes."""
        async with self._client.watch(SERVICE) as items:
            async for item in items:
                if isinstance(item, Resync):
                    self.faults.append(f"the watch started over: {item.reason}")
                elif isinstance(item, Synced):
                    self.snapshots = 1
                elif isinstance(item, SnapshotPart) and self.snapshots:
                    self.faults.append("a second snapshot")
                elif isinstance(item, Changes):
                    self.changes += len(item.events)
                    self.faults += [f"deleted: {e.delete.id}" for e in item.events if e.HasField("delete")]

    async def run(self, stop: asyncio.Event) -> None:
        begun = [asyncio.Event() for _ in self._ids]
        tasks = [asyncio.create_task(self.report(*each)) for each in zip(self._ids, begun, strict=True)]
        await asyncio.gather(*(event.wait() for event in begun))
        tasks += [asyncio.create_task(self.look()), asyncio.create_task(self.follow())]
        print("begun", flush=True)
        ends = asyncio.create_task(stop.wait())
        done, _ = await asyncio.wait([*tasks, ends], return_when=asyncio.FIRST_COMPLETED)
        for task in {*tasks} & done:
            self.faults.append(f"ended: {task.exception()!r}")
        while not self.faults and min(self.lookups, self.reports, self.changes) <= ENOUGH:
            await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def main(replicas: str, ids: str) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with Client(replicas.split(",")) as client:
        reader = OutsideReader(client, ids.split(","))
        await reader.run(stop)
    counts = {name: getattr(reader, name) for name in ("lookups", "reports", "changes", "faults")}
    print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
