"""Runs a program per operation: arguments without a shell, a timeout, its output kept."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from walle.executors.port import ExecutorFailure, Progress, Seen
from walle.tables import NAMES
from wallepb.v1.host_pb2 import Host

_KEPT_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class CommandConfig:
    """A program. Arguments may hold {host}, {bmc}, {inventory}, {operation} and {id}.

    Attributes:
        repeatable: it may be run again when the process that ran it died; otherwise the check decides the outcome.
    """

    argv: Sequence[str]
    timeout_s: float = 3600.0
    repeatable: bool = False


class Command:
    """The executor. Programs are children of this process: only this process knows their outcome."""

    def __init__(self, name: str, config: CommandConfig) -> None:
        self.name, self._config = name, config
        self._mine = secrets.token_hex(8)
        self._runs: dict[str, asyncio.Task[Seen]] = {}

    async def before(self, host: Host) -> str:
        return host.boot_id

    async def begin(self, host: Host) -> str:
        operation = host.operation
        filled = {
            "host": host.name,
            "bmc": host.bmc,
            "inventory": host.inventory,
            "operation": NAMES[operation.kind],
            "id": operation.id,
        }
        argv = [part.format(**filled) for part in self._config.argv]
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=os.environ | {"WALLE_OPERATION_ID": operation.id, "WALLE_HOST": host.name},
            )
        except OSError as error:
            raise ExecutorFailure(f"{argv[0]}: {error.strerror}") from error
        self._runs[operation.id] = asyncio.create_task(self._follow(process), name=f"{self.name} {host.name}")
        return self._mine

    async def look(self, host: Host, age_s: float) -> Seen:
        operation = host.operation
        run = self._runs.get(operation.id)
        if operation.intent.handle == self._mine and run is not None:
            return self._runs.pop(operation.id).result() if run.done() else Seen(Progress.RUNNING)
        if self._config.repeatable:
            return Seen(Progress.NOT_BEGUN)
        return Seen(Progress.DONE, "the process that ran it has ended; its check will show whether it helped")

    async def close(self) -> None:
        """Running programs end with this process."""
        for run in self._runs.values():
            run.cancel()
        await asyncio.gather(*self._runs.values(), return_exceptions=True)

    async def _follow(self, process: asyncio.subprocess.Process) -> Seen:
        output = bytearray()
        try:
            async with asyncio.timeout(self._config.timeout_s):
                assert process.stdout is not None
                while part := await process.stdout.read(65536):
                    output = (output + part)[-_KEPT_BYTES:]
                code = await process.wait()
        except TimeoutError:
            return Seen(Progress.FAILED, f"not finished within {self._config.timeout_s:g} s\n{_text(output)}")
        finally:
            await _end(process)
        return Seen(Progress.DONE if code == 0 else Progress.FAILED, f"exit code {code}\n{_text(output)}")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _text(output: bytes | bytearray) -> str:
    return output.decode("utf-8", "replace")
