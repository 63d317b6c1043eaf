"""Runs a program per operation: arguments without a shell, a timeout, its output kept."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from walle.executors.port import ExecutorFailure, PollResult, WorkProgress
from walle.executors.values import field_of, listed_bmc, value_of
from walle.outgoing.destinations import NOWHERE, Destinations
from wallepb.v1.host_pb2 import Host

_KEPT_BYTES: Final = 4096
_REAPER: Final = (sys.executable, "-I", str(Path(__file__).with_name("reaper.py")))  # all that it starts ends with it
_ENDING_S: Final = 10.0  # for the reaper to end what it runs
_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")  # the rest may hold Wall-E's own credentials


@dataclass(frozen=True, slots=True)
class CommandConfig:
    """A program. {host}, {bmc}, {inventory}, {operation} and {id} stand for whole arguments.

    Attributes:
        repeatable: it may be run again when the process that ran it died; otherwise the check decides the outcome.
    """

    argv: tuple[str, ...]
    timeout_s: float = 3600.0
    repeatable: bool = False


class Command:
    """The executor. Programs are children of this process: only this process knows their outcome."""

    def __init__(self, name: str, config: CommandConfig, destinations: Destinations = NOWHERE) -> None:
        self.name, self._config, self._destinations = name, config, destinations
        self._mine = secrets.token_hex(8)
        self._runs: dict[str, asyncio.Task[PollResult]] = {}

    async def progress_marker(self, host: Host) -> str:
        self._arguments(host)
        return host.boot_id

    async def begin(self, host: Host) -> str:
        operation = host.operation
        argv = self._arguments(host)
        if shutil.which(argv[0]) is None:
            raise ExecutorFailure(f"{argv[0]}: No such file, or it is not executable")
        try:
            process = await asyncio.create_subprocess_exec(
                *_REAPER,
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                env=_environment(host),
            )
        except OSError as error:
            raise ExecutorFailure(f"{argv[0]}: {error.strerror}") from error
        self._runs[operation.id] = asyncio.create_task(self._follow(process), name=f"{self.name} {host.name}")
        return self._mine

    async def poll(self, host: Host, age_s: float) -> PollResult:
        operation = host.operation
        run = self._runs.get(operation.id)
        if operation.intent.handle == self._mine and run is not None:
            if not run.done():
                return PollResult(WorkProgress.RUNNING)
            error = self._runs.pop(operation.id).exception()
            return (
                run.result()
                if error is None
                else PollResult(WorkProgress.UNKNOWN, f"it could not be followed: {error}")
            )
        if self._config.repeatable:
            return PollResult(WorkProgress.NOT_BEGUN)
        return PollResult(WorkProgress.UNKNOWN, "the process that ran it has ended")

    async def close(self) -> None:
        """Running programs end with this process."""
        for run in self._runs.values():
            run.cancel()
        await asyncio.gather(*self._runs.values(), return_exceptions=True)

    def _arguments(self, host: Host) -> list[str]:
        return [self._argument(part, host) for part in self._config.argv]

    def _argument(self, part: str, host: Host) -> str:
        field = field_of(part)
        if not field:
            return part
        return listed_bmc(host, self._destinations) if field == "bmc" else value_of(field, host)

    async def _follow(self, process: asyncio.subprocess.Process) -> PollResult:
        output = bytearray()
        try:
            async with asyncio.timeout(self._config.timeout_s):
                assert process.stdout is not None
                while part := await process.stdout.read(65536):
                    output = (output + part)[-_KEPT_BYTES:]
                code = await process.wait()
        except TimeoutError:
            return PollResult(WorkProgress.FAILED, f"not finished within {self._config.timeout_s:g} s\n{_text(output)}")
        finally:
            await _end(process)
        return PollResult(WorkProgress.DONE if code == 0 else WorkProgress.FAILED, f"exit code {code}\n{_text(output)}")


def _environment(host: Host) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return kept | {"WALLE_OPERATION_ID": host.operation.id, "WALLE_HOST": host.name}


async def _end(process: asyncio.subprocess.Process) -> None:
    """Have the reaper end all that it runs, and wait for it."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_ENDING_S):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _text(output: bytes | bytearray) -> str:
    return output.decode("utf-8", "replace")
