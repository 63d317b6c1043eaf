"""Host agents with their supervisors against one replica, and supervisors that go there directly.

`HOSTAGENTS=10000x20` says how many host agents, and with how many instances each (as a population has: 20); default
1,000. Connections and watches are real, the processes of the supervisors are not (`nodes.py`).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tests.bench.bench import Bench
from tests.bench.machine import ROOT
from tests.bench.population import report_of
from tests.bench.stand import Stand, stand
from tests.bench.stats import percentile
from tests.bench.usage import cpu_s, memory_bytes
from tests.support.replicas import ReplicaProcess

GROUP = "hostagents"
_EACH = 20  # instances of a node, as a population has
_PROCESSES = 3
_INTERVAL_S, _TIMEOUT_S = 60, 600  # a third of the default: three times the reports of as many instances
_MOST_PORTS = 27_000  # of this machine's, to one address
_SPARE_FILES = 1_500
_SYNC_S = 400.0  # well below the timeout: nobody reports until all are connected


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who connects: so many nodes of a kind, or supervisors."""

    kind: str
    name: str
    nodes: int
    connections: int


async def run(bench: Bench) -> None:
    """The group `hostagents`."""
    wanted = os.environ.get("HOSTAGENTS", "100x20" if bench.quick else "1000x20")
    nodes, each = (int(word) for word in wanted.split("x"))
    if each != _EACH:
        raise ValueError(f"HOSTAGENTS={wanted}: a node of the population has {_EACH} instances")
    most = min(_MOST_PORTS, raise_open_files() - _SPARE_FILES)
    direct = min(nodes * each, most) // each
    crowds = [
        Crowd("agents", f"{nodes:,} host agents with {each} instances each", nodes, nodes),
        Crowd("direct", f"{direct * each:,} supervisors going directly", direct, direct * each),
    ]
    async with stand((bench.kept or bench.directory) / f"{GROUP}-{nodes}", nodes * each, replicas=0) as made:
        file = made.directory / "reports"
        if not file.exists():
            await asyncio.to_thread(write_reports, made, file)
        for crowd in crowds:
            await _measure(bench, made, file, crowd)


def raise_open_files() -> int:
    """Raise the limit of open files to the machine's; the replica inherits it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def write_reports(made: Stand, file: Path) -> None:
    population = iter(made.population)
    part = file.with_suffix(".part")
    with part.open("w") as out:
        while node := list(islice(population, _EACH)):
            out.write(" ".join(report_of(stored).SerializeToString().hex() for stored in node) + "\n")
    part.rename(file)


async def _measure(bench: Bench, made: Stand, file: Path, crowd: Crowd) -> None:
    most = str(crowd.connections + 1_000)
    limits = ("connections", "connections-per-peer", "streams", "streams-per-peer")
    flags = [word for limit in limits for word in (f"--max-{limit}", most)]
    times = ("--report-interval", f"{_INTERVAL_S}s", "--liveness-timeout", f"{_TIMEOUT_S}s")
    replica = await made.replica(*flags, *times, until_ready=False)
    async with asyncio.timeout(_SYNC_S):
        while (await replica.get("/readyz"))[0] != 200:
            await asyncio.sleep(0.1)
    await asyncio.sleep(2)
    empty = memory_bytes(replica.pid)
    async with node_processes(replica.grpc, file, crowd.kind, crowd.nodes) as processes:
        await read_lines(processes, "synced", _SYNC_S)
        bench.fact(GROUP, f"{crowd.name}: memory of the replica for each connection and watch",
                   [(memory_bytes(replica.pid) - empty) / crowd.connections / 1024], "KiB")  # fmt: skip
        idle = await _usage(replica, made, 10.0)
        _tell(processes)
        seconds = _INTERVAL_S * (0.5 if bench.quick else 2.2)
        busy = await _usage(replica, made, seconds)
        _tell(processes)
        told = [json.loads(line) for line in await read_lines(processes, "{", 120.0)]
    _note(bench, crowd, told, seconds, idle, busy)
    bench.fact(GROUP, f"{crowd.name}: memory of the replica", [memory_bytes(replica.pid) / 1e6], "MB")
    bench.fact(GROUP, f"{crowd.name}: expired", [await _expired(replica)], "")
    await replica.kill()


def _note(
    bench: Bench, crowd: Crowd, told: list[dict[str, Any]], seconds: float, idle: list[float], busy: list[float]
) -> None:
    ms = sorted(ms for part in told for ms in part["ms"])
    taken, failed = sum(part["taken"] for part in told), sum(part["failed"] for part in told)
    facts = {
        "heartbeats acknowledged": (taken / seconds, "/s"),
        "calls that carried them": (sum(part["calls"] for part in told) / seconds, "/s"),
        "p50": (percentile(ms, 0.5), "ms"),
        "p99": (percentile(ms, 0.99), "ms"),
        "slowest": (max(part["most_ms"] for part in told), "ms"),
        "failed": (failed, ""),
        "replica's processor, watches alone": (idle[0], "% of a core"),
        "replica's processor": (busy[0], "% of a core"),
        "etcd's processor": (busy[1], "% of a core"),
    }
    for name, (value, unit) in facts.items():
        bench.fact(GROUP, f"{crowd.name}: {name}", [value], unit)
    for why in {part["why"] for part in told if part["why"]}:
        bench.say(f"{GROUP:10} {crowd.name}: {why}")


async def _usage(replica: ReplicaProcess, made: Stand, seconds: float) -> list[float]:
    """Percent of a core of the replica and of etcd, over so many seconds."""
    pids = ([replica.pid], [made.etcd.process.pid])
    before = [cpu_s(one) for one in pids]
    await asyncio.sleep(seconds)
    return [100 * (cpu_s(one) - spent) / seconds for one, spent in zip(pids, before, strict=True)]


async def _expired(replica: ReplicaProcess) -> float:
    _, text = await replica.get("/metrics")
    return sum(float(value) for value in re.findall(r"^hq_expiries_total\S* (\S+)$", text, re.MULTILINE))


@asynccontextmanager
async def node_processes(
    addresses: str, file: Path, kind: str, nodes: int
) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Run so many nodes against these replicas (comma-separated) in a few processes; FILE has their reports."""
    share = -(-nodes // _PROCESSES)
    processes = []
    try:
        for first in range(0, nodes, share):
            count = min(share, nodes - first)
            numbers = (str(first), str(count), str(_INTERVAL_S))
            processes.append(
                await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "tests.bench.nodes", kind, addresses, str(file), *numbers),
                    cwd=ROOT,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    limit=1 << 22,
                )
            )
        yield processes
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def read_lines(processes: list[asyncio.subprocess.Process], begins: str, timeout_s: float) -> list[str]:
    """The next line of each."""
    lines = []
    async with asyncio.timeout(timeout_s):
        for process in processes:
            assert process.stdout is not None
            line = (await process.stdout.readline()).decode()
            if not line.startswith(begins):
                raise RuntimeError(f"a process of nodes said {line!r} instead of {begins!r}")
            lines.append(line)
    return lines


def _tell(processes: list[asyncio.subprocess.Process]) -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
