"""A host agent that ends and comes back, one that stays away, and who may speak at its socket: over real processes."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import pwd
import signal
import socket as sockets
from collections.abc import Iterator
from pathlib import Path

import pytest

from hqclient.client import Client
from tests.clients.instancectl.conftest import NewCtl, StartHq
from tests.clients.instancectl.host_agents import heartbeats, host_agent, metric, ready, short_directory
from tests.clients.instancectl.supervised import NODE, instance, is_alive, revision
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import eventually

IDS = ("i-1", "i-2", "i-3")


@pytest.fixture
async def hq(start_hq: StartHq) -> ReplicaProcess:
    """Patient enough for a busy machine to start a process: what is asked is whether anything was lost."""
    return await start_hq("--liveness-timeout", "40s")


@pytest.fixture
def socket() -> Iterator[Path]:
    """Where the host agent listens."""
    with short_directory() as directory:
        yield directory / "agent.sock"


@pytest.mark.long
@pytest.mark.parametrize("ends", [signal.SIGKILL, signal.SIGTERM])
async def test_a_host_agent_that_ends_and_comes_back_loses_no_report_and_stops_no_program(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, socket: Path, ends: signal.Signals
) -> None:
    async with host_agent(hq, socket) as agent:
        ctls = []
        for each in IDS:
            await client.create(instance(revision("r1"), instance_id=each))
            ctls.append(await new_ctl(each, "--instance", each, "--node", NODE, "--host-agent", str(socket)).start())
        await eventually(lambda: ready(client, *IDS))
        pids = [await ctl.container_pid() for ctl in ctls]
        agent.send_signal(ends)
        assert await asyncio.wait_for(agent.wait(), 45) == (0 if ends is signal.SIGTERM else -signal.SIGKILL)
    os.kill(pids[0], signal.SIGKILL)  # news, while nobody carries them
    await client.put_revision("i-2", revision("r2", ready=False))  # and something new to do
    async with host_agent(hq, socket):
        before = await heartbeats(client, *IDS)

        async def is_told() -> bool:
            found = (await client.get("i-1")).instance.status.revision[0].container[0]
            return found.restart_count >= 1 and found.state.HasField("running")

        await eventually(is_told, what="HQ hears what happened meanwhile")
        await ctls[1].until("r2", "installed")

        async def all_go_on() -> bool:
            return all(now > then for now, then in zip(await heartbeats(client, *IDS), before, strict=True))

        await eventually(all_go_on)
        await eventually(lambda: ready(client, *IDS))  # a program runs before it is ready
        assert [is_alive(pid) for pid in pids[1:]] == [True, True]
        assert [(await ctl.status())["fenced"] for ctl in ctls] == ["", "", ""]
        assert await metric(hq, "^hq_expiries_total") == 0


@pytest.mark.long
async def test_a_supervisor_that_names_a_server_calls_it_directly_while_the_host_agent_is_away(
    new_ctl: NewCtl, client: Client, hq: ReplicaProcess, socket: Path
) -> None:
    await client.create(instance(revision("r1")))
    arguments = ("--instance", "i-1", "--node", NODE, "--host-agent", str(socket), "--server", hq.grpc)
    async with host_agent(hq, socket):
        ctl = await new_ctl("ctl", *arguments).start()
        await eventually(lambda: ready(client, "i-1"))
        pid = await ctl.container_pid()
        assert "connected" in (await ctl.status())["reports"]["to"]

    async def goes_directly() -> bool:
        return "directly" in (await ctl.status())["reports"]["to"]

    await eventually(goes_directly, 60.0)
    [before] = await heartbeats(client, "i-1")

    async def is_heard() -> bool:
        return (await heartbeats(client, "i-1"))[0] > before + 1500

    await eventually(is_heard)
    assert await metric(hq, "^hq_streams_in_flight") == 0
    assert await metric(hq, "^hq_expiries_total") == 0, "half a timeout is soon enough"
    async with host_agent(hq, socket):

        async def is_back() -> bool:
            return "connected" in (await ctl.status())["reports"]["to"]

        await eventually(is_back)
        assert await ctl.container_pid() == pid


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can pass for another user")
async def test_another_user_speaks_for_its_own_instances_only(client: Client, hq: ReplicaProcess, socket: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    socket.parent.chmod(0o755)
    for each in ("i-1", "i-2"):
        await client.create(instance(revision("r1"), instance_id=each))
    async with host_agent(hq, socket):
        with pytest.raises(PermissionError):
            _request(socket, nobody.pw_uid, "i-1")
    async with host_agent(hq, socket, "--allow", "nobody=i-1"):
        told = [
            await asyncio.to_thread(_answer, _request(socket, uid, each))
            for uid, each in ((nobody.pw_uid, "i-1"), (nobody.pw_uid, "i-2"), (0, "i-2"))
        ]
    assert [status for status, _ in told] == [200, 403, 200]
    assert "r1" in told[0][1]
    assert "r1" not in told[1][1]
    assert "--allow" in told[1][1]


def _request(path: Path, uid: int, instance_id: str) -> http.client.HTTPConnection:
    """GetRevision over a connection that the user has made; the system notes whose it is when it is made."""
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = sockets.socket(sockets.AF_UNIX)
    os.seteuid(uid)
    try:
        connection.sock.connect(str(path))
    except PermissionError:
        connection.close()
        raise
    finally:
        os.seteuid(0)
    body = json.dumps({"instanceId": instance_id, "node": NODE}).encode()
    headers = {"content-type": "application/json"}
    connection.request("POST", "/hq.v1.InstanceService/GetRevision", body, headers)
    return connection


def _answer(connection: http.client.HTTPConnection) -> tuple[int, str]:
    answer = connection.getresponse()
    try:
        return answer.status, answer.read().decode()
    finally:
        connection.close()
