"""docs/backup.md: its commands as they stand there, for all four servers, from one etcd into another."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

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
PAGE = (ROOT / "docs" / "backup.md").read_text()
ETCD = "127.0.0.1:2379"
CONTROLLERS = ("cms", "nanny", "walle")


def blocks() -> list[str]:
    """What the page types, block by block."""
    return re.findall(r"^```\n(hq .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def in_text(command: str) -> str:
    """A command in the middle of a sentence."""
    found = re.search(rf"`({command}[^`]*)`", PAGE)
    assert found is not None, command
    return found[1]


async def test_all_servers_are_saved_rehearsed_and_restored_beside_each_other(
    own_etcd: OwnEtcd, tmp_path: Path
) -> None:
    save, restore_hq, restore_cms, rehearse = blocks()
    old, new = (await own_etcd()).endpoint, (await own_etcd()).endpoint
    async with AsyncExitStack() as stack:
        machines, hqs = [], []
        for name, etcd in (("old", old), ("new", new)):
            addresses = kept_addresses()
            hqs.append(ReplicaProcess([etcd], "/hq/v1/", tmp_path / f"hq-{name}.log", addresses))
            flags = ("--term", "1s", "--location", f"default={addresses[1]}")
            machines.append(Machine(tmp_path / name, {"0.2.0": ROOT}, etcd, {f"hq-{of}": flags for of in CONTROLLERS}))
            stack.push_async_callback(hqs[-1].kill)
            stack.push_async_callback(machines[-1].kill)
        await hqs[0].start()
        await fill(hqs[0])
        await machines[0].start("0.2.0")
        await fill_controllers(machines[0], "node-9")
        held, known = await everything(hqs[0]), await controllers_show(machines[0])

        said = await run(machines[0], save.replace(ETCD, old))
        assert len(re.findall("^complete backup of ", said.out + said.err, re.MULTILINE)) == 4, said
        said = await run(machines[0], rehearse)
        assert said.err.count(" came up with its ") == 4, said
        await run(machines[0], in_text("hq backup --etcd 127.0.0.1:2379 - ").replace(ETCD, old))

        here = f"cd {machines[0].directory}; "
        (machines[1].directory / "opt" / "hq").symlink_to("hq-0.2.0")
        await run(machines[1], here + restore_hq.replace(ETCD, new))
        await hqs[1].start()
        epoch = await epoch_of(hqs[1])
        for name in CONTROLLERS:
            await run(machines[1], here + restore_cms.replace(ETCD, new).replace("--of cms", f"--of {name}"))
            await machines[1].restart(f"hq-{name}")
        tripped = [word if word != "on" else "off" for word in known[2].split()]

        async def fuses_are_tripped() -> bool:
            return (await controllers_show(machines[1]))[2].split() == tripped

        await eventually(fuses_are_tripped, 60.0, "fuses are tripped")
        assert (await controllers_show(machines[1]))[:2] == known[:2]
        assert (await epoch_of(hqs[1]), set(await everything(hqs[1]))) == (epoch, set(held))
        again = in_text("gunzip < hq-backup.gz").replace(ETCD, new).replace("restore", "restore --replace")
        await run(machines[1], here + again)
