"""`hq serve --workers 1` and `2`, and how long commands take to start."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil

from tests.bench import load, lookups
from tests.bench.bench import Bench, Side
from tests.bench.load import Shape, Target
from tests.bench.stand import SERVICE, Stand, stand
from tests.bench.stats import Sample
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

GROUP = "processes"
_COMMANDS = (
    ("hqctl get", ["hqctl", "get", "lookup-100.00042"]),
    ("hqctl --help", ["hqctl", "--help"]),
    ("hq --help", ["hq", "--help"]),
    ("hq-federated --help", ["hq-federated", "--help"]),
    ("instancectl --help", ["instancectl", "--help"]),
    ("nanny --help", ["nanny", "--help"]),
    ("python -c pass", ["python", "-c", "pass"]),
)


async def run(bench: Bench) -> None:
    """The group `processes`."""
    async with stand(bench.directory / GROUP, 23_000) as made:
        _start_up(bench, made)
        await _workers(bench, made)


def _start_up(bench: Bench, made: Stand) -> None:
    scripts = Path(sys.executable).parent
    for name, (command, *arguments) in _COMMANDS:
        server = ["--server", made.replicas[0].grpc] if name == "hqctl get" else []
        times_ms = []
        for _ in range(3 if bench.quick else 9):
            began = time.perf_counter()
            words = [str(scripts / command), *arguments, *server]
            subprocess.run(words, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True, timeout=60)
            times_ms.append((time.perf_counter() - began) * 1000)
        bench.fact(GROUP, f"start-up: {name}", times_ms, "ms")


async def _workers(bench: Bench, made: Stand) -> None:
    sides: dict[str, Side] = {}
    web: dict[str, Side] = {}
    request = lookups.of_service(100).request.SerializeToString()
    for count in (1, 2):
        replica = await made.replica("--workers", str(count))
        await eventually(partial(_listen, replica, count))
        pids = [replica.pid, *(child.pid for child in psutil.Process(replica.pid).children())]
        side = "hq" if count == 2 else "1 worker"
        target = Target(replica.grpc, f"{SERVICE}/FindInstances", tuple(pids))
        sides[side] = partial(load.grpc, target, [request], shape=Shape(16, 4))
        page = Target(replica.http, target.path, target.pids)
        web[side] = partial(_http, page, request)
    note = "hq: two workers; load generator, etcd and all workers share two cores"
    await bench.compare(GROUP, "Two workers, Find 100, gRPC", sides, note=note)
    await bench.compare(GROUP, "Two workers, Find 100, proto", web, note=note)


def _listen(replica: ReplicaProcess, count: int) -> bool:
    return replica.log_text().count("listening: gRPC") == count


async def _http(target: Target, request: bytes, seconds: float) -> Sample:
    return await load.http(target, [request], "application/proto", seconds, connections=64)
