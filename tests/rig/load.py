"""Everybody who uses the installation at once: uploaders, agents, readers, watchers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from hqclient.client import Client
from tests.rig.agents import RigAgent
from tests.rig.installation import Installation
from tests.rig.readers import Reader
from tests.rig.recording import Log
from tests.rig.uploaders import Names, Uploader
from tests.rig.watchers import RigWatcher


@dataclass(frozen=True, slots=True)
class Amounts:
    """How many of each; `lookups` ask the gateway for what it follows. `pause_s`: between two calls, on average."""

    instances: int = 40
    uploaders: int = 8
    agents: int = 30
    readers: int = 8
    lookups: int = 2
    watchers: int = 6
    pause_s: float = 0.05
    changes: float = 0.2
    call_s: float = 6.0


class Load:
    """Runs until `stop`; somebody who dies of an error that he should not meet ends `failed`."""

    def __init__(self, hq: Installation, log: Log, amounts: Amounts, seed: int) -> None:
        self._hq, self._log, self._amounts = hq, log, amounts
        self._rng = random.Random(seed)
        self._names = Names(amounts.instances)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin."""
        replicas = [await self._client([address]) for address in self._hq.addresses]
        everywhere = [await self._client(self._hq.addresses) for _ in range(3)]
        gateway = await self._client([self._hq.gateway_gate.endpoint])
        a = self._amounts
        for number in range(a.uploaders):
            client = gateway if number == 0 else everywhere[number % len(everywhere)]
            uploader = Uploader(f"uploader-{number}", client, self._log, self._names, self._new_rng())
            self._run(uploader.run(a.pause_s))
        for number, instance_id in enumerate(self._names.all[: a.agents]):
            client = everywhere[number % len(everywhere)]
            node, rng = self._names.node(instance_id), self._new_rng()
            agent = RigAgent(f"agent-{number}", client, self._log, instance_id, node, rng, a.changes)
            self._run(agent.run(4 * a.pause_s))
        for number in range(a.readers):
            asked = [*replicas, gateway]
            reader = Reader(f"reader-{number}", asked, self._log, self._names, self._new_rng())
            self._run(reader.run(a.pause_s))
        for number in range(a.lookups):
            reader = Reader(f"lookup-{number}", [gateway], self._log, self._names, self._new_rng())
            self._run(reader.run_lookups(a.pause_s))
        for number in range(a.watchers):
            wanted = {"service_id": f"s-{number % 4}"} if number % 3 == 2 else {}
            addresses, rng = self._hq.addresses, self._new_rng()
            watcher = RigWatcher(f"watcher-{number}", addresses, self._hq.trust, self._log, wanted, rng, stay_s=8.0)
            self._run(watcher.run())

    async def failed(self) -> None:
        """Return when one of them has died; raises what it died of."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Everybody leaves; calls under way are given up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def _client(self, addresses: list[str]) -> Client:
        trusting = self._hq.trust.credentials
        client = Client(addresses, timeout_s=self._amounts.call_s, rng=self._new_rng(), credentials=trusting)
        return await self._stack.enter_async_context(client)

    def _new_rng(self) -> random.Random:
        return random.Random(self._rng.getrandbits(64))

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))
