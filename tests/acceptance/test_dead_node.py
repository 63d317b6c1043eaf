"""A node dies: Nanny rolls the rest out and says so, its instances are Unknown, Wall-E repairs it. Real processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from hqclient import Client
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb
from tests.clients.instancectl.conftest import NewCtl, new_ctl
from tests.clients.instancectl.supervised import Ctl, instance, revision
from tests.clients.process import command
from tests.support.etcd import SharedEtcd
from tests.support.gateway_process import Program
from tests.support.replicas import Replicas
from tests.support.sample_instances import eventually

__all__ = ["new_ctl"]  # a fixture
pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True),
]
NAMES = ("web-1", "web-2", "web-3", "web-4")
DEAD = "node-web-1"
TIMES = ("--liveness-timeout", "15s", "--report-interval", "3s")
TRUE, FALSE = model.CONDITION_STATUS_TRUE, model.CONDITION_STATUS_FALSE


class DeadNodeCloud:
    """HQ, Nanny, Wall-E, a supervisor for each instance, and a reader who looks from outside."""

    def __init__(self, client: Client, nanny: str, walle: str, flag: Path) -> None:
        self.client, self._nanny, self._walle = client, nanny, walle
        self.repaired = flag
        self.fewest = len(NAMES)

    async def nanny(self, *words: str, stdin: str = "") -> str:
        return await self._ask("nanny.main", *words, "--nanny", self._nanny, stdin=stdin)

    async def walle(self, *words: str, stdin: str = "") -> str:
        return await self._ask("walle.main", "--server", self._walle, *words, stdin=stdin)

    async def _ask(self, module: str, *words: str, stdin: str) -> str:
        done = await command(module, *words, stdin=stdin)
        assert done.code == 0, (words, done)
        return done.out + done.err

    async def roll_out(self, edition: str) -> str:
        placed = [{"id": id_, "node": f"node-{id_}"} for id_ in NAMES]
        script = {"name": "web", "command": ["sh", "-c", f": {edition}; exec sleep 600"]}
        container = {**script, "stopGracePeriod": "0.5s", "drainPeriod": "0s"}
        described = {"service": "web", "instances": placed, "revisions": [{"id": edition, "container": [container]}]}
        await self.nanny("snapshot", "add", "web", "-f", "-", stdin=yaml.safe_dump(described))
        return await self.nanny("target", "web", "ACTIVE", "--wait", "4m")

    async def agent_is(self, status: int, *ids: str) -> bool:
        """What HQ says of the agents of these."""
        return all([(await self.client.get(id_)).instance.status.agent.status == status for id_ in ids])

    async def read(self) -> None:
        """The outside reader, every 50 ms."""
        ready = pb.InstanceFilter(service_id=["web"], readiness=pb.READINESS_FILTER_READY)
        while True:
            found = [each.meta.id async for page in self.client.find(ready) for each in page.instances]
            self.fewest = min(self.fewest, len([id_ for id_ in found if id_ != "web-1"]))
            await asyncio.sleep(0.05)

    async def is_shown_unknown(self) -> bool:
        return any(
            "web-1" in line and "Unknown" in line for line in (await self.nanny("instances", "web")).splitlines()
        )

    async def is_healthy(self) -> bool:
        host = await self.walle("hosts", "get", DEAD)
        return "assigned" in host.splitlines()[0] and "ready" in host.splitlines()[0] and "before: reboot" in host


@asynccontextmanager
async def dead_node_cloud(etcd: SharedEtcd, tmp_path: Path) -> AsyncIterator[DeadNodeCloud]:
    flag, config = tmp_path / "repaired", tmp_path / "walle.yaml"
    reboot = {"type": "command", "argv": ["touch", str(flag)], "timeout_s": 60, "repeatable": True}
    config.write_text(yaml.safe_dump({"executors": {"power": reboot}, "operations": {"reboot": "power"}}))
    async with AsyncExitStack() as stack:
        replicas = await stack.enter_async_context(Replicas(tmp_path))
        hq = await replicas.start([etcd.endpoint], f"{etcd.prefix}hq/", *TIMES)
        programs = {}
        for name, more in (("nanny", ()), ("walle", ("--settle", "1s", "--config", str(config)))):
            words = ("serve", "--etcd", etcd.endpoint, "--prefix", f"{etcd.prefix}{name}/", "--term", "2s", *more)
            listening = ("--location", f"default={hq.grpc}", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
            programs[name] = Program(f"{name}.main", (*words, *listening), tmp_path / f"{name}.log")
            stack.push_async_callback(programs[name].kill)
            await programs[name].start()
        client = await stack.enter_async_context(Client([hq.grpc]))
        yield DeadNodeCloud(client, programs["nanny"].grpc, programs["walle"].grpc, flag)


@pytest.mark.parametrize("revisions", [1, 2, 3])
async def test_nanny_rolls_the_rest_out_and_walle_repairs_a_dead_node(
    etcd: SharedEtcd, tmp_path: Path, new_ctl: NewCtl, revisions: int
) -> None:
    async with dead_node_cloud(etcd, tmp_path) as cloud:

        async def supervisor(id_: str, node: str) -> Ctl:
            server = cloud.client._pool.pick().address
            return await new_ctl(id_, "--instance", id_, "--node", node, "--server", server).start()

        limits = ("--max-unavailable", "1", "--min-ready-time", "1s", "--soak", "2s", "--progress-deadline", "60s")
        await cloud.nanny("service", "create", "web", *limits)
        broken = instance(revision("r1", "exit 1"), instance_id="never-ready")
        broken.meta.service_id, broken.spec.node_name = "other", DEAD
        await cloud.client.create(broken)
        await cloud.walle("projects", "add", "search")
        await cloud.walle("hosts", "add", DEAD, "--project", "search", "--ignore-cms")
        ctls = {id_: await supervisor(id_, f"node-{id_}") for id_ in NAMES}
        ctls["never-ready"] = await supervisor("never-ready", DEAD)
        for number in range(revisions):
            await cloud.roll_out(f"edition-{number}")
        found = (await cloud.client.get("web-1")).instance.status
        assert len(found.revision) == revisions
        await eventually(partial(cloud.agent_is, TRUE, *NAMES, "never-ready"), 60.0, "all agents are heard")

        reading = asyncio.create_task(cloud.read())
        try:
            for id_ in ("web-1", "never-ready"):
                await ctls[id_].kill()
            await eventually(
                partial(cloud.agent_is, FALSE, "web-1", "never-ready"), 90.0, "HQ says that they are silent"
            )
            said = await cloud.roll_out("last")
            assert "web-1" in said, said
            assert await cloud.is_shown_unknown()
            assert "3/4" in await cloud.nanny("service", "list")
            await eventually(cloud.repaired.exists, 120.0, "Wall-E reboots the host")
            for id_ in ("web-1", "never-ready"):
                await ctls[id_].start()
            await eventually(cloud.is_healthy, 120.0, "the host is ready again")
            await eventually(partial(cloud.agent_is, TRUE, *NAMES, "never-ready"), 60.0, "all agents are heard again")
            assert cloud.fewest >= len(NAMES) - 2
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
