"""Commands that run to their end: hooks, prepare scripts, checks, secret providers. All have a time limit."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from instancectl.background import start_in_own_thread
from instancectl.processes.child import Child, ProcessExit
from instancectl.processes.children import Children
from instancectl.processes.confinement import Confinement
from instancectl.processes.limits import Grip

_MAX_CAPTURED_BYTES = 1 << 20
_UNCONFINED = Confinement()


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended; `timed_out`: it was killed for taking too long. `output` only if it was captured."""

    exit: ProcessExit
    timed_out: bool = False
    output: bytes = b""

    @property
    def succeeded(self) -> bool:
        return self.exit.succeeded and not self.timed_out

    def __repr__(self) -> str:  # the output may be a secret
        return f"CommandResult({self})"

    def __str__(self) -> str:
        return "timed out and was killed" if self.timed_out else str(self.exit)


class Commands:
    """Runs commands one at a time per call; nothing in their process group is left when they return."""

    def __init__(self, children: Children) -> None:
        self._children = children

    async def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        timeout_s: float,
        output: int = subprocess.DEVNULL,
        thorough: bool = True,
        confinement: Confinement = _UNCONFINED,
        grip: Grip | None = None,
    ) -> CommandResult:
        """Run a command, its output going to a file descriptor.

        Args:
            thorough: also look for processes that it left in other sessions, which means scanning all processes.
            grip: its limits, of this run alone: whatever is in its cgroup is killed with it.

        Raises:
            OSError: it cannot be started.
        """
        child = self._children.start(
            command, cwd=cwd, environment=environment, output=output, confinement=confinement, grip=grip
        )
        return await _end_of(child, timeout_s, thorough)

    async def capture(
        self, command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], timeout_s: float
    ) -> CommandResult:
        """As `run`, with the standard output (at most 1 MiB) in the result; stderr is discarded. Raises OSError."""
        reader, writer = os.pipe()
        try:
            child = self._children.start(
                command, cwd=cwd, environment=environment, output=writer, errors=subprocess.DEVNULL
            )
        except OSError:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        reading = start_in_own_thread(lambda: _read_all(reader))
        try:
            outcome = await _end_of(child, timeout_s, thorough=True)
        finally:
            # Every process that held the pipe has been killed, so the reader ends.
            output = await reading
        return CommandResult(outcome.exit, outcome.timed_out, output)


async def _end_of(child: Child, timeout_s: float, thorough: bool) -> CommandResult:
    timed_out = False
    try:
        async with asyncio.timeout(timeout_s):
            await child.wait()
    except TimeoutError:
        timed_out = True
    finally:
        was_cut_off = not child.has_ended  # it took too long, or we are cancelled
        child.signal_all(signal.SIGKILL)
        if thorough or was_cut_off:
            child.sweep()
        child.let_go_at_end()
    return CommandResult(await child.wait(), timed_out)


def _read_all(reader: int) -> bytes:
    with os.fdopen(reader, "rb") as stream:
        captured = stream.read(_MAX_CAPTURED_BYTES)
        while stream.read(_MAX_CAPTURED_BYTES):
            pass  # over the limit: keep draining it, so that the command can end
    return captured
