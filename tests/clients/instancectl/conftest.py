"""Supervisors over files and over real HQs; whatever is started ends with its test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from hqclient.client import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.file_server import FileServer
from tests.clients.instancectl.host_agents import short_directory
from tests.clients.instancectl.node_agents import NodeProcess
from tests.clients.instancectl.supervised import NODE, Ctl, write
from tests.support.etcd import SharedEtcd, binary_of
from tests.support.replicas import ReplicaProcess, Replicas

NewCtl = Callable[..., Ctl]
NewNode = Callable[..., NodeProcess]
RunFile = Callable[..., Awaitable[Ctl]]
StartHq = Callable[..., Awaitable[ReplicaProcess]]


@pytest.fixture
async def new_ctl(tmp_path: Path) -> AsyncIterator[NewCtl]:
    """`new_ctl("name", "--flag")`: an instancectl that is not started yet, with a directory of its own."""
    made: list[Ctl] = []

    def make(name: str, *arguments: str) -> Ctl:
        made.append(Ctl(tmp_path / name, "--restart-first", "0.1", "--restart-max", "0.5", *arguments))
        return made[-1]

    yield make
    for ctl in made:
        await ctl.clean_up()


@pytest.fixture
async def new_node(hq: ReplicaProcess) -> AsyncIterator[NewNode]:
    """`new_node("--flag")`: an agent of the node that is not started yet, over one directory."""
    made: list[NodeProcess] = []
    with short_directory() as sockets:
        sockets.chmod(0o711)  # pytest's own directories are closed to the users that instances run as

        def make(*arguments: str) -> NodeProcess:
            made.append(NodeProcess(sockets / "node", sockets / "agent.sock", "--server", hq.grpc, *arguments))
            return made[-1]

        yield make
        for node in made:
            await node.clean_up()


@pytest.fixture
def run_file(new_ctl: NewCtl, tmp_path: Path) -> RunFile:
    """`await run_file(instance, "--flag")`: a running instancectl that was given the instance as a file."""

    async def run(what: model.Instance, *arguments: str) -> Ctl:
        path = write(tmp_path / "spec", what)
        return await new_ctl("ctl", "--file", str(path), *arguments).start()

    return run


@pytest.fixture
def run_from_hq(new_ctl: NewCtl, client: Client, hq: ReplicaProcess) -> RunFile:
    """`await run_from_hq(instance, "--flag")`: a running instancectl that follows the instance in HQ."""

    async def run(what: model.Instance, *arguments: str) -> Ctl:
        await client.create(what)
        return await new_ctl("ctl", "--instance", "i-1", "--node", NODE, "--server", hq.grpc, *arguments).start()

    return run


@pytest.fixture
async def files() -> AsyncIterator[FileServer]:
    """An HTTP server of files that counts requests."""
    async with FileServer() as server:
        yield server


@pytest.fixture(scope="session")
def etcd_binary() -> Any:
    """One version: what differs between them is HQ's business."""
    return binary_of("3.5")


@pytest.fixture
async def start_hq(tmp_path: Path, etcd: SharedEtcd) -> AsyncIterator[StartHq]:
    """`await start_hq("--flag")`: one more replica over the same store."""
    async with Replicas(tmp_path) as replicas:

        async def start(*flags: str) -> ReplicaProcess:
            times = ("--liveness-timeout", "10s", "--report-interval", "1s")
            return await replicas.start([etcd.endpoint], etcd.prefix, *times, *flags)

        yield start


@pytest.fixture
async def hq(start_hq: StartHq) -> ReplicaProcess:
    return await start_hq()


@pytest.fixture
async def client(hq: ReplicaProcess) -> AsyncIterator[Client]:
    async with Client([hq.grpc]) as one:
        yield one
