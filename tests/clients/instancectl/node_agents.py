"""`instancectl node` as a process of its own; may be killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from instancectl.control_socket import ask
from instancectl.processes import procfs
from instancectl.settings import node_socket_of
from tests.clients.instancectl.supervised import NODE, clean_environment
from tests.support.sample_instances import eventually


class NodeProcess:
    """One agent over one directory and one socket.

    Attributes:
        environment: more variables for its next start.
    """

    def __init__(self, directory: Path, socket: Path, *arguments: str) -> None:
        self.directory = directory
        self.log = directory.with_suffix(".log")
        self.environment: dict[str, str] = {}
        self._arguments = ("--socket", str(socket), *arguments)
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self, *more: str) -> NodeProcess:
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "instancectl.main", "node", "--node", NODE, "--dir", str(self.directory)),
                *("--restart-first", "0.1", "--restart-max", "0.5"),
                *self._arguments,
                *more,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environment() | self.environment,
            )
        return self

    async def status(self) -> dict[str, Any]:
        """What `instancectl status -o json` prints; empty while nobody answers."""
        try:
            answer = await ask(node_socket_of(self.directory), "status")
        except OSError:
            return {}
        return answer if isinstance(answer, dict) else {}

    async def instance(self, instance_id: str) -> dict[str, Any]:
        """What is shown of an instance; empty: it is not there."""
        found = await self.status()
        return next((each for each in found.get("instances", []) if each["id"] == instance_id), {})

    async def container_pid(self, instance_id: str) -> int:
        """Of the first container that runs."""

        async def running() -> int | None:
            revisions = (await self.instance(instance_id)).get("revisions", [])
            pids = [container["pid"] for revision in revisions for container in revision["containers"]]
            return pids[0] if pids else None

        pid: int = await eventually(running, what=f"a process of {instance_id}\n{self.log_text()}")
        return pid

    def container_log(self, instance_id: str, revision_id: str = "r1", container: str = "main") -> str:
        path = self.directory / instance_id / "logs" / revision_id / f"{container}.log"
        return path.read_text() if path.exists() else ""

    def log_text(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    async def terminate(self, timeout_s: float = 45.0) -> int:
        return await self._end(signal.SIGTERM, timeout_s)

    async def kill(self) -> None:
        await self._end(signal.SIGKILL, 30.0)

    async def wait(self, timeout_s: float = 45.0) -> int:
        """The exit code."""
        assert self._process is not None
        async with asyncio.timeout(timeout_s):
            return await self._process.wait()

    async def _end(self, number: signal.Signals, timeout_s: float) -> int:
        if self._process is None:
            return 0
        if self._process.returncode is None:
            self._process.send_signal(number)
        return await self.wait(timeout_s)

    async def clean_up(self) -> None:
        """Leave nothing running, whatever the test did."""
        await self.kill()
        for state in self.directory.glob("*/state.json"):
            owner = json.loads(state.read_text())["owner"]
            for pid in procfs.pids_with_mark(f"{owner}."):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
