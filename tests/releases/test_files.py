"""Files that one version wrote and the other one reads: backups, checkpoints, and discovery's last good list."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from hqclient import Client
from tests.clients.instancectl.supervised import clean_environment
from tests.clients.process import command
from tests.judges.processes import run
from tests.releases.conftest import Versions
from tests.releases.test_replicas import everything, fill, replicas
from tests.support.etcd import SharedEtcd
from tests.support.replicas import ReplicaProcess
from tests.support.sample_instances import Agent, instance

pytestmark = [pytest.mark.long, pytest.mark.timeout(240)]
PROGRAM = Path(__file__).with_name("discovering.py")


async def test_a_backup_of_one_version_is_verified_and_restored_by_the_other(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with replicas(versions, etcd, tmp_path) as (first, second):
        await first.start()
        await fill(first)
        held = await everything(first)
        where, file = ("--etcd", etcd.endpoint, "--prefix"), str(tmp_path / "backup")
        saved = await command("hq.main", "backup", *where, etcd.prefix, file, root=versions.first)
        assert saved.code == 0, saved
        assert (await command("hq.main", "backup", "verify", file, root=versions.second)).code == 0
        second._prefix = f"{etcd.prefix}restored/"
        put_back = await command("hq.main", "restore", *where, second._prefix, file, root=versions.second)
        assert put_back.code == 0, put_back
        await second.start()
        assert await shapes(second) == {id_: shape_of(each) for id_, each in held.items()}


def shape_of(each: object) -> str:
    """Without versions, which a restore gives anew."""
    return re.sub(r"(status_)?version: \d+", "", str(each))


async def shapes(replica: ReplicaProcess) -> dict[str, str]:
    return {id_: shape_of(each) for id_, each in (await everything(replica)).items()}


async def test_a_start_beside_the_checkpoint_of_the_other_version_shows_the_same_and_says_if_it_was_used(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with replicas(versions, etcd, tmp_path, "--state-dir", str(tmp_path / "state")) as (first, second):
        await first.start()
        await fill(first)
        held = await everything(first)
        assert await first.terminate() == 0
        await second.start()
        assert await everything(second) == held
        assert re.search("read a checkpoint of|the checkpoint at .* reading everything", second.log_text())


async def test_discovery_serves_the_list_that_the_other_library_saved(
    versions: Versions, etcd: SharedEtcd, tmp_path: Path
) -> None:
    async with replicas(versions, etcd, tmp_path) as (first, _):
        await first.start()
        async with Client([first.grpc]) as client, first.stub() as stub:
            served = instance("web-1")
            served.spec.allocation.host = "10.0.0.1"
            served.spec.allocation.port.add(name="http", number=80)
            await client.create(served)
            agent = Agent(stub, "web-1")
            await agent.begin()
            await agent.report()
        assert await run_discovery(versions.first, first.grpc, tmp_path) == {"from": "LIVE", "ids": ["web-1"]}
        address = first.grpc
        assert await first.terminate() == 0
    for root in (versions.second, versions.first):
        assert await run_discovery(root, address, tmp_path) == {"from": "SAVED", "ids": ["web-1"]}


async def run_discovery(root: Path, replica: str, directory: Path) -> dict[str, object]:
    words = (sys.executable, PROGRAM, replica, directory / "discovery")
    done = await run(words, 60.0, cwd=root, more=clean_environment(root) | {"HOME": os.environ["HOME"]})
    assert done.code == 0, done
    found: dict[str, object] = json.loads(done.out)
    return found
