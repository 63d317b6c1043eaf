"""`instancectl node` as a process of its own; may be killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from instancectl.processes import procfs
from instancectl.settings import node_socket_of
from tests.clients.instancectl.supervised import NODE, ROOT, AgentProcess
from tests.support.sample_instances import eventually


class NodeProcess(AgentProcess):
    """One agent over one directory and one socket. `root`: the source tree that its next start runs."""

    def __init__(self, directory: Path, socket: Path, *arguments: str) -> None:
        super().__init__(directory, node_socket_of(directory))
        self.root = ROOT
        self._arguments = ("--socket", str(socket), *arguments)

    async def start(self, *more: str) -> NodeProcess:
        times = ("--restart-first", "0.1", "--restart-max", "0.5")
        place = ("node", "--node", NODE, "--dir", str(self.directory))
        await self.launch(*place, *times, *self._arguments, *more, root=self.root)
        return self

    async def instance(self, instance_id: str) -> dict[str, Any]:
        """What is shown of an instance; empty: it is not there."""
        found = await self.status()
        return next((each for each in found.get("instances", []) if each["id"] == instance_id), {})

    async def container_pid(self, instance_id: str) -> int:
        """Process id of the first running container."""

        async def running() -> int | None:
            revisions = (await self.instance(instance_id)).get("revisions", [])
            pids = [container["pid"] for revision in revisions for container in revision["containers"]]
            return pids[0] if pids else None

        pid: int = await eventually(running, what=f"a process of {instance_id}\n{self.log_text()}")
        return pid

    def container_log(self, instance_id: str, revision_id: str = "r1", container: str = "main") -> str:
        path = self.directory / instance_id / "logs" / revision_id / f"{container}.log"
        return path.read_text() if path.exists() else ""

    async def clean_up(self) -> None:
        """Leave nothing running, whatever the test did."""
        await self.kill()
        for state in self.directory.glob("*/state.json"):
            owner = json.loads(state.read_text())["owner"]
            for pid in procfs.pids_with_mark(f"{owner}."):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
