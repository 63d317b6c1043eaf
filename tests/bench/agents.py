"""The agent of a node by the number of its instances: its memory, and what it does while nothing happens.

Programs are real processes (`sleep`), and so is the agent.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from instancectl.processes import procfs
from tests.bench.bench import Bench
from tests.bench.stand import stand
from tests.bench.usage import cpu_s, memory_bytes
from tests.clients.instancectl.host_agents import calls, metric
from tests.clients.instancectl.supervised import NODE, clean_environment, instance, revision
from tests.support.replicas import ReplicaProcess

GROUP: Final = "node"
_COUNTS: Final = (1, 10, 50, 200)
_INTERVAL_S: Final = 10
_READY_S: Final = 300.0
MEMORY_OF_50: Final = "agent's memory with 50 instances"
EACH_FURTHER: Final = "agent's memory for each further instance"
TOGETHER: Final = "instances in a call when quiet, of 200"
CALLS: Final = "calls in an interval when quiet, 200 instances"


async def run(bench: Bench) -> None:
    """The group `node`."""
    times = ("--report-interval", f"{_INTERVAL_S}s", "--liveness-timeout", "600s")
    memory: dict[int, float] = {}
    for count in _COUNTS[:2] if bench.quick else _COUNTS:
        async with stand(bench.directory / f"{GROUP}-{count}", 0, times) as made:
            replica = made.replicas[0]
            async with _agent(replica, bench.directory / f"n{count}", count) as pid:
                memory[count] = memory_bytes(pid) / 1e6
                bench.fact(GROUP, f"agent's memory with {count} instances", [memory[count]], "MB")
                await _measure_quiet(bench, replica, pid, count)
    most, least = max(memory), min(memory)
    bench.fact(GROUP, EACH_FURTHER, [(memory[most] - memory[least]) / (most - least)], "MB")


async def _measure_quiet(bench: Bench, replica: ReplicaProcess, pid: int, count: int) -> None:
    """From one call to the third after it. HQ asks for them up to a tenth sooner than once in an interval."""
    await _wait_for_calls(replica, 1)
    (before, stored), spent, began = await _reports(replica), cpu_s([pid]), time.monotonic()
    await _wait_for_calls(replica, 3)
    seconds = time.monotonic() - began
    await asyncio.sleep(_INTERVAL_S / 2)  # who is late in one of them counts, too
    after, spent = await _reports(replica), cpu_s([pid]) - spent
    sent, stored = after[0] - before, after[1] - stored
    bench.fact(GROUP, f"calls in an interval when quiet, {count} instances", [sent * _INTERVAL_S / seconds], "")
    bench.fact(GROUP, f"instances in a call when quiet, of {count}", [stored / sent], "")
    spent_s = seconds + _INTERVAL_S / 2
    bench.fact(GROUP, f"agent's processor when quiet, {count} instances", [100 * spent / spent_s], "% of a core")


async def _wait_for_calls(replica: ReplicaProcess, more: int) -> None:
    wanted = await calls(replica, "ReportStatuses") + more
    while await calls(replica, "ReportStatuses") < wanted:
        await asyncio.sleep(0.1)


async def _reports(replica: ReplicaProcess) -> tuple[int, int]:
    """The calls that a replica has had, and the heartbeats that it has stored."""
    return await calls(replica, "ReportStatuses"), await metric(replica, "^hq_heartbeats_sent_total")


@asynccontextmanager
async def _agent(replica: ReplicaProcess, directory: Path, count: int) -> AsyncIterator[int]:
    """The pid of an agent whose instances are all ready and have been so for an interval."""
    async with Client([replica.grpc]) as client:
        for number in range(count):
            await client.create(instance(revision("r1"), instance_id=f"i-{number}"))
        arguments = ("--node", NODE, "--dir", str(directory), "--socket", f"{directory}.sock", "--runtime", "plain")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "instancectl.main", "node", "--server", replica.grpc, *arguments),
            env=clean_environment(),
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await _wait_until_ready(client, count)
            await asyncio.sleep(2 * _INTERVAL_S)
            yield process.pid
        finally:
            process.kill()
            await process.wait()
            _end_programs(directory)


async def _wait_until_ready(client: Client, count: int) -> None:
    async with asyncio.timeout(_READY_S):
        while True:
            found = pb.InstanceFilter(service_id=["svc"])
            pages = [page async for page in client.find(found)]
            ready = [each.status.ready.status for page in pages for each in page.instances]
            if ready.count(model.CONDITION_STATUS_TRUE) == count:
                return
            await asyncio.sleep(1)


def _end_programs(directory: Path) -> None:
    """End the programs that the agent left running."""
    for state in directory.glob("*/state.json"):
        owner = json.loads(state.read_text())["owner"]
        for pid in procfs.pids_with_mark(f"{owner}."):
            os.kill(pid, signal.SIGKILL)
