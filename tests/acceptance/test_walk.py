"""The README's walk, done as written: create, report, find over HTTP, watch, fall silent, see it flip, ask why."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.support.etcd import SharedEtcd
from tests.support.replicas import Replicas
from tests.support.scenes import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text()


async def hqctl(server: str, *arguments: str) -> str:
    """Run it to the end; return what it printed. Fails if it fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clients.hqctl.main", "--server", server, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


def test_the_walk_in_the_readme_is_the_one_that_is_tested() -> None:
    for command in (
        "hqctl apply -f examples/web.yaml",
        "hqctl report web-1 r1 --ready",
        "hqctl find --service web",
        "hqctl watch --service web",
        "hqctl report web-1 r1 --ready --every 5s",
        "hqctl why web-1",
    ):
        assert f".venv/bin/{command}\n" in README


@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_walk_of_the_readme(replicas: Replicas, etcd: SharedEtcd) -> None:
    replica = await replicas.start([etcd.endpoint], etcd.prefix, "--liveness-timeout", "4s")
    assert "web-2 created" in await hqctl(replica.grpc, "apply", "-f", "examples/web.yaml")
    await hqctl(replica.grpc, "report", "web-1", "r1", "--ready")
    table = await hqctl(replica.grpc, "find", "--service", "web")
    assert re.search(r"web-1 .*node-a", table)
    request = {"filter": {"serviceId": ["web"], "readiness": "READINESS_FILTER_READY"}}
    status, found = await replica.post("FindInstances", request)
    assert status == 200
    assert [i["meta"]["id"] for i in found["instances"]] == ["web-1"]
    assert found["instances"][0]["spec"]["allocation"]["port"] == [{"name": "http", "number": 8081}]

    watch = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "clients.hqctl.main", "--server", replica.grpc, "watch", "--service", "web"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert watch.stdout is not None
    try:
        shown = (await watch.stdout.readuntil(b"synced")).decode()
        await hqctl(
            replica.grpc, "report", "web-1", "r1", "--ready"
        )  # so that the flip comes after that, on any machine

        async def flipped() -> bool:
            _, silent = await replica.post("FindInstances", request)
            return not silent.get("instances")

        await eventually(flipped, what="the silent instance is no longer ready")
        why = await hqctl(replica.grpc, "why", "web-1")
        assert "NOT READY" in why
        assert "HeartbeatTimeout" in why or "nothing was heard" in why
    finally:
        watch.terminate()
        shown += (await watch.stdout.read()).decode()
        await watch.wait()
    assert re.search(r"put .*web-1", shown)
