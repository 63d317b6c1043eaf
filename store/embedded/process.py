"""One etcd process under a parent of its own: spawn, wait until it serves, stop. Its ports and its data are given."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from store.embedded import etcd_parent
from store.embedded.binary import EtcdBinary

POLL_S = 0.05
ANSWER_TIMEOUT_S = 2.0
# A single member elects itself; waiting a second for rivals would only make every restart slower.
QUICK_ELECTION = ("--heartbeat-interval=20", "--election-timeout=200")


class EtcdFailed(Exception):
    """etcd ended, or did not serve in time; the message carries the end of its log."""


class AddressInUse(EtcdFailed):
    """Somebody took a port between our choice and etcd's bind: choose others."""


@dataclass(frozen=True, slots=True)
class EtcdMember:
    """The settings of an etcd member; loopback only. Its data directory is made with mode 0700."""

    name: str
    data_dir: Path
    client_port: int
    peer_port: int
    initial_cluster: str = ""
    quota_bytes: int = 0
    extra_flags: tuple[str, ...] = ()

    @property
    def client_url(self) -> str:
        return f"http://127.0.0.1:{self.client_port}"

    @property
    def peer_url(self) -> str:
        return f"http://127.0.0.1:{self.peer_port}"

    def flags(self) -> list[str]:
        """quota_bytes 0 is etcd's own default (2 GiB). No auto compaction: the server compacts the history."""
        return [
            f"--name={self.name}",
            f"--data-dir={self.data_dir}",
            f"--listen-client-urls={self.client_url}",
            f"--advertise-client-urls={self.client_url}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster={self.initial_cluster or f'{self.name}={self.peer_url}'}",
            f"--quota-backend-bytes={self.quota_bytes}",
            *([] if self.initial_cluster else QUICK_ELECTION),
            "--logger=zap",
            "--log-level=warn",
            *self.extra_flags,
        ]


class EtcdProcess:
    """A child that dies with us, in a session of its own: the terminal's Ctrl-C does not reach it.

    inherited_fd is held open by the parent and by etcd: a lock on it lasts as long as any of the three.
    """

    def __init__(
        self,
        binary: EtcdBinary,
        member: EtcdMember,
        log_path: Path,
        *,
        grace_s: float = 3.0,
        inherited_fd: int = -1,
    ) -> None:
        self.binary = binary
        self.member = member
        self.log_path = log_path
        self._grace_s = grace_s
        self._inherited_fd = inherited_fd
        self._parent: subprocess.Popen[bytes] | None = None
        self._pid = 0

    def __repr__(self) -> str:
        return f"<{self.binary} {self.member.name} at {self.member.client_url}, pid {self._pid}>"

    @property
    def pid(self) -> int:
        """etcd's own process id, 0 before it was started."""
        return self._pid

    @property
    def is_running(self) -> bool:
        return self._parent is not None and self._parent.poll() is None

    async def start(self, timeout_s: float = 30.0) -> None:
        """Spawn etcd and return when it serves.

        Raises:
            AddressInUse: one of its ports is taken.
            EtcdFailed: it ended, or does not serve after timeout_s.
        """
        await self.spawn()
        try:
            async with asyncio.timeout(timeout_s):
                await self.until_it_serves()
        except TimeoutError:
            await self.kill()
            raise EtcdFailed(f"{self!r} is not serving after {timeout_s:.0f} s. {self._log_end()}") from None
        except BaseException:
            await self.kill()
            raise

    async def spawn(self) -> None:
        """Start etcd's parent in a thread; if cancelled, wait until it has started, and kill it. Raises OSError."""
        spawning = asyncio.ensure_future(asyncio.to_thread(self._spawn))
        try:
            await asyncio.shield(spawning)
        except asyncio.CancelledError:
            await spawning
            await self.kill()
            raise

    def _spawn(self) -> None:
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        inherited = [self._inherited_fd] if self._inherited_fd >= 0 else []
        script = [sys.executable, "-I", "-S", etcd_parent.__file__, str(self.log_path), str(self._grace_s)]
        with self.log_path.open("ab") as log:
            self._parent = subprocess.Popen(
                [*script, str(*inherited or "-"), str(self.binary.path), *self.member.flags()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(),
                pass_fds=inherited,
                start_new_session=True,
            )
        assert self._parent.stdout is not None
        self._pid = int(self._parent.stdout.readline() or 0)

    async def until_it_serves(self) -> None:
        """Return when this member, not a stranger on its port, answers; in a cluster that needs a majority."""
        while True:
            if not self.is_running:
                raise self._failure()
            if await asyncio.to_thread(self._answers_by_name):
                return
            await asyncio.sleep(POLL_S)

    def _answers_by_name(self) -> bool:
        try:
            members = _ask_for_members(self.member.client_url)
        except (OSError, ValueError):
            return False
        return (self.member.name, self.member.client_url) in members

    async def wait_for_exit(self) -> EtcdFailed:
        """Wait until etcd has ended without having been told to; return why."""
        while self.is_running:
            await asyncio.sleep(4 * POLL_S)
        return self._failure()

    async def stop(self) -> None:
        """SIGTERM, after the grace SIGKILL; return when it is gone. Does nothing if it is not running."""
        if self._parent is None:
            return
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        try:
            await asyncio.to_thread(self._parent.wait, self._grace_s + 5)
        except subprocess.TimeoutExpired:
            await self.kill()
        self._forget()

    async def kill(self) -> None:
        """SIGKILL, as in a crash; return when it is gone. Does nothing if it is not running."""
        if self._parent is None:
            return
        self.signal(signal.SIGKILL)
        await asyncio.to_thread(self._parent.wait)
        self._forget()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to etcd itself, such as SIGSTOP and SIGCONT."""
        if self.is_running and self._pid:
            os.kill(self._pid, number)

    def _forget(self) -> None:
        if self._parent is not None and self._parent.stdin and self._parent.stdout:
            self._parent.stdin.close()
            self._parent.stdout.close()
        self._parent = None

    def _failure(self) -> EtcdFailed:
        end = self._log_end()
        kind = AddressInUse if "address already in use" in end else EtcdFailed
        return kind(f"{self!r} ended. {end}")

    def _log_end(self) -> str:
        try:
            lines = self.log_path.read_text(errors="replace").splitlines()
        except OSError:
            lines = []
        return f"The end of {self.log_path}:\n" + "\n".join(lines[-3:])


def _environment() -> dict[str, str]:
    """Our environment without ETCD_*: what is set there for another etcd would configure this one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
    if platform.machine() in ("aarch64", "arm64"):
        kept["ETCD_UNSUPPORTED_ARCH"] = "arm64"  # what 3.4 calls unsupported, 3.5 supports
    return kept


def _ask_for_members(client_url: str) -> set[tuple[str, str]]:
    """The names and client URLs of the members known to whoever listens there."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"{client_url}/v3/cluster/member/list", data=b"{}", timeout=ANSWER_TIMEOUT_S) as answer:
        members = json.load(answer).get("members", [])
    return {(member.get("name", ""), url) for member in members for url in member.get("clientURLs", [])}
