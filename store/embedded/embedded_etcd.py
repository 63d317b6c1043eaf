"""An etcd of one member over a data directory: free ports at every start, one user of the data at a time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import secrets
import socket
import time
from collections.abc import Callable
from pathlib import Path

from store.embedded.binary import EtcdBinary, can_read, find_etcd
from store.embedded.process import AddressInUse, EtcdFailed, EtcdMember, EtcdProcess

Ports = Callable[[], tuple[int, int]]
PORT_ATTEMPTS = 5


class DataDirInUse(Exception):
    """Another process holds the data directory; the message names it."""


def free_ports() -> tuple[int, int]:
    """Two ports of the loopback that are free right now; another process may still be faster."""
    with socket.socket() as client, socket.socket() as peer:
        client.bind(("127.0.0.1", 0))
        peer.bind(("127.0.0.1", 0))
        return client.getsockname()[1], peer.getsockname()[1]


class EmbeddedEtcd:
    """A real etcd that keeps its data over restarts and never outlives this process.

    The directory holds `etcd/` (its data), `etcd.log` and `lock`. lock_wait_s bounds the wait for the etcd of
    a predecessor that was killed. quota_bytes 0 is etcd's default (2 GiB).
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        binary: EtcdBinary | None = None,
        quota_bytes: int = 0,
        ports: Ports = free_ports,
        lock_wait_s: float = 6.0,
        extra_flags: tuple[str, ...] = (),
    ) -> None:
        self.data_dir = data_dir.absolute()
        self._binary = binary
        self._quota_bytes = quota_bytes
        self._ports = ports
        self._lock_wait_s = lock_wait_s
        self._extra_flags = extra_flags
        self._lock_fd = -1
        self._process: EtcdProcess | None = None

    def __repr__(self) -> str:
        return f"<EmbeddedEtcd in {self.data_dir}: {self._process or 'stopped'}>"

    @property
    def process(self) -> EtcdProcess:
        if self._process is None:
            raise EtcdFailed(f"the etcd in {self.data_dir} is not started")
        return self._process

    @property
    def endpoint(self) -> str:
        """host:port for clients. Another one after every start."""
        return f"127.0.0.1:{self.process.member.client_port}"

    async def start(self, timeout_s: float = 30.0) -> None:
        """Return when etcd serves.

        Raises:
            DataDirInUse: another process uses the directory and has not ended within lock_wait_s.
            EtcdNotFound: there is no etcd, or none that reads the data.
            EtcdFailed: it did not start; the message carries the end of its log.
        """
        await self._lock()
        try:
            binary = self._choose_binary()
            await self._start_on_free_ports(binary, timeout_s)
        except BaseException:
            self._unlock()
            raise
        self._version_path.write_text(".".join(map(str, binary.version)) + "\n")

    async def _start_on_free_ports(self, binary: EtcdBinary, timeout_s: float) -> None:
        for attempt in range(1, PORT_ATTEMPTS + 1):
            process = self._new_process(binary)
            try:
                await process.start(timeout_s)
            except AddressInUse:
                if attempt == PORT_ATTEMPTS:
                    raise
            else:
                self._process = process
                return

    def _new_process(self, binary: EtcdBinary) -> EtcdProcess:
        client_port, peer_port = self._ports()
        # A new name at every start, so that no other etcd, not even our predecessor, is taken for this one.
        # A single member tolerates that, and that the member list keeps its first peer address.
        name = f"embedded-{secrets.token_hex(8)}"
        data_dir = self.data_dir / "etcd"
        member = EtcdMember(
            name,
            data_dir,
            client_port,
            peer_port,
            quota_bytes=self._quota_bytes,
            extra_flags=self._extra_flags,
        )
        return EtcdProcess(binary, member, self.data_dir / "etcd.log", inherited_fd=self._lock_fd)

    async def stop(self) -> None:
        """End etcd in order; its data stay. Does nothing if it is not started."""
        process, self._process = self._process, None
        if process is not None:
            await process.stop()
        self._unlock()

    async def kill(self) -> None:
        """End etcd as a crash would; its data stay as far as it had answered."""
        process, self._process = self._process, None
        if process is not None:
            await process.kill()
        self._unlock()

    @property
    def _version_path(self) -> Path:
        return self.data_dir / "etcd-version"

    def _choose_binary(self) -> EtcdBinary:
        written_by = self._written_by()
        binary = self._binary or find_etcd(written_by)
        if not can_read(binary.version, written_by):
            release = ".".join(map(str, written_by))
            raise EtcdFailed(
                f"{self.data_dir} was written by etcd {release}, which {binary} cannot read: use that release, "
                "or the next one"
            )
        return binary

    def _written_by(self) -> tuple[int, int]:
        try:
            match = re.match(r"(\d+)\.(\d+)", self._version_path.read_text())
        except OSError:
            match = None
        return (int(match[1]), int(match[2])) if match else (0, 0)

    async def _lock(self) -> None:
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise EtcdFailed(
                f"etcd cannot store its data in {self.data_dir} ({error.strerror}): choose another directory (--data)"
            ) from error
        give_up = time.monotonic() + self._lock_wait_s
        while not _try_lock(fd):
            if time.monotonic() > give_up:
                holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "unknown"
                os.close(fd)
                advice = "stop it or use another directory"
                raise DataDirInUse(f"{self.data_dir} is in use by another process (pid {holder}): {advice}")
            await asyncio.sleep(0.1)
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._lock_fd = fd

    def _unlock(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
