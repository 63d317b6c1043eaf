"""Simulated nodes in a process of their own: `python -m tests.bench.nodes KIND ADDRESS FILE FIRST COUNT INTERVAL`.
ADDRESS: of a replica, or of several with commas between.

KIND `agents`: each node is the host agent's own connection, watch and batches, with supervisors that are no processes.
KIND `direct`: each supervisor has a connection and a watch of its own. FILE has a line for each node: the encoded
reports of its instances in hex. A few connect at a time.

Says `synced` when everybody has a snapshot. From a line on standard input to the next all report as HQ asks them to;
then it says what came of it as JSON.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from contextlib import aclosing
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop

from hqclient.clock import MonotonicClock
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from hqpb.v1 import service_pb2 as pb
from instancectl.hostagent.calls import LINGER_S
from instancectl.hostagent.gathering import Gathering
from instancectl.hostagent.picture import NodeInstances
from instancectl.hostagent.upstream import Upstream, UpstreamError
from serving.clock import SystemClock as ServingClock

_POINTS = 2_000  # of the distribution that is told
_CALL_S = 10.0
_AT_ONCE = 32  # that have no snapshot yet: a server that is slow is not made slower by those who try again


class Tally:
    """What came of the reports."""

    def __init__(self) -> None:
        self.synced, self.failed, self.calls = 0, 0, 0
        self.ms: list[float] = []
        self.why = ""

    def told(self) -> dict[str, Any]:
        self.ms.sort()
        step = max(1, len(self.ms) // _POINTS)
        return {
            "taken": len(self.ms),
            "failed": self.failed,
            "why": self.why,
            "calls": self.calls,
            "ms": [round(ms, 2) for ms in self.ms[step - 1 :: step]],
            "most_ms": self.ms[-1] if self.ms else 0.0,
        }


class Party:
    """One connection with its watch, and the reports that go over it."""

    def __init__(self, address: str, reports: list[bytes], query: dict[str, list[str]], tally: Tally) -> None:
        self.tally, self._reports = tally, reports
        self.upstream = Upstream(address.split(","), Credentials(CredentialFiles()), MonotonicClock(), random.Random())
        self._query = query

    async def follow(self) -> None:
        """Hold the watch."""
        request = pb.WatchInstancesRequest(filter=self._query).SerializeToString()
        async with aclosing(self.upstream.watch(request)) as messages:
            async for message in messages:
                if pb.WatchInstancesResponse.FromString(message).kind == pb.WATCH_KIND_SYNCED:
                    self.tally.synced += 1

    async def report(self, interval_s: float) -> None:
        """Report all when HQ asks, the first time at random."""
        next_s = interval_s * random.random()
        while True:
            await asyncio.sleep(next_s)
            next_s = min(await asyncio.gather(*map(self._one, self._reports)))

    async def _one(self, report: bytes) -> float:
        began = time.perf_counter()
        try:
            next_s = await self.send(report, time.monotonic() + _CALL_S)
        except Exception as error:
            self.tally.failed += 1
            self.tally.why = f"{type(error).__name__}: {error}"
            return 1.0
        self.tally.ms.append((time.perf_counter() - began) * 1000)
        return next_s

    async def send(self, report: bytes, deadline: float) -> float:
        """When to report next."""
        self.tally.calls += 1
        answer = pb.ReportStatusResponse.FromString(await self.upstream.unary("ReportStatus", report, deadline))
        return answer.next_report_in.ToTimedelta().total_seconds()


class Node(Party):
    """A host agent with its supervisors."""

    def __init__(self, address: str, reports: list[bytes], node: str, tally: Tally) -> None:
        super().__init__(address, reports, {}, tally)
        self._picture = NodeInstances(node, self.upstream.watch, MonotonicClock(), random.Random())
        self._gathering = Gathering(self._send_all, self._read, ServingClock(), LINGER_S)
        self._turn = 0

    async def follow(self) -> None:
        following = asyncio.create_task(self._picture.run())
        watch = self._picture.watch((), resumes=False)
        await anext(aiter(watch))
        self.tally.synced += 1
        await following

    async def send(self, report: bytes, deadline: float) -> float:
        self._turn += 1
        placed = await self._gathering.add((str(self._turn), ""), report, deadline)
        error, next_s = placed.result
        if error:
            raise RuntimeError(error)
        return float(next_s)

    async def _send_all(self, request: bytes, deadline: float) -> bytes:
        self.tally.calls += 1
        return await self.upstream.unary("ReportStatuses", request, deadline)

    @staticmethod
    def _read(body: bytes) -> list[Any]:
        answer = pb.ReportStatusesResponse.FromString(body)
        next_s = answer.next_report_in.ToTimedelta().total_seconds()
        return [(result.error.message, next_s) for result in answer.result]


def parties(kind: str, address: str, line: str, tally: Tally) -> list[Party]:
    """The parties of one node."""
    reports = [bytes.fromhex(word) for word in line.split()]
    first = pb.ReportStatusRequest.FromString(reports[0])
    if kind == "agents":
        return [Node(address, reports, first.node, tally)]
    ids = [pb.ReportStatusRequest.FromString(report).instance_id for report in reports]
    return [Party(address, [r], {"instance_id": [i]}, tally) for r, i in zip(reports, ids, strict=True)]


async def follow(party: Party) -> None:
    while True:
        try:
            await party.follow()
        except UpstreamError as failed:
            party.tally.why = f"watch: {failed}"
        await asyncio.sleep(1.0)


async def main(kind: str, address: str, file: str, first: int, count: int, interval_s: float) -> None:
    """Connect, report, tell."""
    tally = Tally()
    with Path(file).open() as lines:
        made = [party for line in islice(lines, first, first + count) for party in parties(kind, address, line, tally)]
    tasks = []
    for number, party in enumerate(made):
        tasks.append(asyncio.create_task(follow(party)))
        while tally.synced <= number - _AT_ONCE:
            await asyncio.sleep(0.01)
    while tally.synced < len(made):
        await asyncio.sleep(0.1)
    print("synced", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    tasks += [asyncio.create_task(party.report(interval_s)) for party in made]
    await asyncio.to_thread(sys.stdin.readline)
    for task in tasks:
        task.cancel()
    print(json.dumps(tally.told()), flush=True)


if __name__ == "__main__":
    kind, address, file, *numbers = sys.argv[1:]
    uvloop.run(main(kind, address, file, int(numbers[0]), int(numbers[1]), float(numbers[2])))
