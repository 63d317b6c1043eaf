"""Each server is restored while all run on the same etcd: those beside it keep what they hold, and keep running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpc import aio

from tests.acceptance.test_backup import epoch_of
from tests.releases.machines import Machine
from tests.releases.test_operations_page import controllers_show, fill_controllers, run
from tests.releases.test_replicas import everything, fill
from tests.support.etcd import OwnEtcd
from tests.support.replicas import ReplicaProcess
from tests.support.reserved_port import kept_addresses
from tests.support.sample_instances import eventually
from tools.check_compatible import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
CONTROLLERS = ("cms", "nanny", "walle")


@dataclass
class Neighbours:
    """HQ and what acts on its truth, on one etcd, and a backup of all of them."""

    etcd: str
    hq: ReplicaProcess
    machine: Machine

    async def show(self) -> dict[str, tuple[Any, ...]]:
        """What each of them holds, and which process holds it."""
        held = dict(zip(CONTROLLERS, await controllers_show(self.machine), strict=True))
        pids = {name: self.machine.units[f"hq-{name}"].pid for name in CONTROLLERS}
        hq = (await epoch_of(self.hq), await everything(self.hq), self.hq.pid)
        return {"hq": hq, **{name: (held[name], pids[name]) for name in CONTROLLERS}}

    async def restore(self, of: str) -> None:
        await run(self.machine, f"hq restore --etcd {self.etcd} --replace --of {of} {self.machine.directory}/backup")


@asynccontextmanager
async def neighbours(etcd: str, directory: Path) -> AsyncIterator[Neighbours]:
    async with AsyncExitStack() as stack:
        addresses = kept_addresses()
        hq = ReplicaProcess([etcd], "/hq/v1/", directory / "hq.log", addresses)
        flags = ("--term", "1s", "--location", f"default={addresses[1]}")
        machine = Machine(directory / "machine", {"0.2.0": ROOT}, etcd, {f"hq-{of}": flags for of in CONTROLLERS})
        stack.push_async_callback(hq.kill)
        stack.push_async_callback(machine.kill)
        await hq.start()
        await fill(hq)
        await machine.start("0.2.0")
        await fill_controllers(machine, "node-9")
        await run(machine, f"hq backup --etcd {etcd} --all {machine.directory}/backup")
        yield Neighbours(etcd, hq, machine)


async def test_neighbours_of_a_restored_controller_notice_nothing(own_etcd: OwnEtcd, tmp_path: Path) -> None:
    async with neighbours((await own_etcd()).endpoint, tmp_path) as them:
        before = await them.show()
        for of in CONTROLLERS:
            await them.restore(of)
            after = await them.show()
            assert {name: after[name] for name in before if name != of} == {
                name: before[name] for name in before if name != of
            }, of
            before = after


async def test_controllers_beside_a_restored_hq_keep_their_records_and_write_nothing(
    own_etcd: OwnEtcd, tmp_path: Path
) -> None:
    async with neighbours((await own_etcd()).endpoint, tmp_path) as them:
        before = await them.show()
        epoch, held, pid = before.pop("hq")
        await them.restore("hq")

        async def is_restored() -> bool:
            with suppress(aio.AioRpcError):  # it loads first, and says so
                return bool(await epoch_of(them.hq) != epoch)
            return False

        await eventually(is_restored, 60.0)
        await asyncio.sleep(5.0)  # several terms: who wanted to answer the new epoch with a write has done so
        after = await them.show()
        _, now, same = after.pop("hq")
        assert (after, same, set(now)) == (before, pid, set(held))
        assert {id_: each.spec for id_, each in now.items()} == {id_: each.spec for id_, each in held.items()}
