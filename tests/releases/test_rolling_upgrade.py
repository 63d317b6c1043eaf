"""Three replicas are upgraded one by one and go back, while agents and readers of both versions use them."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hqclient import Client
from tests.clients.instancectl.supervised import clean_environment
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess
from tests.support.reserved_port import kept_addresses
from tests.support.sample_instances import instance
from tools.check_compatible import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PROGRAM = Path(__file__).with_name("outside_reader.py")
FLAGS = ("--liveness-timeout", "90s", "--report-interval", "5s", "--grace", "30s")


class OneOfThree:
    """A replica that keeps its addresses and its state directory over restarts as another version."""

    def __init__(self, stack: AsyncExitStack, etcd: SharedEtcd, directory: Path) -> None:
        self._stack, self._etcd, self._directory = stack, etcd, directory
        addresses = kept_addresses()
        self.address = addresses[1]
        self._flags = (*addresses, *FLAGS, "--state-dir", str(directory / "state"))
        self.process: ReplicaProcess | None = None

    async def become(self, root: Path) -> ReplicaProcess:
        """Restart as another version, as a service manager does: SIGTERM, wait for the end, start, wait until it is
        ready.
        """
        if self.process is not None:
            assert await self.process.terminate(timeout_s=60) == 0
        log = self._directory / f"{len(list(self._directory.glob('*.log')))}.log"
        self.process = ReplicaProcess([self._etcd.endpoint], self._etcd.prefix, log, self._flags, root=root)
        self._stack.push_async_callback(self.process.kill)
        await self.process.start()
        return self.process

    async def watches(self) -> int:
        """How many watches are open here."""
        assert self.process is not None
        found = re.search(r"^hq_watchers (\d+)", (await self.process.get("/metrics"))[1], re.MULTILINE)
        assert found is not None
        return int(found[1])


@asynccontextmanager
async def outside_reader(root: Path, replicas: list[str], ids: list[str]) -> AsyncIterator[dict[str, Any]]:
    """Runs with the library of this tree as long as the block; then the dictionary holds what it saw."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), ",".join(replicas), ",".join(ids)),
        cwd=root,
        env=clean_environment(root),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    seen: dict[str, Any] = {}
    try:
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"begun\n"
        yield seen
        process.terminate()
        async with asyncio.timeout(60):
            seen |= json.loads(await process.stdout.read())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _until_both_follow(three: list[OneOfThree]) -> None:
    """A watch that has moved just now waits before it moves again, for longer than all three need to be replaced."""
    async with asyncio.timeout(60):
        while sum([await each.watches() for each in three]) < 2:
            await asyncio.sleep(0.05)


async def test_an_upgrade_and_its_reversal_lose_nothing_and_make_no_instance_not_ready(
    last_release: Path, etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        three = []
        for number in range(3):
            (tmp_path / str(number)).mkdir()
            three.append(OneOfThree(stack, etcd, tmp_path / str(number)))
        await asyncio.gather(*(each.become(last_release) for each in three))
        addresses = [each.address for each in three]
        async with Client(addresses) as client:
            await client.apply([instance(f"i-{number:02}") for number in range(20)])
            users = AsyncExitStack()
            async with users:
                seen = []
                for number, root in enumerate((last_release, ROOT)):
                    ids = [f"i-{each:02}" for each in range(number, 20, 2)]
                    seen.append(await users.enter_async_context(outside_reader(root, addresses, ids)))
                for root in (ROOT, last_release, ROOT):
                    for number, replica in enumerate(three):
                        started = await replica.become(root)
                        await client.apply([instance(f"i-{number:02}", text=f"{root.name} {number}")])
                        assert "hq_expiries_total 0.0" in (await started.get("/metrics"))[1]
                        await _until_both_follow(three)
        for of_one in seen:
            assert of_one["faults"] == []
            assert min(of_one["lookups"], of_one["reports"], of_one["changes"]) > 20
    for log in tmp_path.glob("*/*.log"):
        assert "Traceback" not in log.read_text()
