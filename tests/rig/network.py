"""Proxies between the members of a cluster. (Between any other two a Proxy of tests/support is enough.)

A member of etcd dials another one to be told (GET of a stream, messages come as the answer) and to tell (POST). Both
carry a header with the caller's id, so the proxy in front of a member's peer port knows which messages go from whom to
whom, and one direction between two members can be cut while the third does not notice.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import NamedTuple

from tests.support.faulty_proxy import Direction, Proxy, abort

_SENDER = re.compile(rb"X-Server-From: 0*([0-9a-f]+)", re.IGNORECASE)
_CHUNK_BYTES = 1 << 16


class Channel(NamedTuple):
    """Connections of one caller to a peer port: `tells` if he posts his messages, else he fetches what he is told."""

    caller: str
    tells: bool


class PeerGate(Proxy):
    """The way to one member's peer port."""

    def __init__(self, target: str, host: str = "127.0.0.1") -> None:
        super().__init__(target, host)
        self._blocked: set[Channel] = set()
        self._ends: defaultdict[Channel, set[asyncio.StreamWriter]] = defaultdict(set)
        self._directions: defaultdict[Channel, Direction] = defaultdict(Direction)

    def block(self, channel: Channel) -> None:
        """Reset these connections and every new one."""
        self._blocked.add(channel)
        for writer in list(self._ends[channel]):
            abort(writer)

    def stall_channel(self, channel: Channel) -> None:
        """Half-open: these connections stand, and nothing passes."""
        self._directions[channel].stall()

    def delay_channel(self, channel: Channel, seconds: float) -> None:
        self._directions[channel].delay_s = seconds

    def heal_channel(self, channel: Channel) -> None:
        self._blocked.discard(channel)
        self._directions[channel].heal()

    async def _carry(
        self,
        reader: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        first = await reader.read(_CHUNK_BYTES)
        found = _SENDER.search(first)
        channel = Channel(found[1].decode() if found else "", first.startswith(b"POST"))
        if channel in self._blocked:
            raise ConnectionResetError
        direction, ends = self._directions[channel], self._ends[channel]
        ends |= {upstream, writer}
        try:
            await direction.passed(first, upstream)
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(direction.pump(reader, upstream))
                pumps.create_task(direction.pump(answers, writer))
        finally:
            ends -= {upstream, writer}


class Peers:
    """The ways between the members of a cluster, counted from 0."""

    def __init__(self, gates: list[PeerGate]) -> None:
        self.gates = gates
        self._ids: list[str] = []

    def know(self, member_ids: list[int]) -> None:
        """The members' ids, once they have some."""
        self._ids = [f"{number:x}" for number in member_ids]

    def cut(self, source: int, target: int) -> None:
        """No message of `source` reaches `target`; the other direction is as it was."""
        for gate, channel in self._ways(source, target):
            gate.block(channel)

    def stall(self, source: int, target: int) -> None:
        """`cut`, but connections stay open."""
        for gate, channel in self._ways(source, target):
            gate.stall_channel(channel)

    def delay(self, source: int, target: int, seconds: float) -> None:
        for gate, channel in self._ways(source, target):
            gate.delay_channel(channel, seconds)

    def heal(self, source: int, target: int) -> None:
        for gate, channel in self._ways(source, target):
            gate.heal_channel(channel)

    def _ways(self, source: int, target: int) -> list[tuple[PeerGate, Channel]]:
        return [
            (self.gates[source], Channel(self._ids[target], tells=False)),
            (self.gates[target], Channel(self._ids[source], tells=True)),
        ]
