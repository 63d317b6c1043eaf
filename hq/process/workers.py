"""`hq serve --workers N`: replicas on the same ports, each a process of its own, and their parent process.

The kernel spreads connections over them (SO_REUSEPORT). Workers are started as new interpreters, never forked, since
grpc's threads do not survive a fork. A worker listens only once it has loaded, and ends when its parent is gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from serving.process import when_told_to_stop

log = logging.getLogger(__name__)

_PAUSE_S = 1.0
_QUICK_S, _QUICK_ENDS = 10.0, 3  # after this many exits in a row, each this soon after its start, give up
_STOP_S = 10.0  # beyond the grace that workers give their calls


class Workers:
    """Starts the workers, starts them again when they end, and passes signals on.

    Attributes:
        restarts: how often one was started again.
    """

    def __init__(self, commands: Sequence[Sequence[str]], grace_s: float) -> None:
        """One command line for each worker."""
        self._commands, self._grace_s = commands, grace_s
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._exit_code = 0
        self.restarts = 0

    async def run(self) -> int:
        """Run the workers until SIGTERM or SIGINT, or until one will not stay up; return the exit code."""
        when_told_to_stop(self._stopping.set)
        keeping = [asyncio.create_task(self._keep(index)) for index in range(len(self._commands))]
        await self._stopping.wait()
        self._signal(signal.SIGTERM)
        _, late = await asyncio.wait(keeping, timeout=self._grace_s + _STOP_S)
        if late:
            log.error("%d workers did not stop in time: killing them", len(late))
            self._signal(signal.SIGKILL)
        await asyncio.gather(*keeping)
        return self._exit_code

    async def _keep(self, index: int) -> None:
        loop, quick = asyncio.get_running_loop(), 0
        while not self._stopping.is_set():
            began = loop.time()
            code = await self._run_one(index)
            if self._stopping.is_set():
                return
            quick = quick + 1 if loop.time() - began < _QUICK_S else 0
            if quick >= _QUICK_ENDS:
                log.error("worker %d keeps crashing: stopping the others too", index)
                self._exit_code = code if code > 0 else 1
                self._stopping.set()
                return
            self.restarts += 1
            log.error("worker %d ended with %s: restarting it (restart %d)", index, _words(code), self.restarts)
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_S):
                    await self._stopping.wait()

    async def _run_one(self, index: int) -> int:
        """Run one worker to its end; return the exit code, negative for a signal."""
        try:
            process = await asyncio.create_subprocess_exec(*self._commands[index], stdin=asyncio.subprocess.PIPE)
        except OSError as error:  # no memory, no more processes, or it is being upgraded: as if it had ended at once
            log.warning("worker %d cannot be started: %s", index, error)
            return 1
        self._running[index] = process
        log.info("worker %d is process %d", index, process.pid)
        if self._stopping.is_set():  # told to stop in the meantime
            process.terminate()
        code = await process.wait()
        del self._running[index]
        return code

    def _signal(self, number: signal.Signals) -> None:
        for process in self._running.values():
            with suppress(ProcessLookupError):
                process.send_signal(number)


class Ports:
    """The addresses that workers share, reserved against strangers: nobody listens on these sockets."""

    def __init__(self) -> None:
        self._held = ExitStack()

    def hold(self, address: str) -> str:
        """Reserve an address; return it with the port that was taken for port 0.

        Raises:
            OSError: it is in use.
        """
        host, _, port = address.rpartition(":")
        family, kind, protocol, _, where = socket.getaddrinfo(
            host.strip("[]") or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as alone:
            # Without SO_REUSEPORT first: another installation of ours would let us in.
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                alone.bind(where)
            except OSError as error:
                raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
            taken = alone.getsockname()
        shared = self._held.enter_context(socket.socket(family, kind, protocol))
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        shared.bind(taken)
        return f"{host}:{taken[1]}"

    def close(self) -> None:
        self._held.close()


def end_with_parent() -> None:
    """In a worker: stop when the parent process is gone, which ends standard input."""

    def wait() -> None:
        with suppress(OSError):
            while os.read(sys.stdin.fileno(), 1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def port_above(address: str, number: int) -> str:
    """The address with its port increased by `number`; empty stays empty."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + number}" if address else ""


def _words(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
