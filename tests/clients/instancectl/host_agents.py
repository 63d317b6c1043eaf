"""The host agent as a process of its own, and what is asked of it."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.supervised import NODE, ROOT, clean_environment
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually


@contextmanager
def short_directory() -> Iterator[Path]:
    """A socket's name has at most 107 bytes, and pytest's own directories are long."""
    with tempfile.TemporaryDirectory(prefix="hq-") as name:
        yield Path(name)


@asynccontextmanager
async def host_agent(
    hq: ReplicaProcess, socket: Path, *more: str, root: Path = ROOT
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`instancectl host-agent` of a source tree as a process of its own, once it listens."""
    log = socket.with_suffix(".log")
    with log.open("ab") as file:
        began = file.tell()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "instancectl.main", "host-agent"),
            *("--server", hq.grpc, "--socket", str(socket), "--node", NODE, *more),
            env=clean_environment(root),
            cwd=root,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=file,
        )
    try:
        await eventually(lambda: "listens at" in log.read_text()[began:], what="the host agent listens")
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 45)


async def status(socket: Path) -> list[str]:
    """The lines of `instancectl status --host-agent`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "instancectl.main", "status", "--host-agent", str(socket), "--wait", "60"),
        env=clean_environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode().splitlines()


async def ready(client: Client, *ids: str) -> bool:
    """Whether HQ says that all of them are ready."""
    found = [(await client.get(each)).instance.status.ready.status for each in ids]
    return found == [model.CONDITION_STATUS_TRUE] * len(ids)


async def heartbeats(client: Client, *ids: str) -> list[int]:
    """When HQ heard of them last, in milliseconds."""
    found = [(await client.get(each)).instance.status.last_heartbeat_time for each in ids]
    return [one.ToMilliseconds() for one in found]


def connections(process: asyncio.subprocess.Process, hq: ReplicaProcess) -> int:
    """How many TCP connections the process has to a replica."""
    own = Path(f"/proc/{process.pid}")
    held = {str(link.readlink()) for link in (own / "fd").iterdir()}
    to_hq = f":{int(hq.grpc.rpartition(':')[2]):04X}"
    rows = [line.split() for line in (own / "net/tcp").read_text().splitlines()[1:]]
    return sum(row[2].endswith(to_hq) and f"socket:[{row[9]}]" in held for row in rows)


async def metric(hq: ReplicaProcess, pattern: str) -> int:
    """The sum of the samples of a replica's metrics that match."""
    _, text = await hq.get("/metrics")
    lines = [line for line in text.splitlines() if re.search(pattern, line) and not line.startswith("#")]
    return int(sum(float(line.split()[-1]) for line in lines))


async def calls(hq: ReplicaProcess, method: str) -> int:
    """How often a call was made."""
    return await metric(hq, rf'^hq_calls_total{{.*/{method}"')
