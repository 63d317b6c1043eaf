"""Agents of the last release with a replica of this version, and the other way round."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hqclient import Client
from hqpb.v1 import instance_pb2 as model
from tests.clients.instancectl.conftest import NewCtl
from tests.clients.instancectl.host_agents import heartbeats, host_agent, ready, short_directory
from tests.clients.instancectl.node_agents import NodeProcess
from tests.clients.instancectl.supervised import NODE, Ctl, instance, revision
from tests.releases.conftest import Versions
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess
from tests.support.reserved_port import kept_addresses
from tests.support.sample_instances import eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
TRUE = model.CONDITION_STATUS_TRUE
TIMES = ("--liveness-timeout", "90s", "--report-interval", "2s")


@pytest.fixture
def socket() -> Iterator[Path]:
    """Where the host agent listens."""
    with short_directory() as directory:
        yield directory / "agent.sock"


@pytest.fixture
async def new_ctl(tmp_path: Path) -> AsyncIterator[NewCtl]:
    """A supervisor with flags that both versions have; it ends with the test."""
    made: list[Ctl] = []

    def make(name: str, *arguments: str) -> Ctl:
        made.append(Ctl(tmp_path / name, *arguments))
        return made[-1]

    yield make
    for ctl in made:
        await ctl.clean_up()


@asynccontextmanager
async def replica(root: Path, etcd: SharedEtcd, log: Path, *flags: str) -> AsyncIterator[ReplicaProcess]:
    """A replica of this tree as long as the block."""
    process = ReplicaProcess([etcd.endpoint], etcd.prefix, log, (*TIMES, *flags), root=root)
    try:
        await process.start()
        yield process
        assert await process.terminate() == 0
    finally:
        await process.kill()
    assert "Traceback" not in process.log_text()


async def has_stayed_ready(hq: ReplicaProcess, *ids: str) -> bool:
    """Whether they are ready, and were not anything else since they first were."""
    async with Client([hq.grpc]) as client:
        moves = (await client.admin.list_transitions()).transitions
        return await ready(client, *ids) and all(move.ready for move in moves)


async def test_a_supervisor_is_upgraded_under_its_containers_and_goes_back(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path, new_ctl: NewCtl
) -> None:
    async with replica(versions.first, etcd, tmp_path / "hq.log") as hq, Client([hq.grpc]) as client:
        await client.create(instance(revision("r1"), revision("r2", ready=False)))
        ctl = new_ctl("i-1", "--instance", "i-1", "--node", NODE, "--server", hq.grpc)
        ctl.root = versions.second
        await ctl.start()
        await eventually(lambda: ready(client, "i-1"), 90.0, "ready with an agent of the other version")
        await ctl.until("r2", "installed")
        pid = await ctl.container_pid()
        for root in (*versions, versions.first):
            await ctl.kill()
            ctl.root = root
            await ctl.start()
            await eventually(ctl.status, 90.0, "it answers")
            await ctl.until("r1", "ready")
            assert await ctl.container_pid() == pid, "the container was taken over"
            assert await has_stayed_ready(hq, "i-1")
        found = (await client.get("i-1")).instance
        for each in found.spec.revision:
            each.target = model.REVISION_TARGET_READY if each.id == "r2" else model.REVISION_TARGET_INSTALLED
        await client.update(found)
        await ctl.until("r2", "ready")
        await eventually(lambda: ready(client, "i-1"), 90.0, "ready with the next revision")
        assert "hq_expiries_total 0.0" in (await hq.get("/metrics"))[1]


async def test_hq_and_the_host_agent_are_upgraded_under_supervisors_of_both_versions(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path, socket: Path, new_ctl: NewCtl
) -> None:
    ids, addresses = ("i-0", "i-1"), kept_addresses()
    async with replica(versions.first, etcd, tmp_path / "hq.log", *addresses) as hq, Client([hq.grpc]) as client:
        async with host_agent(hq, socket, root=versions.first):
            for id_, root in zip(ids, versions, strict=True):
                await client.create(instance(revision("r1"), instance_id=id_))
                ctl = new_ctl(id_, "--instance", id_, "--node", NODE, "--host-agent", str(socket))
                ctl.root = root
                await ctl.start()
            await eventually(lambda: ready(client, *ids), 90.0, "ready over the host agent")
        async with host_agent(hq, socket, root=versions.second):
            before = max(await heartbeats(client, *ids))
            await eventually(lambda: are_heard(client, ids, before), 90.0, "heartbeats by the other host agent")
            assert await has_stayed_ready(hq, *ids)
    async with (
        replica(versions.second, etcd, tmp_path / "other.log", *addresses) as hq,
        Client([hq.grpc]) as client,
        host_agent(hq, socket, root=versions.first),
    ):
        for id_ in ids:
            await client.put_revision(id_, revision("r2", ready=False))
        await eventually(lambda: are_installed(client, ids, "r2"), 90.0, "news over HQ of the other version")
        assert await has_stayed_ready(hq, *ids)


async def are_heard(client: Client, ids: tuple[str, ...], since_ms: int) -> bool:
    return min(await heartbeats(client, *ids)) > since_ms


async def are_installed(client: Client, ids: tuple[str, ...], revision_id: str) -> bool:
    statuses = [(await client.get(id_)).instance.status for id_ in ids]
    installed = [r.id for status in statuses for r in status.revision if r.installed.status == TRUE]
    return installed.count(revision_id) == len(ids)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that users of instances may pass through."""
    with short_directory() as directory:
        directory.chmod(0o711)
        yield directory


async def test_a_node_moves_from_the_supervisors_of_the_last_release_to_one_agent_and_back(
    last_release: Path, etcd: SharedEtcd, tmp_path: Path, place: Path
) -> None:
    ids, socket = ("i-0", "i-1"), place / "agent.sock"
    (place / "node").mkdir()
    supervisors = [Ctl(place / "node" / id_, "--instance", id_, "--node", NODE) for id_ in ids]
    async with replica(last_release, etcd, tmp_path / "hq.log") as hq, Client([hq.grpc]) as client:
        node = NodeProcess(place / "node", socket, "--server", hq.grpc)
        try:
            for id_ in ids:
                await client.create(instance(revision("r1"), instance_id=id_))
            async with run_supervisors(hq, socket, supervisors, last_release):
                await eventually(lambda: ready(client, *ids), 90.0, "ready with supervisors of the last release")
                pids = [await ctl.container_pid() for ctl in supervisors]
            await node.start()
            before = max(await heartbeats(client, *ids))
            await eventually(lambda: are_heard(client, ids, before), 90.0, "reports of the node's agent")
            assert [await node.container_pid(id_) for id_ in ids] == pids
            assert await node.terminate() == 0
            async with run_supervisors(hq, socket, supervisors, last_release):
                before = max(await heartbeats(client, *ids))
                await eventually(lambda: are_heard(client, ids, before), 90.0, "reports of who was there before")
                assert [await ctl.container_pid() for ctl in supervisors] == pids
            assert await has_stayed_ready(hq, *ids)
        finally:
            await node.clean_up()


@asynccontextmanager
async def run_supervisors(hq: ReplicaProcess, socket: Path, supervisors: list[Ctl], root: Path) -> AsyncIterator[None]:
    """A host agent of a tree and supervisors that reach HQ through it; they end by SIGKILL."""
    async with host_agent(hq, socket, root=root):
        try:
            for ctl in supervisors:
                ctl.root = root
                await ctl.start("--host-agent", str(socket))
            for ctl in supervisors:
                await ctl.until("r1", "ready")
            yield
        finally:
            for ctl in supervisors:
                await ctl.kill()
