"""Runs a program per operation: arguments without a shell, a timeout, its output kept.

A program goes on when Wall-E dies (reaper.py), and the next process on this machine finds it again: each has a file by
the id of its operation, locked while it runs, in which its end is written.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from walle.executors.port import ExecutorFailure, PollResult, WorkProgress
from walle.executors.values import field_of, listed_bmc, value_of
from walle.outgoing.destinations import NOWHERE, Destinations
from wallepb.v1.host_pb2 import Host

_REAPER: Final = (sys.executable, "-I", str(Path(__file__).with_name("reaper.py")))  # all that it starts ends with it
_ENDING_S: Final = 10.0  # for the reaper to end what it runs
_KEPT_S: Final = 2 * 86_400  # files of programs that have ended; an operation fails after a day
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


class _Child(NamedTuple):
    """A program that this process has begun, and the task that waits for its end."""

    process: asyncio.subprocess.Process
    waiting: asyncio.Task[int]


class Command:
    """The executor. Only processes on this machine see what becomes of a program."""

    def __init__(
        self, name: str, config: CommandConfig, destinations: Destinations = NOWHERE, runs: Path | None = None
    ) -> None:
        """`runs`: the folder of the programs' files; default: `default_runs()`."""
        self.name, self._config, self._destinations = name, config, destinations
        self._runs = runs or default_runs()
        self._children: dict[str, _Child] = {}  # by operation, until they have ended

    async def progress_marker(self, host: Host) -> str:
        self._arguments(host)
        return host.boot_id

    async def begin(self, host: Host) -> str:
        operation, argv = host.operation, self._arguments(host)
        if shutil.which(argv[0]) is None:
            raise ExecutorFailure(f"{argv[0]}: No such file, or it is not executable")
        try:
            _prepare(self._runs)
            with (self._runs / operation.id).open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # shared with the child: it lasts as long as the child
                child = await asyncio.create_subprocess_exec(
                    *_REAPER,
                    str(file.fileno()),
                    str(self._config.timeout_s),
                    *argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    pass_fds=(file.fileno(),),
                    env=_environment(host),
                )
        except BlockingIOError:
            raise ExecutorFailure(f"{argv[0]} still runs for this operation") from None
        except OSError as error:
            raise ExecutorFailure(f"{error.filename or argv[0]}: {error.strerror or error}") from error
        waiting = asyncio.create_task(child.wait(), name=f"{self.name} {host.name}")
        self._children[operation.id] = _Child(child, waiting)
        waiting.add_done_callback(lambda _: self._children.pop(operation.id))
        return socket.gethostname()

    async def poll(self, host: Host, age_s: float) -> PollResult:
        operation = host.operation
        try:
            ended = _read_end(self._runs / operation.id)
        except BlockingIOError:
            return PollResult(WorkProgress.RUNNING)
        if operation.id in self._children:  # it has just ended
            return PollResult(WorkProgress.RUNNING)
        if ended is None:
            if self._config.repeatable:
                return PollResult(WorkProgress.NOT_BEGUN)
            where = operation.intent.handle or "another machine"
            return PollResult(WorkProgress.UNKNOWN, f"it was stopped, or ran on {where}")
        if ended["code"] is None:
            return PollResult(
                WorkProgress.FAILED, f"not finished within {self._config.timeout_s:g} s\n{ended['output']}"
            )
        progress = WorkProgress.FAILED if ended["code"] else WorkProgress.DONE
        return PollResult(progress, f"exit code {ended['code']}\n{ended['output']}")

    async def close(self) -> None:
        """Programs that this process has begun end with it, if it ends in order."""
        await asyncio.gather(*(_end(child.process) for child in [*self._children.values()]))

    def _arguments(self, host: Host) -> list[str]:
        return [self._argument(part, host) for part in self._config.argv]

    def _argument(self, part: str, host: Host) -> str:
        field = field_of(part)
        if not field:
            return part
        return listed_bmc(host, self._destinations) if field == "bmc" else value_of(field, host)


def default_runs() -> Path:
    """Where files of programs are: in the state folder of the unit, else in one of this user's for temporary files."""
    state = os.environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(state, "programs") if state else Path(tempfile.gettempdir(), f"walle-programs-{os.getuid()}")


def _prepare(runs: Path) -> None:
    """Make the folder, and remove old files. Raises OSError: the folder is not ours alone."""
    runs.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = runs.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(1, "is not a folder of Wall-E's user alone (chmod 700)", str(runs))
    before = time.time() - _KEPT_S
    for file in runs.iterdir():
        with suppress(OSError):  # another process removed it, or it is still locked
            if file.stat().st_mtime < before:
                _read_end(file)
                file.unlink()


def _read_end(file: Path) -> dict[str, Any] | None:
    """How the program ended; None: nobody wrote that. Raises BlockingIOError: it runs."""
    try:
        with file.open() as opened:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            text = opened.read()
    except FileNotFoundError:
        return None
    try:
        ended: dict[str, Any] = json.loads(text)
    except ValueError:  # it was stopped before it ended, or while it wrote
        return None
    return ended


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
