"""Three members of etcd that speak with one another through gates, and what an operator does to them."""

from __future__ import annotations

import asyncio
import secrets
import shlex
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from store.embedded import EtcdBinary, EtcdMember, EtcdProcess, free_ports
from tests.rig.network import PeerGate, Peers
from tests.rig.places import LOOPBACK, Place, Places, on_the_loopback
from tests.rig.trust import PLAIN, Trust
from tests.support import etcd_backup, etcd_http
from tests.support.etcd_cluster import EtcdCluster

T = TypeVar("T")
_BALLAST_KEYS, _BALLAST_BYTES = 8, 700_000


@dataclass(frozen=True, slots=True)
class PlacedMember(EtcdMember):
    """A member that listens at `host`."""

    host: str = LOOPBACK

    @property
    def client_url(self) -> str:
        return f"http://{self.host}:{self.client_port}"

    @property
    def peer_url(self) -> str:
        return f"http://{self.host}:{self.peer_port}"


class GatedCluster(EtcdCluster):
    """An EtcdCluster whose members reach each other through `peers`."""

    def __init__(
        self,
        binary: EtcdBinary,
        directory: Path,
        size: int,
        quota_bytes: int,
        places: Places | None = None,
        trust: Trust = PLAIN,
    ) -> None:
        super().__init__(binary, directory, size)
        self._places, self._trust = places or on_the_loopback(size), trust
        self._tls_ports: list[int] = []
        self._quota_bytes, self._token = quota_bytes, secrets.token_hex(4)
        self._stack = AsyncExitStack()
        self.peers = Peers([])

    async def start(self) -> None:
        if not self.peers.gates:
            gates = [PeerGate("127.0.0.1:1", self._places.gates) for _ in range(self._size)]
            self.peers = Peers([await self._stack.enter_async_context(gate) for gate in gates])
        await super().start()
        await self.know_members()

    @property
    def endpoints(self) -> list[str]:
        return [process.member.client_url.removeprefix("http://") for process in self.members]

    @property
    def doors(self) -> list[str]:
        """Where HQ reaches the members: with TLS, if there is any."""
        if self._trust.own is None:
            return self.endpoints
        return [f"{place.host}:{port}" for place, port in zip(self._places.members, self._tls_ports, strict=True)]

    async def know_members(self) -> None:
        ids = [await asyncio.to_thread(etcd_http.member_id_of, endpoint) for endpoint in self.endpoints]
        self.peers.know([int(number) for number in ids])

    def _new_members(self, directory: Path) -> list[EtcdProcess]:
        gates = self.peers.gates
        everyone = ",".join(f"{self._token}-{i}=http://{gate.endpoint}" for i, gate in enumerate(gates))
        self._tls_ports = [free_ports()[0] for _ in gates]
        return [self._new_member(number, directory / f"{number}", everyone) for number in range(len(gates))]

    def _new_member(self, number: int, directory: Path, everyone: str) -> EtcdProcess:
        gate, place = self.peers.gates[number], self._places.members[number]
        client, peer = free_ports()
        gate.aim(f"{place.host}:{peer}")
        urls = f"http://{place.host}:{client}", f"https://{place.host}:{self._tls_ports[number]}"
        flags = (
            f"--initial-cluster-token={self._token}",
            f"--initial-advertise-peer-urls=http://{gate.endpoint}",
            *self._trust.etcd_flags(*urls),
        )
        name = f"{self._token}-{number}"
        member = PlacedMember(name, directory, client, peer, everyone, self._quota_bytes, flags, place.host)
        binary = self._binary_at(place, directory.with_suffix(".sh"))
        return EtcdProcess(binary, member, directory.with_suffix(".log"), grace_s=1.0)

    def _binary_at(self, place: Place, script: Path) -> EtcdBinary:
        """etcd, or a script that turns into it where the member lives."""
        if not place.enter:
            return self._binary
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {shlex.join([*place.enter, str(self._binary.path)])} "$@"\n')
        script.chmod(0o755)
        return replace(self._binary, path=script)

    async def close(self) -> None:
        """Kill all members and close the gates."""
        for index in range(len(self.members)):
            self.resume(index)
        await self.kill_all()
        await self._stack.aclose()

    # --- what an operator does --------------------------------------------------------------------------------------

    async def any_member(self, ask: Callable[[str], T]) -> T:
        """Ask one member after the other until one answers. Raises the last one's OSError."""
        failure: OSError = OSError("no member was asked")
        for endpoint in self.endpoints:
            try:
                return await asyncio.to_thread(ask, endpoint)
            except OSError as error:
                failure = error
        raise failure

    async def compact(self, revision: int) -> None:
        request = {"revision": str(revision), "physical": True}
        await self.any_member(lambda endpoint: etcd_http.call(endpoint, "kv/compaction", request))

    async def defragment(self, index: int) -> None:
        await asyncio.to_thread(etcd_http.call, self.endpoints[index], "maintenance/defragment", {}, 30.0)

    async def fill(self) -> bool:
        """Put until etcd refuses for lack of space; whether it came to that."""
        for number in range(2 * self._quota_bytes // _BALLAST_BYTES):
            key = f"/ballast/{number % _BALLAST_KEYS}"
            try:
                await asyncio.to_thread(etcd_http.put, self.endpoints[0], key, "x" * _BALLAST_BYTES)
            except OSError:
                return bool(await self.alarms())
        return False

    async def alarms(self) -> list[dict[str, Any]]:
        ask = {"action": "GET"}
        answer = await self.any_member(lambda endpoint: etcd_http.call(endpoint, "maintenance/alarm", dict(ask)))
        return list(answer.get("alarms", []))

    async def relieve(self, seen_revision: Callable[[], int]) -> None:
        """Delete the ballast, compact what the witness has seen, defragment, disarm."""
        for number in range(_BALLAST_KEYS):
            request = {"key": etcd_http.encoded(f"/ballast/{number}")}
            await self.any_member(lambda e, r=request: etcd_http.call(e, "kv/deleterange", dict(r)))  # type: ignore[misc]
        await self.compact(seen_revision())
        for index in range(len(self.members)):
            await self.defragment(index)
        for alarm in await self.alarms():
            order = {"action": "DEACTIVATE", **alarm}
            await self.any_member(lambda e, o=order: etcd_http.call(e, "maintenance/alarm", dict(o)))  # type: ignore[misc]

    async def save(self, snapshot: Path) -> None:
        await self.any_member(lambda endpoint: etcd_backup.save_from(endpoint, snapshot))

    async def restore(self, snapshot: Path) -> None:
        """All members at once, from one snapshot; returns when they serve."""
        await self.kill_all()
        for process, gate in zip(self.members, self.peers.gates, strict=True):
            where = (process.member, self._token, f"http://{gate.endpoint}", snapshot)
            await asyncio.to_thread(etcd_backup.restore_member, *where)
        starting: list[Awaitable[None]] = [process.start() for process in self.members]
        await asyncio.gather(*starting)
        await self.know_members()
