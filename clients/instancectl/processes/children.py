"""Starts the processes of one instance, each held back until it is recorded, and finds those that run already."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from instancectl.processes import procfs
from instancectl.processes.child import Child, adopt
from instancectl.processes.confinement import Confinement
from instancectl.processes.limits import Grip
from instancectl.processes.reaper import ProcessReaper

_LAUNCHER = Path(__file__).with_name("launcher.py")
_UNCONFINED = Confinement()


class Children:
    """The processes of one directory.

    Args:
        owner: a marker of the directory, in the environment of every process.
    """

    def __init__(self, owner: str, reaper: ProcessReaper) -> None:
        self._owner = owner
        self._reaper = reaper

    def start(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        output: int = subprocess.DEVNULL,
        errors: int = subprocess.STDOUT,
        grip: Grip | None = None,
        confinement: Confinement = _UNCONFINED,
        record: Callable[[Child], None] = lambda child: None,
    ) -> Child:
        """Start a command in its own session; it runs only after `record` has returned.

        Raises:
            OSError: it was not started.
        """
        grip = grip or Grip()
        mark = f"{self._owner}.{secrets.token_hex(8)}"
        leave, give = os.pipe()
        try:
            popen = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LAUNCHER), str(leave), *confinement.wrapper, *command],
                cwd=cwd,
                env={**environment, procfs.MARK_VARIABLE: mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                pass_fds=(leave,),
                start_new_session=True,
            )
            child = Child(procfs.identify(popen.pid), mark, grip)
            child.is_wrapped = bool(confinement.wrapper)
            self._reaper.add(child, popen)
            grip.take(popen.pid)
            record(child)
            os.write(give, " ".join(("go", *confinement.launcher_words(grip.resource_limits), "\n")).encode())
        except OSError:
            grip.let_go()
            raise
        finally:
            os.close(leave)
            os.close(give)
        return child

    def find(self, identity: procfs.ProcessId, mark: str, grip: Grip) -> Child | None:
        """A process that was started earlier, by us or by an earlier supervisor; None: it has ended. Raises OSError."""
        return self._reaper.find(identity) or adopt(identity, mark, grip)

    def strangers(self, adopted: Collection[str]) -> list[int]:
        """Processes of this instance that an earlier supervisor left behind, except those marked as `adopted`."""
        known = {*adopted, *self._reaper.marks}
        return sorted(pid for pid, mark in procfs.processes_with_mark(f"{self._owner}.") if mark not in known)
