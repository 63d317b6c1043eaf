"""An etcd cluster of several members, each a process that a test can stop, kill, pause and restart."""

from __future__ import annotations

import asyncio
import secrets
import signal
from pathlib import Path

from store.embedded import AddressInUse, EtcdBinary, EtcdMember, EtcdProcess
from tests.support.etcd_http import leader_of, member_id_of
from tests.support.process_ids import wait_until_stopped
from tests.support.reserved_port import kept_ports

PORT_ATTEMPTS = 5


class EtcdCluster:
    """Members are counted from 0 and keep their ports and data over restarts."""

    def __init__(self, binary: EtcdBinary, directory: Path, size: int) -> None:
        self._binary = binary
        self._directory = directory
        self._size = size
        self.members: list[EtcdProcess] = []

    @property
    def endpoints(self) -> list[str]:
        return [f"127.0.0.1:{process.member.client_port}" for process in self.members]

    async def start(self) -> None:
        """Return when every member serves."""
        for attempt in range(PORT_ATTEMPTS):
            self.members = self._new_members(self._directory / str(attempt))
            try:
                async with asyncio.TaskGroup() as group:
                    for process in self.members:
                        group.create_task(process.start())
            except* AddressInUse:
                await self.kill_all()
            else:
                return
        raise RuntimeError(f"no free ports for a cluster after {PORT_ATTEMPTS} attempts")

    def _new_members(self, directory: Path) -> list[EtcdProcess]:
        word = secrets.token_hex(4)
        ports = [kept_ports() for _ in range(self._size)]
        everyone = ",".join(f"{word}-{i}=http://127.0.0.1:{peer}" for i, (_, peer) in enumerate(ports))
        flags = (f"--initial-cluster-token={word}",)
        members = [
            EtcdMember(f"{word}-{i}", directory / f"{i}", client, peer, initial_cluster=everyone, extra_flags=flags)
            for i, (client, peer) in enumerate(ports)
        ]
        return [EtcdProcess(self._binary, m, directory / f"{i}.log") for i, m in enumerate(members)]

    async def stop(self, index: int) -> None:
        """SIGTERM: the member hands its leadership over and says goodbye to its clients."""
        await self.members[index].stop()

    async def kill(self, index: int) -> None:
        """SIGKILL, as in a crash."""
        await self.members[index].kill()

    def pause(self, index: int) -> None:
        """SIGSTOP: connections stay open and nothing is answered, as when a machine hangs."""
        member = self.members[index]
        member.signal(signal.SIGSTOP)
        wait_until_stopped(member.pid)

    def resume(self, index: int) -> None:
        self.members[index].signal(signal.SIGCONT)

    async def restart(self, index: int, *, until_it_serves: bool = True) -> None:
        """Start a stopped or killed member on its ports and data. Without a majority it cannot serve."""
        process = self.members[index]
        await (process.start() if until_it_serves else process.spawn())

    async def leader(self) -> int:
        """The index of the member that leads, as the first running member says; it waits for an election."""
        while True:
            serving = [endpoint for endpoint, p in zip(self.endpoints, self.members, strict=True) if p.is_running]
            leads = await asyncio.to_thread(leader_of, serving[0])
            for index, endpoint in enumerate(self.endpoints):
                if self.members[index].is_running and await asyncio.to_thread(member_id_of, endpoint) == leads:
                    return index
            await asyncio.sleep(0.1)

    async def kill_all(self) -> None:
        for process in self.members:
            await process.kill()
