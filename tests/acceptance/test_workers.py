"""`hq serve --workers 2`: real processes on shared ports."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

import psutil
import pytest

from hqpb.v1 import service_pb2 as pb
from tests.support.etcd import SharedEtcd
from tests.support.process_ids import is_gone
from tests.support.replicas import ReplicaProcess, Replicas
from tests.support.sample_instances import eventually, instance

pytestmark = pytest.mark.parametrize("etcd_binary", ["3.4"], indirect=True)


def workers_of(minder: ReplicaProcess) -> list[int]:
    """Process ids of the workers."""
    return [child.pid for child in psutil.Process(minder.pid).children()]


async def started(etcd: SharedEtcd, replicas: Replicas, pages: str = "") -> ReplicaProcess:
    """Two workers that both serve."""
    flags = ("--workers", "2", *(("--worker-pages", pages) if pages else ()))
    minder = await replicas.start([etcd.endpoint], etcd.prefix, *flags)
    await eventually(lambda: minder.log_text().count("listening: gRPC") == 2, what="both workers listen")
    return minder


def two_free_ports() -> int:
    """A port that is free, as the next one is."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as one:
            port: int = one.getsockname()[1]
            with contextlib.suppress(OSError, OverflowError), socket.create_server(("127.0.0.1", port + 1)):
                return port


async def replicas_that_answer(minder: ReplicaProcess, calls: int = 30) -> set[str]:
    """Which of them a number of connections came to."""
    names = set()
    for _ in range(calls):
        status, answer = await minder.post("FindInstances", {})
        assert status == 200
        names.add(answer["sources"][0]["replica"])
    return names


@pytest.mark.long
async def test_workers_share_the_ports_and_each_answers_everything(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with Replicas(tmp_path) as replicas:
        minder = await started(etcd, replicas)
        async with minder.stub() as stub:
            await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance("web-1")))
            created = await stub.GetInstance(pb.GetInstanceRequest(id="web-1"))
        names = await eventually(lambda: _two(minder), what="connections came to both")
        assert len(names) == 2
        read = {"minVersion": str(created.instance.meta.version)}
        for _ in range(10):
            status, _ = await minder.post("GetInstance", {"id": "web-1", "read": read})
            assert status == 200


async def _two(minder: ReplicaProcess) -> set[str]:
    names = await replicas_that_answer(minder)
    return names if len(names) == 2 else set()


@pytest.mark.long
async def test_a_worker_that_is_killed_is_started_again_and_that_is_logged(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with Replicas(tmp_path) as replicas:
        minder = await started(etcd, replicas)
        victim, other = workers_of(minder)
        os.kill(victim, signal.SIGKILL)
        await eventually(lambda: minder.log_text().count("listening: gRPC") == 3, what="a third worker listens")
        assert "ended with SIGKILL: restarting it" in minder.log_text()
        now = workers_of(minder)
        assert other in now
        assert victim not in now
        assert len(now) == 2


@pytest.mark.long
async def test_sigterm_ends_all_workers_in_order(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with Replicas(tmp_path) as replicas:
        minder = await started(etcd, replicas)
        workers = workers_of(minder)
        assert await minder.terminate(60) == 0
        assert all(is_gone(pid) for pid in workers)
        assert minder.log_text().count("shutting down") == 2


@pytest.mark.long
async def test_workers_do_not_outlive_the_process_that_started_them(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with Replicas(tmp_path) as replicas:
        minder = await started(etcd, replicas)
        workers = workers_of(minder)
        await minder.kill()
        await eventually(lambda: all(is_gone(pid) for pid in workers), what="the workers are gone")


@pytest.mark.long
async def test_each_worker_has_pages_of_its_own(etcd: SharedEtcd, tmp_path: Path) -> None:
    port = two_free_ports()
    async with Replicas(tmp_path) as replicas:
        minder = await started(etcd, replicas, f"127.0.0.1:{port}")
        for address in (f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"):
            minder.http = address
            assert (await minder.get("/readyz"))[0] == 200
            assert "hq_calls_in_flight" in (await minder.get("/metrics"))[1]


@pytest.mark.long
async def test_a_start_on_ports_in_use_is_refused(etcd: SharedEtcd, tmp_path: Path) -> None:
    async with Replicas(tmp_path) as replicas:
        minder = await started(etcd, replicas)
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hq.main", "serve", "--workers", "2"),
            *("--etcd", etcd.endpoint, "--grpc", minder.grpc, "--http", "127.0.0.1:0"),
            env={**os.environ, "PYTHONPATH": psutil.Process(minder.pid).environ()["PYTHONPATH"]},
            stderr=asyncio.subprocess.PIPE,
        )
        _, words = await asyncio.wait_for(second.communicate(), 60)
        assert second.returncode == 1
        assert f"cannot listen on {minder.grpc}" in words.decode()
        assert "choose another address with --grpc or HQ_GRPC" in words.decode()
