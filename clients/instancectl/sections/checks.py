"""One readiness check: by a command, a TCP connection or an HTTP GET."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

from hqpb.v1.instance_pb2 import ReadinessCheck
from instancectl.processes.commands import Commands
from instancectl.wanted.desired import Desired

_GOOD = range(200, 400)


class Checker:
    """Checks sections of one revision."""

    def __init__(self, desired: Desired, commands: Commands, cwd: Path) -> None:
        self._desired = desired
        self._commands = commands
        self._cwd = cwd

    async def passes(self, check: ReadinessCheck, environment: Mapping[str, str], timeout_s: float) -> bool:
        """Whether one check passes within its time. A port that was not allocated does not pass."""
        if check.WhichOneof("check") == "exec":
            return await self._runs(check, environment, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                if check.WhichOneof("check") == "tcp":
                    return await self._accepts(check.tcp.port)
                return await self._answers(check.http.port, check.http.path or "/")
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            return False

    async def _runs(self, check: ReadinessCheck, environment: Mapping[str, str], timeout_s: float) -> bool:
        try:
            outcome = await self._commands.run(
                check.exec.command, cwd=self._cwd, environment=environment, timeout_s=timeout_s, thorough=False
            )
        except OSError:
            return False
        return outcome.succeeded

    async def _accepts(self, port: str) -> bool:
        _, writer = await self._connect(port)
        await _close(writer)
        return True

    async def _answers(self, port: str, path: str) -> bool:
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

    async def _connect(self, port: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        number = self._desired.port(port)
        if number is None:
            raise ConnectionRefusedError(f"no port {port} was allocated")
        return await asyncio.open_connection(self._desired.host, number)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
