"""A process that we started or found again: how it ended, waiting for it, signalling and stopping it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from instancectl.processes import procfs
from instancectl.processes.limits import Grip

NOT_EXECUTABLE, NOT_FOUND = 126, 127
_KILLED = 128


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """An exit code, a signal, or neither: an adopted process, as only its parent learns how it ended."""

    code: int | None = None
    signal: int | None = None

    @classmethod
    def from_wait_status(cls, status: int) -> ProcessExit:
        code = os.waitstatus_to_exitcode(status)
        return cls(code=code) if code >= 0 else cls(signal=-code)

    @property
    def succeeded(self) -> bool:
        return self.code == 0

    @property
    def reason(self) -> str:
        """Reason, one word in CamelCase."""
        if self.signal is not None:
            return "Killed"
        if self.code is None:
            return "UnknownEnd"
        return {0: "Completed", NOT_EXECUTABLE: "NotExecutable", NOT_FOUND: "NotFound"}.get(self.code, "Error")

    def __str__(self) -> str:
        if self.signal is not None:
            return f"was killed by {signal_name(self.signal)}"
        return "ended with unknown status" if self.code is None else f"exited with {self.code}"


def signal_name(number: int) -> str:
    """SIGKILL for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Child:
    """A process with its own session, so that a signal reaches all its descendants.

    Attributes:
        identity: outlives us; recorded before the command starts.
        mark: in the environment of all its descendants.
        is_wrapped: its leader is a runtime, which exits with 128 + N when its command was killed by signal N.
        is_stopping: the rest of its process group may outlive it, the leader: see `stop`.
    """

    def __init__(self, identity: procfs.ProcessId, mark: str, grip: Grip) -> None:
        self.identity = identity
        self.mark = mark
        self.grip = grip
        self.is_stopping = self.is_wrapped = False
        self._exit: asyncio.Future[ProcessExit] = asyncio.get_running_loop().create_future()

    def __repr__(self) -> str:
        state = f"{self._exit.result()}" if self._exit.done() else "runs"
        return f"Child({self.identity.pid}, {state})"

    @property
    def pid(self) -> int:
        return self.identity.pid

    @property
    def has_ended(self) -> bool:
        return self._exit.done()

    async def wait(self) -> ProcessExit:
        """How it ended. Its descendants may still run: see `sweep`."""
        return await asyncio.shield(self._exit)

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to its process group."""
        if not self.has_ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
        elif self.is_stopping:  # else nothing is left of the group
            for pid in procfs.pids_in_group(self.pid):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)

    async def wait_for_group(self) -> None:
        """Return when its process group is empty. Raises OSError: there are no descriptors left."""
        while pid := next(procfs.pids_in_group(self.pid), None):
            await _wait_for_end(pid)

    def sweep(self) -> int:
        """Kill what it left behind, in other groups and sessions too; return how many were found."""
        self.grip.kill()
        left = {*procfs.pids_with_mark(self.mark), *procfs.pids_in_session(self.pid)} - {os.getpid()}
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return len(left)

    def let_go_at_end(self) -> None:
        """Remove its cgroup: now, or once it has ended, even if nobody waits for that any more."""
        if self.has_ended:
            self.grip.let_go()
        else:
            self._exit.add_done_callback(lambda _: self.grip.let_go())

    def set_exit(self, how: ProcessExit) -> None:
        """Set how it ended; called by whoever finds out."""
        if self.is_wrapped and how.code is not None and _KILLED < how.code < _KILLED + signal.NSIG:
            how = ProcessExit(signal=how.code - _KILLED)
        if not self._exit.done():
            self._exit.set_result(how)


def adopt(identity: procfs.ProcessId, mark: str, grip: Grip) -> Child | None:
    """A process that an earlier supervisor started; None if it has ended. Its exit code will not be known.

    Raises:
        OSError: there are no descriptors left; it may run, so nothing may be started in its place.
    """
    try:
        watched = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return None
    # Checked after opening it, so the pid cannot have been reused in between.
    if not identity.exists():
        os.close(watched)
        return None
    child = Child(identity, mark, grip)
    loop = asyncio.get_running_loop()

    def on_exit() -> None:
        loop.remove_reader(watched)
        os.close(watched)
        child.set_exit(ProcessExit())

    loop.add_reader(watched, on_exit)
    return child


async def stop(
    child: Child,
    grace_s: float,
    script: Callable[[], Awaitable[object]] | None,
    number: signal.Signals = signal.SIGTERM,
) -> ProcessExit:
    """End a process and its descendants; return how it ended. If cancelled, it still kills them before it returns.

    The whole process group has the grace: a shell in front of a server ends at once, the server when it is done.
    """
    child.is_stopping = True
    try:
        child.signal_all(signal.SIGCONT)  # one that is stopped (SIGSTOP) could not end in order
        async with asyncio.timeout(grace_s):
            if script is not None and not child.has_ended:
                await script()
            child.signal_all(number)
            await child.wait()
            await child.wait_for_group()
    except OSError:  # a TimeoutError, or there were no descriptors to wait with
        pass
    finally:
        child.signal_all(signal.SIGKILL)
        child.sweep()
        child.let_go_at_end()
    return await child.wait()


async def _wait_for_end(pid: int) -> None:
    """Return when a process has ended, which need not be our child. Raises OSError."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(watched, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(watched)
        os.close(watched)
