"""The one handler of SIGCHLD: reaps every child of this process, whichever instance it belongs to."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess

from instancectl.processes import procfs
from instancectl.processes.child import Child, ProcessExit

_PR_SET_CHILD_SUBREAPER = 36


class ProcessReaper:
    """Reaps the children that were added, and orphans, whose subreaper this process becomes.

    Nothing else in this process may wait for children. Call `open` in the event loop first.
    """

    def __init__(self) -> None:
        self._alive: dict[int, tuple[Child, subprocess.Popen[bytes]]] = {}

    def open(self) -> None:
        """Become the subreaper of our descendants, and begin to reap."""
        _become_subreaper()
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)

    def close(self) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)

    def add(self, child: Child, popen: subprocess.Popen[bytes]) -> None:
        """Reap `child` when it ends, and tell it how it ended."""
        self._alive[child.pid] = (child, popen)

    def find(self, identity: procfs.ProcessId) -> Child | None:
        """The living child of this identity; None: it is not one of ours."""
        child, _ = self._alive.get(identity.pid, (None, None))
        return child if child is not None and child.identity == identity else None

    @property
    def marks(self) -> set[str]:
        """Marks of all living children."""
        return {child.mark for child, _ in self._alive.values()}

    def _reap(self) -> None:
        """Reap every child that ended; first kill its group, unless it is being stopped: its pid is not reused yet."""
        while True:
            try:
                info = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if info is None:
                return
            known = self._alive.pop(info.si_pid, None)
            if known is not None and not known[0].is_stopping:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(info.si_pid, signal.SIGKILL)
            _, status = os.waitpid(info.si_pid, 0)
            if known is not None:
                child, popen = known
                popen.returncode = os.waitstatus_to_exitcode(status)
                child.set_exit(ProcessExit.from_wait_status(status))


def _become_subreaper() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
