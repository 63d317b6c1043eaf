"""docs/operations.md, "Upgrade, and go back": every command as it stands there, under a reader of the last release."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import pytest

from hqclient import Client
from tests.clients.process import Outcome, command
from tests.releases.machines import Machine, console_blocks
from tests.releases.test_rolling_upgrade import outside_reader
from tests.support.etcd import OwnEtcd
from tests.support.sample_instances import eventually, instance
from tools.check_compatible import ROOT

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]
PAGE = ROOT / "docs" / "operations.md"
IDS = [f"i-{number}" for number in range(6)]
TIMES = ("--liveness-timeout", "90s", "--report-interval", "5s", "--grace", "30s")


async def run(machine: Machine, commands: str) -> Outcome:
    done = await machine.run(commands)
    assert done.code == 0, f"{commands}\n{done.out}{done.err}\n{machine.log_text()}"
    return done


async def controllers_show(machine: Machine) -> list[str]:
    """What they hold, as the commands of this version show it."""
    cms, nanny, walle = (machine.units[f"hq-{name}"].grpc for name in ("cms", "nanny", "walle"))
    commands = (
        ("hqctl.main", "disruptions", "--issuer", "ann", "--cms", cms),
        ("nanny.main", "history", "web", "--nanny", nanny),
        ("walle.main", "--server", walle, "projects", "list"),
    )

    async def show() -> list[str]:
        asked = [await command(*words) for words in commands]
        # One whose records were restored loads them first, and says so.
        return [done.out for done in asked] if all(done.code == 0 for done in asked) else []

    return cast("list[str]", await eventually(show, 60.0))


async def fill_controllers(machine: Machine, node: str) -> None:
    cms, nanny, walle = (machine.units[f"hq-{name}"].grpc for name in ("cms", "nanny", "walle"))
    kept = ("--id", "kept", "--reason", "look at a disk", "--by", "ann", "--cms", cms)
    for done in (
        await command("hqctl.main", "disruptions", "ask", node, *kept),
        await command("nanny.main", "service", "create", "web", "--nanny", nanny),
        await command("walle.main", "--server", walle, "projects", "add", "search"),
    ):
        assert done.code == 0, done


async def test_the_commands_upgrade_and_go_back_and_nobody_notices(
    last_release: Path, own_etcd: OwnEtcd, tmp_path: Path
) -> None:
    before, of_replica, of_controllers, controllers_back, replica_back = console_blocks(PAGE, "Upgrade, and go back")
    this = (ROOT / "VERSION").read_text().strip()
    versions = {last_release.name: last_release, this: ROOT}
    etcd = (await own_etcd()).endpoint
    async with AsyncExitStack() as stack:
        replicas = [Machine(tmp_path / f"hq-{number}", versions, etcd, {"hq": TIMES}) for number in range(2)]
        for machine in replicas:
            stack.push_async_callback(machine.kill)
            await machine.start(last_release.name)
        addresses = [machine.units["hq"].grpc for machine in replicas]
        flags = ("--term", "1s", "--location", f"default={','.join(addresses)}")
        units = {f"hq-{name}": flags for name in ("cms", "nanny", "walle")}
        controllers = Machine(tmp_path / "controllers", versions, etcd, units)
        stack.push_async_callback(controllers.kill)
        await controllers.start(last_release.name)
        async with Client(addresses) as client:
            await client.apply([instance(id_) for id_ in IDS])
        async with outside_reader(last_release, addresses, IDS) as seen:
            await fill_controllers(controllers, "node-9")
            known = await controllers_show(controllers)
            said = await run(controllers, before)
            for title in ("HQ", "the CMS", "Nanny", "Wall-E"):
                assert f"\n{title} came up with its " in said.err
            for machine in replicas:
                await run(machine, of_replica)
            await run(controllers, of_controllers)
            assert await controllers_show(controllers) == known
            await run(controllers, controllers_back)
            for machine in replicas:
                await run(machine, replica_back)
            assert await controllers_show(controllers) == known
        assert seen["faults"] == []
        for machine in (*replicas, controllers):
            by_unit = {unit: [v for of, v in machine.started if of == unit] for unit in machine.units}
            assert set(map(tuple, by_unit.values())) == {(last_release.name, this, last_release.name)}
            assert "Traceback" not in machine.log_text()
