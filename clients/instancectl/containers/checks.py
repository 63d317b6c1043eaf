"""Checks (command, TCP, HTTP, gRPC): one check, when the next is due, and how many in a row count."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped,unused-ignore]

from hqclient.links import insecure_channel
from hqpb.v1.instance_pb2 import GrpcCheck, ReadinessCheck
from instancectl.content import PrepareFailed
from instancectl.content.guard import Guard
from instancectl.content.http_source import is_of_the_link
from instancectl.processes.commands import Commands
from instancectl.processes.limits import Grip
from instancectl.wanted.desired import Desired

_GOOD = range(200, 400)
DEFAULT_PERIOD_S = 10.0
DEFAULT_TIMEOUT_S = 1.0
DEFAULT_FAILURES = 3
DEFAULT_SUCCESSES = 1
_MIN_PERIOD_S = 0.05
_threads = ThreadPoolExecutor(64, "resolve")
_is_path = re.compile(r"/[!-~]*").fullmatch
_FAULTS = (
    OSError,
    TimeoutError,
    ValueError,
    asyncio.IncompleteReadError,
    asyncio.LimitOverrunError,
    grpc.RpcError,
)


class Checker:
    """Checks containers of one revision."""

    def __init__(self, desired: Desired, commands: Commands, guard: Guard, cwd: Path) -> None:
        self._desired = desired
        self._guard = guard
        self._commands = commands
        self._cwd = cwd
        self._looking_up: asyncio.Future[Any] | None = None

    async def passes(
        self, check: ReadinessCheck, environment: Mapping[str, str], timeout_s: float, limits: Callable[[], Grip] = Grip
    ) -> bool:
        """Whether one check passes within its time. A port that was not allocated does not pass.

        Args:
            limits: prepares the limits of a command; may raise OSError.
        """
        if check.WhichOneof("check") == "exec":
            return await self._runs(check, environment, timeout_s, limits)
        try:
            async with asyncio.timeout(timeout_s):
                if check.WhichOneof("check") == "tcp":
                    return await self._accepts(check.tcp.port)
                if check.WhichOneof("check") == "grpc":
                    return await self._serves(check.grpc)
                return await self._answers(check.http.port, check.http.path or "/")
        except _FAULTS:
            return False

    async def _runs(
        self, check: ReadinessCheck, environment: Mapping[str, str], timeout_s: float, limits: Callable[[], Grip]
    ) -> bool:
        try:
            outcome = await self._commands.run(
                check.exec.command,
                cwd=self._cwd,
                environment=environment,
                timeout_s=timeout_s,
                thorough=False,
                confinement=self._guard.confinement(self._desired, None, self._cwd),
                grip=limits(),
            )
        except (OSError, PrepareFailed):
            return False
        return outcome.succeeded

    async def _accepts(self, port: str) -> bool:
        _, writer = await self._connect(port)
        await _close(writer)
        return True

    async def _answers(self, port: str, path: str) -> bool:
        if not _is_path(path):  # an older HQ accepts any text, which could be another request
            return False
        reader, writer = await self._connect(port)
        try:
            host = self._desired.host
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            status_line = await reader.readuntil(b"\n")
            return int(status_line.split()[1]) in _GOOD
        except IndexError:
            return False
        finally:
            await _close(writer)

    async def _serves(self, check: GrpcCheck) -> bool:
        _, writer = await self._connect(check.port)
        host, number = writer.get_extra_info("peername")[:2]
        await _close(writer)
        async with insecure_channel(f"[{host}]:{number}" if ":" in host else f"{host}:{number}") as channel:
            question = health_pb2.HealthCheckRequest(service=check.service)
            answer = await health_pb2_grpc.HealthStub(channel).Check(question)
            return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def _connect(self, port: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the instance's first address that answers, without resolving it once more. Raises OSError."""
        number = self._desired.port(port)
        if number is None:
            raise ConnectionRefusedError(f"no port {port} was allocated")
        host = self._desired.host.removeprefix("[").removesuffix("]")
        failure: OSError = ConnectionRefusedError(f"{host} is no address of an instance")
        for address in await self._addresses(host, number):
            if not is_of_the_link(address):
                try:
                    return await asyncio.open_connection(address, number)
                except OSError as error:
                    failure = error
        raise failure

    async def _addresses(self, host: str, number: int) -> list[str]:
        """A host's addresses. A name that cannot be resolved keeps one thread busy, however many checks ask for it.

        Raises OSError.
        """
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass
        if self._looking_up is None or self._looking_up.done():
            look_up = partial(socket.getaddrinfo, host, number, type=socket.SOCK_STREAM)
            self._looking_up = asyncio.get_running_loop().run_in_executor(_threads, look_up)
            self._looking_up.add_done_callback(_note_end)
        return [str(entry[4][0]) for entry in await asyncio.shield(self._looking_up)]


def _note_end(looking_up: asyncio.Future[Any]) -> None:
    if not looking_up.cancelled():
        looking_up.exception()  # if no check waits for it any more, nobody else looks at it


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When to check, in seconds, and how many results in a row count."""

    initial_delay_s: float
    period_s: float
    timeout_s: float
    failures: int
    successes: int


def rhythm(check: ReadinessCheck) -> Rhythm:
    """The timing of a check, with the model's defaults."""
    return Rhythm(
        check.initial_delay.ToTimedelta().total_seconds(),
        max(_MIN_PERIOD_S, check.period.ToTimedelta().total_seconds() or DEFAULT_PERIOD_S),
        check.timeout.ToTimedelta().total_seconds() or DEFAULT_TIMEOUT_S,
        check.failure_threshold or DEFAULT_FAILURES,
        check.success_threshold or DEFAULT_SUCCESSES,
    )


class Readiness:
    """Whether a running container is ready, given the results of its checks.

    Args:
        is_ready, failures: what an earlier supervisor found; it holds until enough checks say otherwise.
    """

    def __init__(self, rhythm: Rhythm, *, is_ready: bool = False, failures: int = 0) -> None:
        self._rhythm = rhythm
        self._in_a_row = failures
        self._last = False if failures else None
        self.is_ready = is_ready

    @property
    def failures(self) -> int:
        """How many checks in a row have failed since it was found ready."""
        return self._in_a_row if self.is_ready and self._last is False else 0

    def record_result(self, passed: bool) -> bool:
        """Take a result; return whether readiness changed."""
        self._in_a_row = self._in_a_row + 1 if passed is self._last else 1
        self._last = passed
        needed = self._rhythm.successes if passed else self._rhythm.failures
        if passed is self.is_ready or self._in_a_row < needed:
            return False
        self.is_ready = passed
        return True
