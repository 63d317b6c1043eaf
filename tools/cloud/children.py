"""A process of the cloud that never outlives it, not even when the cloud dies of SIGKILL."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from store.embedded import etcd_parent
from tools.cloud.setting import ROOT, START_S

GRACE_S = 4.0
POLL_S = 0.05


class ChildFailed(Exception):
    """A process ended, or did not say in time what it should; the message carries the end of its log."""


class Child:
    """A Python module run as a process behind HQ's guard, in a session of its own: Ctrl-C does not reach it."""

    def __init__(self, name: str, module: str, arguments: Sequence[str], log_path: Path) -> None:
        self.name = name
        self._command = [sys.executable, "-m", module, *arguments]
        self._log_path = log_path
        self._log_from = 0
        self._guard: subprocess.Popen[bytes] | None = None
        self._pid = 0

    @property
    def is_running(self) -> bool:
        return self._guard is not None and self._guard.poll() is None

    async def start(self) -> None:
        """Spawn it; what it says is waited for with `says`."""
        await asyncio.to_thread(self._spawn)

    async def says(self, pattern: str) -> re.Match[str]:
        """Wait for a line of its log. Raises ChildFailed."""
        try:
            async with asyncio.timeout(START_S):
                while (found := re.search(pattern, self._log())) is None:
                    if not self.is_running:
                        raise self.failure("ended")
                    await asyncio.sleep(POLL_S)
                return found
        except TimeoutError:
            raise self.failure(f"is not ready after {START_S:.0f} s") from None

    def output(self) -> str:
        """What it has said since it was started."""
        return self._log()

    def failure(self, what: str) -> ChildFailed:
        """An error with the end of its log."""
        end = "\n".join(self._log().splitlines()[-8:])
        return ChildFailed(f"{self.name} {what}. The end of its log:\n{end}")

    async def kill(self) -> None:
        """SIGKILL, as in a crash; return when it is gone. Does nothing if it is not running."""
        if self.is_running and self._pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        await self.stop()

    async def stop(self) -> None:
        """SIGTERM, after a grace SIGKILL; return when it is gone. Does nothing if it is not running."""
        if self._guard is None:
            return
        assert self._guard.stdin is not None
        assert self._guard.stdout is not None
        self._guard.stdin.close()
        try:
            await asyncio.to_thread(self._guard.wait, GRACE_S + 3)
        except subprocess.TimeoutExpired:
            os.killpg(self._guard.pid, signal.SIGKILL)
            await asyncio.to_thread(self._guard.wait)
        self._guard.stdout.close()
        self._guard = None

    def _spawn(self) -> None:
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        with self._log_path.open("ab") as log:
            self._log_from = log.tell()
            self._guard = subprocess.Popen(
                [
                    sys.executable,
                    "-I",
                    "-S",
                    etcd_parent.__file__,
                    str(self._log_path),
                    str(GRACE_S),
                    "-",
                    *self._command,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
                env=_environment(),
                start_new_session=True,
            )
        assert self._guard.stdout is not None
        self._pid = int(self._guard.stdout.readline() or 0)

    def _log(self) -> str:
        try:
            return self._log_path.read_bytes()[self._log_from :].decode(errors="replace")
        except OSError:
            return ""


def _environment() -> dict[str, str]:
    """Our environment without HQ_*: what is set there for another HQ would configure this one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HQ_")}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients")))}
