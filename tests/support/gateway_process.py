"""An HQ over memory, the instances that a test puts there, and gateways before it: real processes on free ports."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from hqclient import Client
from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.support.process_ids import wait_until_stopped
from tests.support.reserved_port import quiet_port

ROOT: Final = Path(__file__).resolve().parents[2]
_START_S: Final = 60.0
_LISTENING: Final = re.compile(r"listening: gRPC (\S+), HTTP (\S+?)(?:,|\s|$)", re.MULTILINE)
_SERVES: Final = re.compile("Ctrl-C stops it")
_DNS: Final = re.compile(r"answering DNS for \S+ on (\S+)$", re.MULTILINE)
_TRUE, _FALSE = instance_pb2.CONDITION_STATUS_TRUE, instance_pb2.CONDITION_STATUS_FALSE


class Program:
    """One of our commands as a process; what it says goes to a file. `root`: the source tree that it runs.

    Attributes:
        grpc, http: where it listens, once it does.
    """

    def __init__(self, module: str, arguments: Iterable[str], log: Path, root: Path = ROOT) -> None:
        self._module, self._arguments, self.log, self._root = module, list(arguments), log, root
        self._process: asyncio.subprocess.Process | None = None
        self.grpc = self.http = ""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Return when it listens."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("HQ_")}
        path = os.pathsep.join(str(self._root / folder) for folder in ("", "proto", "clients"))
        with self.log.open("wb") as to:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", self._module, *self._arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=to,
                stderr=to,
                env={**env, "PYTHONPATH": path},
                cwd=self._root,
            )
        found = await self.says(_LISTENING)
        self.grpc, self.http = found[1], found[2]

    async def says(self, words: re.Pattern[str]) -> re.Match[str]:
        """Return when its log does."""
        assert self._process is not None
        async with asyncio.timeout(_START_S):
            while (found := words.search(self.log.read_text(errors="replace"))) is None:
                assert self._process.returncode is None, self.log.read_text(errors="replace")
                await asyncio.sleep(0.02)
        return found

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str, dict[str, str]]:
        """A GET over HTTP: status, body, and headers with names in lower case."""
        return await asyncio.to_thread(fetched, f"http://{self.http}{path}", headers or {})

    def pause(self) -> None:
        """SIGSTOP; nothing of it runs any more when this returns."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_until_stopped(self.pid)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def kill(self) -> None:
        """SIGKILL, if it still runs."""
        await self._end(signal.SIGKILL)

    async def terminate(self) -> int:
        """SIGTERM; the exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        process = self._process
        if process is None:
            return 0
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)  # first: a signal to one that has ended loses its exit code
            process.send_signal(number)
        async with asyncio.timeout(30):
            return await process.wait()


def _instance(
    id_: str, service: str, node: str, host: str, port: int = 80, revision: str = "r1"
) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id = id_, service
    made.spec.node_name, made.spec.allocation.host = node, host
    made.spec.allocation.port.add(name="http", number=port)
    made.spec.revision.add(id=revision, target=instance_pb2.REVISION_TARGET_READY)
    return made


def _status(revision: str, incarnation: int, sequence: int, *, is_ready: bool = True) -> instance_pb2.RevisionStatus:
    status = instance_pb2.RevisionStatus(id=revision, incarnation=incarnation, sequence=sequence)
    status.installed.status = _TRUE
    status.ready.status = _TRUE if is_ready else _FALSE
    return status


class Registry(Program):
    """`hq dev` over memory, and what is in it."""

    def __init__(self, directory: Path, name: str = "hq", cluster: str = "default", *flags: str) -> None:
        arguments = ("dev", "--store", "memory", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *flags)
        super().__init__("hq.main", (*arguments, "--cluster", cluster), directory / f"{name}.log")
        self._sequence = self._marks = 0

    @property
    def client(self) -> Client:
        return self._client

    async def weigh(self, id_: str, weight: int) -> None:
        """Give an instance a weight."""
        made = instance_pb2.Instance()
        made.meta.id, made.spec.weight = id_, weight
        await self._client.update(made, fields=("spec.weight",))

    async def start(self) -> None:
        await super().start()
        await self.says(_SERVES)
        self._client = Client([self.grpc])
        self._reporting: dict[str, tuple[int, int]] = {}

    async def put(
        self,
        id_: str,
        service: str = "web",
        *,
        host: str = "127.0.0.1",
        port: int = 80,
        revision: str = "r1",
        is_ready: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """An instance with a port `http` of this number, reported ready or not."""
        made = _instance(id_, service, f"node-{id_}", host, port, revision)
        made.meta.labels.update(labels or {})
        [result] = (await self._client.apply([made])).result
        assert not result.error.message, result.error
        self._reporting.pop(id_, None)
        await self.report(id_, is_ready=is_ready, revision=revision)

    async def put_many(self, hosts: Mapping[str, str], service: str = "web") -> None:
        """Ready instances of one node, by id: their hosts."""
        every = list(hosts)
        for ids in (every[at : at + 1_000] for at in range(0, len(every), 1_000)):
            await self._client.apply([_instance(id_, service, "node-of-many", hosts[id_]) for id_ in ids])
            begin = [pb.BeginReportingRequest(instance_id=id_, revision_id="r1", node="node-of-many") for id_ in ids]
            begun = (await self._client.begin_many(begin)).result
            reports = [
                pb.ReportStatusRequest(
                    instance_id=id_,
                    uid=one.answer.uid,
                    node="node-of-many",
                    revision=_status("r1", one.answer.incarnation, 1),
                )
                for id_, one in zip(ids, begun, strict=True)
            ]
            refused = [one.error for one in (await self._client.report_many(reports)).result if one.error.message]
            assert not refused, refused[0]

    async def report(self, id_: str, *, is_ready: bool, revision: str = "r1") -> None:
        """Its agent says that it is ready, or not."""
        node = f"node-{id_}"
        if id_ not in self._reporting:
            begun = await self._client.begin_reporting(id_, revision, node=node)
            self._reporting[id_] = begun.incarnation, begun.uid
        incarnation, uid = self._reporting[id_]
        self._sequence += 1
        status = _status(revision, incarnation, self._sequence, is_ready=is_ready)
        await self._client.report(id_, status, uid=uid, node=node)

    async def mark(self) -> str:
        """The id of one more instance, of a service that nobody asks for: who knows it knows all that came before."""
        self._marks += 1
        await self.put(id_ := f"mark-{self._marks}", "mark")
        return id_

    async def delete(self, id_: str) -> None:
        """It is no more."""
        await self._client.delete(id_)

    async def _end(self, number: signal.Signals) -> int:
        if self._process is not None and number is not signal.SIGSTOP:
            await self._client.close()
        return await super()._end(number)


class GatewayProcess(Program):
    """`hq-gateway KIND`.

    Attributes:
        dns: where it answers DNS, if it does.
    """

    def __init__(self, kind: str, hq: str, directory: Path, *flags: str, name: str = "") -> None:
        listening = {
            "dns": ("--dns", f"127.0.0.1:{quiet_port()}", "--max-queries-per-peer-s", "0"),
            "xds": ("--grpc", f"127.0.0.1:{quiet_port()}"),
            "consul": (),
        }[kind]
        which = () if any(flag in ("--service", "--all-services") for flag in flags) else ("--all-services",)
        arguments = (kind, "--hq", hq, "--http", f"127.0.0.1:{quiet_port()}", "--state-dir", str(directory / "state"))
        super().__init__("gateways.main", (*arguments, *listening, *which, *flags), directory / f"{name or kind}.log")
        self._kind = kind
        self.dns = ("", 0)

    async def start(self, *, until_ready: bool = True) -> None:
        await super().start()
        if self._kind == "dns":
            host, _, port = (await self.says(_DNS))[1].rpartition(":")
            self.dns = host, int(port)
        if until_ready:
            async with asyncio.timeout(_START_S):
                while (await self.get("/readyz"))[0] != 200:
                    await asyncio.sleep(0.02)

    @property
    def dns_address(self) -> str:
        """The same as host:port."""
        host, port = self.dns
        return f"{host}:{port}"

    async def again(self, *, until_ready: bool = True) -> None:
        """Start it anew, on the same addresses."""
        found = {"--grpc": self.grpc, "--http": self.http, "--dns": self.dns_address}
        arguments = self._arguments
        for flag, where in found.items():
            if flag in arguments:
                arguments[arguments.index(flag) + 1] = where
        await self.start(until_ready=until_ready)

    @property
    def _state(self) -> Path:
        return Path(self._arguments[self._arguments.index("--state-dir") + 1])

    def forget(self) -> None:
        """Delete the file of its last good list, while it does not run."""
        for kept in self._state.glob("*"):
            kept.unlink()

    async def has_saved_all_of(self, hq: Registry) -> None:
        """Return when the file of its last good list holds all that this HQ was told."""
        await self.is_saved(await hq.mark())

    async def is_saved(self, *words: str) -> None:
        """Return when the file of its last good list holds these."""

        def is_there() -> bool:
            return any(all(word in path.read_text() for word in words) for path in self._state.glob("*.json"))

        await until(is_there)


class Programs:
    """Starts programs and ends them all."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._started: list[Program] = []

    async def registry(self, name: str = "hq", cluster: str = "default", *flags: str) -> Registry:
        """One more HQ."""
        (self.directory / name).mkdir()
        started = Registry(self.directory / name, name, cluster, *flags)
        self._started.append(started)
        await started.start()
        return started

    async def add(self, program: Program) -> None:
        """Start another one, which ends with the others."""
        self._started.append(program)
        await program.start()

    async def gateway(
        self, kind: str, hq: Registry | str, *flags: str, name: str = "", until_ready: bool = True
    ) -> GatewayProcess:
        """One more gateway; those of one name share their state."""
        folder = self.directory / (name or kind)
        folder.mkdir(exist_ok=True)
        address = hq if isinstance(hq, str) else hq.grpc
        log_name = f"{name or kind}-{len(self._started)}"
        started = GatewayProcess(kind, address, folder, *flags, name=log_name)
        self._started.append(started)
        await started.start(until_ready=until_ready)
        return started

    async def federation(self, east: Registry, west: Registry) -> Program:
        """`hq-federated` over both."""
        config = self.directory / "federated.yaml"
        locations = {"east": {"replicas": [east.grpc]}, "west": {"replicas": [west.grpc]}}
        config.write_text(json.dumps({"locations": locations}))  # JSON is YAML
        arguments = ("--config", str(config), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
        started = Program("federated.main", arguments, self.directory / "federated.log")
        await self.add(started)
        return started

    async def end(self) -> None:
        """Kill whatever still runs."""
        for program in reversed(self._started):
            await program.kill()


@asynccontextmanager
async def programs(directory: Path) -> AsyncIterator[Programs]:
    """Programs until the end of the block."""
    started = Programs(directory)
    try:
        yield started
    finally:
        await started.end()


async def until(holds: Callable[[], bool], at_most_s: float = 30.0) -> None:
    """Return when it does."""
    async with asyncio.timeout(at_most_s):
        while not holds():
            await asyncio.sleep(0.01)


def fetched(url: str, headers: Mapping[str, str], method: str = "GET") -> tuple[int, str, dict[str, str]]:
    """Status, body, and headers with names in lower case."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    try:
        with direct.open(request, timeout=30) as answer:
            return answer.status, answer.read().decode(), {k.lower(): v for k, v in answer.headers.items()}
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), {k.lower(): v for k, v in error.headers.items()}
