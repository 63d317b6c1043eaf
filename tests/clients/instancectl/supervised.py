"""instancectl as a process of its own, and instances for it to run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from hqpb.v1 import instance_pb2 as model
from instancectl.control_socket import ask
from instancectl.processes import procfs
from tests.support.reserved_port import kept_ports
from tests.support.sample_instances import INSTALLED, READY, eventually

ROOT = Path(__file__).resolve().parents[3]
NODE = "node-1"
LENIENT = ("--fetch-from", "127.0.0.1", "--allow-unchecked")


def clean_environment(root: Path = ROOT) -> dict[str, str]:
    """Variables for a child that finds the code of a tree, without settings or proxies of whoever runs the tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HQ_") and not k.lower().endswith("_proxy")}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(root), str(root / "proto"), str(root / "clients")))}


class AgentProcess:
    """One supervisor over one directory; may be killed and started again.

    Attributes:
        environment: more variables for its next start.
    """

    def __init__(self, directory: Path, socket: Path) -> None:
        self.directory = directory
        self.environment: dict[str, str] = {}
        self.log = directory.with_suffix(".log")
        self._socket = socket
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def launch(self, *arguments: str, root: Path) -> None:
        """Run instancectl of a source tree."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "instancectl.main", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=clean_environment(root) | self.environment,
                cwd=root,
            )

    async def status(self) -> dict[str, Any]:
        """What `instancectl status -o json` prints; empty while nobody answers."""
        try:
            answer = await ask(self._socket, "status")
        except OSError:
            return {}
        return answer if isinstance(answer, dict) else {}

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


class Ctl(AgentProcess):
    """One `instancectl run`.

    Attributes:
        root: the source tree that its next start runs: another version lies elsewhere.
    """

    def __init__(self, directory: Path, *arguments: str) -> None:
        super().__init__(directory, directory / "instancectl.sock")
        self.root = ROOT
        self._arguments = arguments

    async def start(self, *more: str) -> Ctl:
        lenient = LENIENT if self.root == ROOT else ()  # the last release takes no such flags
        arguments = ("run", "--dir", str(self.directory), *lenient, *self._arguments, *more)
        await self.launch(*arguments, root=self.root)
        return self

    async def revision(self, revision_id: str) -> dict[str, Any]:
        found = await self.status()
        return next((r for r in found.get("revisions", []) if r["id"] == revision_id), {})

    async def condition(self, revision_id: str, name: str) -> dict[str, Any]:
        status = (await self.revision(revision_id)).get("status", {})
        found: dict[str, Any] = status.get(name, {})
        return found

    async def until(self, revision_id: str, name: str, *, holds: bool = True, reason: str = "") -> dict[str, Any]:
        """Wait for a condition of a revision, and return it."""

        async def seen() -> dict[str, Any] | None:
            found = await self.condition(revision_id, name)
            is_so = found.get("status") == ("CONDITION_STATUS_TRUE" if holds else "CONDITION_STATUS_FALSE")
            return found if is_so and reason in ("", found.get("reason")) else None

        try:
            found: dict[str, Any] = await eventually(seen, what=f"{revision_id} {name}={holds} {reason}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.status()}\n{self.log_text()}") from None
        return found

    async def container_pid(self, revision_id: str = "r1") -> int:
        """Process id of the first container, which must run."""
        pid = (await self.revision(revision_id))["containers"][0]["pid"]
        assert isinstance(pid, int)
        return pid

    async def container(self, revision_id: str = "r1") -> dict[str, Any]:
        """The status of the first container as HQ is told of it."""
        found: dict[str, Any] = (await self.revision(revision_id)).get("status", {}).get("container", [{}])[0]
        return found

    def container_log(self, revision_id: str = "r1", container: str = "main") -> str:
        path = self.directory / "logs" / revision_id / f"{container}.log"
        return path.read_text() if path.exists() else ""

    def processes(self) -> list[int]:
        """Living processes of this instance, whoever their parent is."""
        try:
            owner = json.loads((self.directory / "state.json").read_text())["owner"]
        except (OSError, ValueError):
            return []
        return [pid for pid in procfs.pids_with_mark(f"{owner}.") if is_alive(pid)]

    async def clean_up(self) -> None:
        """Leave nothing running, whatever the test did."""
        try:
            await self.terminate()
        except TimeoutError:
            await self.kill()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether there is such a process, and it is no zombie."""
    found = procfs.stat(pid)
    return found is not None and found.state not in "ZX"


def instance(*revisions: model.InstanceRevision, instance_id: str = "i-1", port: int = 0) -> model.Instance:
    """An instance on NODE; `port` becomes its port `http`."""
    made = model.Instance()
    made.meta.id, made.meta.service_id = instance_id, "svc"
    made.spec.node_name = NODE
    if port:
        made.spec.allocation.port.add(name="http", number=port)
    made.spec.revision.extend(revisions)
    return made


def revision(revision_id: str = "r1", script: str = "exec sleep 600", *, ready: bool = True) -> model.InstanceRevision:
    """A revision with one container, `main`, that runs a shell script."""
    made = model.InstanceRevision(id=revision_id, target=READY if ready else INSTALLED)
    container = made.container.add(name="main", command=["sh", "-c", script])
    container.stop_grace_period.FromMilliseconds(500)
    container.drain_period.FromMilliseconds(0)  # nobody follows; test_drain.py has one who does
    return made


def draining(revision_id: str = "r1") -> model.InstanceRevision:
    """One that its users have six seconds to leave."""
    made = revision(revision_id)
    made.container[0].drain_period.FromMilliseconds(6000)
    return made


def write(path: Path, what: model.Instance) -> Path:
    """Write an instance as instancectl reads it."""
    temporary = path.with_suffix(".new")
    temporary.write_text(json_format.MessageToJson(what))
    temporary.replace(path.with_suffix(".json"))
    return path.with_suffix(".json")


def free_port() -> int:
    """One that nobody else gets."""
    return kept_ports()[0]
