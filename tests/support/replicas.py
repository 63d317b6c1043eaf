"""Replicas as real processes, `hq serve` as an operator would start it, and plain gRPC and HTTP to speak with them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import ssl
import sys
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc

from hqpb.v1 import admin_stubs, service_stubs
from tests.support.process_ids import wait_until_stopped

START_S = 60.0
_LISTENING = re.compile(rb"listening: gRPC (\S+), HTTP (\S+)")


class ReplicaProcess:
    """One `hq serve` on free ports. Knows its addresses once it listens; ends with the test, by process id.

    `launch` starts the command line, `root` is the source tree that it runs from: another version lies elsewhere.
    `enter` are the words before all of it, which make it run in another namespace.

    Attributes:
        ca: the authority of its certificate, if it was started with one: its pages are asked for with TLS.
    """

    def __init__(
        self,
        etcd: Sequence[str],
        prefix: str,
        log: Path,
        flags: Sequence[str] = (),
        launch: Sequence[str] = ("-m", "hq.main"),
        root: Path | None = None,
        enter: Sequence[str] = (),
    ) -> None:
        self._etcd, self._prefix, self._log, self._flags = list(etcd), prefix, log, list(flags)
        self._launch, self._root, self._enter = list(launch), root or _ROOT, list(enter)
        self._process: asyncio.subprocess.Process | None = None
        self.grpc = self.http = ""
        self.ca: Path | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, *, until_ready: bool = True) -> None:
        """Return when it listens, and unless told otherwise when it can serve reads."""
        arguments = ["--etcd", ",".join(self._etcd), "--prefix", self._prefix, *self._flags]
        env = {k: v for k, v in os.environ.items() if not k.startswith("HQ_")}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._enter, sys.executable, *self._launch, "serve"),
                *("--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **env,
                    "PYTHONPATH": os.pathsep.join(
                        (str(self._root), str(self._root / "proto"), str(self._root / "clients"))
                    ),
                },
                cwd=self._root,
            )
        begins = self._log.stat().st_size
        async with asyncio.timeout(START_S):
            while True:
                assert self._process.returncode is None, self.log_text()
                found = _LISTENING.search(self._log.read_bytes()[max(0, begins - 4096) :])
                if found:
                    break
                await asyncio.sleep(0.05)
            self.grpc, self.http = found[1].decode(), found[2].decode()
            while until_ready and (await self.get("/readyz"))[0] != 200:
                await asyncio.sleep(0.05)

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    async def ended(self, timeout_s: float = 30.0) -> int:
        """Wait until it has ended of itself; return the exit code."""
        assert self._process is not None
        async with asyncio.timeout(timeout_s):
            return await self._process.wait()

    async def terminate(self, timeout_s: float = 45.0) -> int:
        """SIGTERM; return the exit code."""
        return await self._end(signal.SIGTERM, timeout_s)

    async def kill(self) -> None:
        """SIGKILL, if it still runs."""
        await self._end(signal.SIGKILL, 45.0)

    def pause(self) -> None:
        """SIGSTOP; nothing of it runs any more when this returns."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_until_stopped(self.pid)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def _end(self, number: signal.Signals, timeout_s: float) -> int:
        process = self._process
        if process is None:
            return 0
        if process.returncode is None:
            process.send_signal(number)
            if number is signal.SIGKILL:
                process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(timeout_s):
            return await process.wait()

    async def get(self, path: str) -> tuple[int, str]:
        """A GET over HTTP: status and body."""
        return await asyncio.to_thread(_request, f"{self._scheme}://{self.http}{path}", None, self.ca)

    async def post(self, method: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """A call in JSON as curl would send it: `post("FindInstances", {...})`."""
        url = f"{self._scheme}://{self.http}/hq.v1.InstanceService/{method}"
        status, body = await asyncio.to_thread(_request, url, json.dumps(request).encode(), self.ca)
        return status, json.loads(body)

    @property
    def _scheme(self) -> str:
        return "https" if self.ca else "http"

    @asynccontextmanager
    async def stub(self) -> AsyncIterator[service_stubs.InstanceServiceStub]:
        """The generated client of InstanceService, on a connection of its own."""
        async with _channel(self.grpc) as channel:
            yield service_stubs.InstanceServiceStub(channel)

    @asynccontextmanager
    async def admin(self) -> AsyncIterator[admin_stubs.AdminServiceStub]:
        """The generated client of AdminService."""
        async with _channel(self.grpc) as channel:
            yield admin_stubs.AdminServiceStub(channel)


class Replicas:
    """Starts replicas over one store and ends them all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started: list[ReplicaProcess] = []

    async def start(
        self, etcd: Sequence[str], prefix: str = "/hq/v1/", *flags: str, until_ready: bool = True
    ) -> ReplicaProcess:
        """One more replica."""
        log = self._directory / f"replica-{len(self._started)}.log"
        replica = ReplicaProcess(etcd, prefix, log, flags)
        self._started.append(replica)
        await replica.start(until_ready=until_ready)
        return replica

    async def __aenter__(self) -> Replicas:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for replica in self._started:
            await replica.kill()


_ROOT = Path(__file__).resolve().parent.parent.parent


def _channel(address: str) -> grpc.aio.Channel:
    options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.insecure_channel(address, options=options)


def _request(url: str, body: bytes | None, ca: Path | None) -> tuple[int, str]:
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if ca is not None:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(ca))))
    direct = urllib.request.build_opener(*handlers)
    request = urllib.request.Request(url, body, {"content-type": "application/json"} if body is not None else {})
    try:
        with direct.open(request, timeout=15) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
