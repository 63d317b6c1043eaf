"""The host agent: all instances of a node in one call."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from clients.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import NewCtl
from tests.clients.instancectl.supervised import NODE, clean_environment, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.scenes import eventually

IDS = ("i-1", "i-2", "i-3")


@asynccontextmanager
async def host_agent(hq: ReplicaProcess, socket: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """`instancectl host-agent` as a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clients.instancectl.main", "host-agent"),
        *("--server", hq.grpc, "--socket", str(socket)),
        env=clean_environment(),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), 45)


async def ready(client: Client, *ids: str) -> bool:
    found = [(await client.get(each)).instance.status.ready.status for each in ids]
    return found == [model.CONDITION_STATUS_TRUE] * len(ids)


async def status(socket: Path) -> list[str]:
    """The lines of `instancectl status --host-agent`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clients.instancectl.main", "status", "--host-agent", str(socket), "--wait", "60"),
        env=clean_environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode().splitlines()


async def beats(client: Client) -> list[int]:
    found = [(await client.get(each)).instance.status.last_heartbeat_time for each in IDS]
    return [one.ToMilliseconds() for one in found]


async def calls(hq: ReplicaProcess, method: str) -> int:
    """How often a call was made, from the replica's metrics."""
    _, text = await hq.get("/metrics")
    lines = [line for line in text.splitlines() if re.search(rf'^hq_calls_total{{.*/{method}"', line)]
    return int(sum(float(line.split()[-1]) for line in lines))


async def test_all_instances_of_a_node_are_reported_in_one_call(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, tmp_path: Path
) -> None:
    socket = tmp_path / "agent.sock"
    ctls = []
    for each in IDS:
        await client.create(instance(revision("r1"), instance_id=each))
        arguments = ("--instance", each, "--node", NODE, "--server", hq.grpc, "--host-agent", str(socket))
        ctls.append(await new_ctl(each, *arguments).start())
    async with host_agent(hq, socket) as agent:
        await eventually(lambda: ready(client, *IDS))
        shown = await status(socket)
        assert [" ".join(line.split()) for line in shown[:4]] == [
            "INSTANCE REVISION NODE INSTALLED READY REPORTED",
            *(f"{each} r1 {NODE} yes yes yes" for each in IDS),
        ]
        assert "reports to HQ, the last one" in shown[-1]
        before, called, began = await beats(client), await calls(hq, "ReportStatuses"), time.monotonic()
        assert called > 0

        async def twice() -> bool:
            return all(now > then + 1500 for now, then in zip(await beats(client), before, strict=True))

        await eventually(twice)
        more = await calls(hq, "ReportStatuses") - called
        assert more <= 3 + (time.monotonic() - began), "one a second, not one for each instance"
        assert await calls(hq, "ReportStatus") == 0

        await ctls[0].kill()

        async def is_silent() -> bool:
            dead, *others = await beats(client)
            return min(others) > dead + 2500

        await eventually(is_silent, what="a supervisor that died falls silent, and nobody else")
        agent.kill()
        await agent.wait()
    async with host_agent(hq, socket):
        before = await beats(client)

        async def taken_up() -> bool:
            return (await beats(client))[2] > before[2]

        await eventually(taken_up)
        assert [(await ctl.status())["fenced"] for ctl in ctls[1:]] == ["", ""]


async def test_of_two_supervisors_of_one_instance_the_later_one_is_heard(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, tmp_path: Path
) -> None:
    socket = tmp_path / "agent.sock"
    await client.create(instance(revision("r1")))
    arguments = ("--instance", "i-1", "--node", NODE, "--server", hq.grpc, "--host-agent", str(socket))
    async with host_agent(hq, socket):
        old = await new_ctl("old", *arguments).start()
        await old.until("r1", "ready")
        pid = await old.section_pid()
        await eventually(lambda: ready(client, "i-1"))
        new = await new_ctl("new", *arguments).start()
        await eventually(lambda: not is_alive(pid))
        assert "took it over" in (await old.status())["fenced"]
        await new.until("r1", "ready")
        assert (await new.status())["fenced"] == ""
