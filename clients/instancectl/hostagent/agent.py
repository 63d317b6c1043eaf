"""The host agent as a process: its lock, its socket, its watch."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hqclient.clock import MonotonicClock
from hqclient.credential_files import CredentialFiles
from hqclient.credentials import Credentials
from instancectl.files import hold_lock
from instancectl.hostagent.calls import LINGER_S, HostAgentCalls
from instancectl.hostagent.picture import NodeInstances
from instancectl.hostagent.speakers import Speakers
from instancectl.hostagent.upstream import Upstream
from instancectl.settings import Speaker
from serving.calls.incoming import RequestIds
from serving.clock import SystemClock as ServingClock
from serving.context import ServerContext, process_metrics
from serving.limiting.limits import Limits
from serving.process import run, when_told_to_stop
from serving.transport.server import Server

_GRACE_S: Final = 10.0
_MOST_PATH: Final = 107  # bytes of a socket's path

log = logging.getLogger(__name__)


class HostAgent:
    """Serves the supervisors of one node."""

    def __init__(
        self, node: str, addresses: Sequence[str], files: CredentialFiles, path: Path, speakers: Sequence[Speaker]
    ) -> None:
        """Raises BadCredentials."""
        rng = random.Random()
        self._path, self._speakers = path, Speakers(speakers)
        self._upstream = Upstream(addresses, Credentials(files), MonotonicClock(), rng)
        self._picture = NodeInstances(node, self._upstream.watch, MonotonicClock(), rng)
        self._calls = HostAgentCalls(node, self._upstream, self._picture, self._speakers, ServingClock(), LINGER_S)

    @property
    def instances(self) -> NodeInstances:
        """Return the instances that HQ wants on the node."""
        return self._picture

    async def run(self, ending: asyncio.Event) -> None:
        """Serve until told to end.

        Raises:
            Occupied: another host agent serves this socket.
            OSError: the socket cannot be created.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if len(bytes(self._path)) > _MOST_PATH:
            raise OSError(f"{self._path}: socket paths have at most {_MOST_PATH} bytes; choose a shorter --socket")
        # A second host agent listening there would replace the socket, and the first would lose its clients unnoticed.
        with hold_lock(self._path.with_name(f"{self._path.name}.lock"), f"{self._path} is served by a host agent"):
            _make_way(self._path)
            await self._serve(ending)

    async def _serve(self, ending: asyncio.Event) -> None:
        shared = ServerContext(Limits(), ServingClock(), RequestIds("host-agent"))
        server = Server(self._calls.methods(), _Health(self._picture), shared, process_metrics(shared), {})
        await server.listen(f"unix:{self._path}")
        self._path.chmod(0o666 if self._speakers.has_others else 0o600)
        log.info("the host agent listens at %s", self._path)
        following = [asyncio.create_task(self._picture.run()), asyncio.create_task(self._upstream.tend())]
        try:
            ended = asyncio.create_task(ending.wait())
            await asyncio.wait([ended, *following], return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
            for task in following:
                if task.done():
                    task.result()
            log.info("the host agent is stopping")
        finally:
            self._picture.close()
            await server.stop(_GRACE_S)
            await self._calls.drain()
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
            await self._upstream.close()


def _make_way(path: Path) -> None:
    """Remove the socket that a killed host agent left, and nothing else. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError(f"{path} exists and is not a socket: choose another --socket, or remove it")
        path.unlink()


class _Health:
    """It is healthy as soon as it listens: failures of HQ are reported by the calls."""

    def __init__(self, picture: NodeInstances) -> None:
        self._picture = picture

    def live(self) -> bool:
        return True

    def has_loaded(self) -> bool:
        return True

    def staleness_s(self) -> float | None:
        return None

    def why(self) -> str:
        return self._picture.trouble

    def doubt(self) -> str:
        return ""


def run_host_agent(
    node: str, addresses: Sequence[str], files: CredentialFiles, path: Path, speakers: Sequence[Speaker]
) -> None:
    """Serve until SIGTERM or SIGINT. Raises what `HostAgent` does."""

    async def serve() -> None:
        ending = asyncio.Event()
        when_told_to_stop(ending.set)
        await HostAgent(node, addresses, files, path, speakers).run(ending)

    run(serve)
