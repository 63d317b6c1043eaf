"""The host agent: everything of a node over one connection, told and asked by each supervisor for its own instance."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.clients.instancectl.conftest import NewCtl
from tests.clients.instancectl.host_agents import (
    calls,
    connections,
    heartbeats,
    host_agent,
    metric,
    ready,
    short_directory,
    status,
)
from tests.clients.instancectl.supervised import NODE, Ctl, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

IDS = ("i-1", "i-2", "i-3")


@pytest.fixture
def socket() -> Iterator[Path]:
    """Where the host agent listens."""
    with short_directory() as directory:
        yield directory / "agent.sock"


async def supervisor(new_ctl: NewCtl, socket: Path, instance_id: str, *more: str, name: str = "") -> Ctl:
    """A supervisor that knows no way to HQ but the host agent."""
    arguments = ("--instance", instance_id, "--node", NODE, "--host-agent", str(socket), *more)
    return await new_ctl(name or instance_id, *arguments).start()


@asynccontextmanager
async def three(new_ctl: NewCtl, client: Client, hq: ReplicaProcess, socket: Path) -> AsyncIterator[list[Ctl]]:
    """Three supervisors on one node, all ready."""
    for each in IDS:
        await client.create(instance(revision("r1"), instance_id=each))
    ctls = [await supervisor(new_ctl, socket, each) for each in IDS]
    await eventually(lambda: ready(client, *IDS))
    yield ctls


@pytest.mark.long
async def test_a_node_uses_one_connection_one_watch_and_one_call_for_all_reports(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, socket: Path
) -> None:
    async with host_agent(hq, socket) as agent, three(new_ctl, client, hq, socket) as ctls:
        shown = await status(socket)
        assert [" ".join(line.split()[:4]) for line in shown[:4]] == [
            "INSTANCE REVISION INSTALLED READY",
            *(f"{each} r1 yes yes" for each in IDS),
        ]
        assert (connections(agent, hq), await metric(hq, "^hq_streams_in_flight")) == (1, 1)
        assert await calls(hq, "WatchInstances") == 0  # counted when they end
        before, called, began = await heartbeats(client, *IDS), await calls(hq, "ReportStatuses"), time.monotonic()
        assert called > 0

        async def twice() -> bool:
            return all(now > then + 1500 for now, then in zip(await heartbeats(client, *IDS), before, strict=True))

        await eventually(twice)
        more = await calls(hq, "ReportStatuses") - called
        assert more <= 3 + 2 * (time.monotonic() - began), "not one for each instance"
        assert await calls(hq, "ReportStatus") == await calls(hq, "BeginReporting") == 0

        await client.put_revision("i-1", revision("r2"))
        await ctls[0].until("r2", "ready")  # within the watch's time, not within that of looking now and then
        assert await calls(hq, "WatchInstances") == 0


@pytest.mark.long
async def test_a_supervisor_that_died_falls_silent_and_nobody_else(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, socket: Path
) -> None:
    async with host_agent(hq, socket), three(new_ctl, client, hq, socket) as ctls:
        await ctls[0].kill()

        async def is_silent() -> bool:
            dead, *others = await heartbeats(client, *IDS)
            return min(others) > dead + 2500

        await eventually(is_silent)


@pytest.mark.long
async def test_of_two_supervisors_of_one_instance_the_later_one_is_heard(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, socket: Path
) -> None:
    await client.create(instance(revision("r1")))
    async with host_agent(hq, socket):
        old = await supervisor(new_ctl, socket, "i-1", name="old")
        await old.until("r1", "ready")
        pid = await old.container_pid()
        await eventually(lambda: ready(client, "i-1"))
        new = await supervisor(new_ctl, socket, "i-1", name="new")
        await eventually(lambda: not is_alive(pid))
        assert "taken over this revision" in (await old.status())["fenced"]
        await new.until("r1", "ready")
        assert (await new.status())["fenced"] == ""


@pytest.mark.long
async def test_a_second_host_agent_steals_no_socket(hq: ReplicaProcess, socket: Path) -> None:
    async with host_agent(hq, socket) as first:
        with pytest.raises(AssertionError):
            async with asyncio.timeout(60), host_agent(hq, socket):
                pass
        assert f"already (pid {first.pid})" in socket.with_suffix(".log").read_text()
        assert first.returncode is None
