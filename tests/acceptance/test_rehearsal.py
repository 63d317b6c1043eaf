"""`hq restore --into-new`: a backup is restored into a throw-away etcd, and its servers read it there."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from cmspb.storage.v1 import ledger_pb2
from controlpb.v1 import control_pb2
from hq.keys import HqKeys
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2
from nannypb.v1 import records_pb2
from store.etcd import EtcdConfig, EtcdStore
from store.port import Record, Write
from tests.acceptance.test_backup import ONE, ROOT, hq
from tests.support.etcd import SharedEtcd
from wallepb.v1 import host_pb2, project_pb2

pytestmark = [pytest.mark.timeout(240), pytest.mark.long, ONE]
META = instance_pb2.InstanceMeta(id="web-1", uid=1)
HQ_RECORDS = {
    "spec/web-1": storage_pb2.SpecRecord(write_id=1, meta=META.SerializeToString()).SerializeToString(),
    "status/web-1": storage_pb2.StatusRecord(uid=1).SerializeToString(),
}
CMS_RECORDS = {"task/reboot": ledger_pb2.Task().SerializeToString()}
NANNY_RECORDS = {
    "service/web": records_pb2.ServiceRecord().SerializeToString(),
    "snapshot/web/5ff2d2f1": records_pb2.SnapshotRecord().SerializeToString(),
    "chunk/web/5ff2d2f1/0": records_pb2.ChunkRecord(data=b"what is in it").SerializeToString(),
    "freeze/all": control_pb2.Freeze(by="ann").SerializeToString(),
}
WALLE_RECORDS = {
    "host/h1": host_pb2.Host().SerializeToString(),
    "machine/7": host_pb2.Machine().SerializeToString(),
    "project/search": project_pb2.Project().SerializeToString(),
}
RECORDS = {"hq": HQ_RECORDS, "cms": CMS_RECORDS, "nanny": NANNY_RECORDS, "walle": WALLE_RECORDS}
UNREADABLE = b"\xff\xff\xff"


class Saved:
    """Records of all four servers on one etcd, and their backup."""

    def __init__(self, etcd: SharedEtcd, tmp_path: Path) -> None:
        self._prefixes = {server: f"{etcd.prefix}{server}/" for server in RECORDS}
        self._variables: dict[str, Any] = {f"{name.upper()}_PREFIX": at for name, at in self._prefixes.items()}
        self._endpoint = etcd.endpoint
        self._all = HqKeys(etcd.prefix)
        self.file, self.temporary = tmp_path / "backup", tmp_path / "temporary"
        self.temporary.mkdir()

    async def save(self, **more: dict[str, bytes]) -> None:
        """`RECORDS`, and more of some servers."""
        epoch = {"epoch": storage_pb2.EpochRecord(epoch="0000000000000001").SerializeToString()}
        puts = []
        for server, records in RECORDS.items():
            whole = epoch | records | more.get(server, {})
            puts += [((self._prefixes[server] + key).encode(), value) for key, value in whole.items()]
        store = EtcdStore(EtcdConfig((self._endpoint,)))
        await store.commit((), (Write((), puts),), 5.0)
        await store.close()
        code, _, said = await hq("backup", "--etcd", self._endpoint, "--all", str(self.file), **self._variables)
        assert code == 0, said

    async def stored(self) -> list[Record]:
        store = EtcdStore(EtcdConfig((self._endpoint,)))
        page = await store.page(self._all.prefix, self._all.end, revision=0, limit=1000)
        await store.close()
        return page.records

    async def rehearse(self, *flags: str) -> tuple[int, str]:
        code, _, said = await hq("restore", "--into-new", *flags, str(self.file), TMPDIR=str(self.temporary))
        assert list(self.temporary.iterdir()) == []
        return code, said


@pytest.fixture
def saved(etcd: SharedEtcd, tmp_path: Path) -> Saved:
    return Saved(etcd, tmp_path)


async def test_each_server_in_the_file_comes_up_with_all_its_records_and_the_store_stays_as_it_is(
    saved: Saved,
) -> None:
    await saved.save()
    before = await saved.stored()
    code, said = await saved.rehearse()
    assert code == 0, said
    for title, count in (("HQ", 2), ("the CMS", 1), ("Nanny", 4), ("Wall-E", 3)):
        assert re.search(rf"^{title} came up with its {count} records?: restored in ", said, re.MULTILINE), said
    assert await saved.stored() == before

    code, said = await saved.rehearse("--of", "nanny")
    assert (code, "HQ" in said, "Nanny came up" in said) == (0, False, True), said


async def test_a_server_that_is_not_in_the_file_is_refused(saved: Saved, tmp_path: Path) -> None:
    await saved.save()
    alone = tmp_path / "alone"
    code, _, said = await hq("backup", "--etcd", saved._endpoint, "--prefix", saved._prefixes["hq"], str(alone))
    assert code == 0, said
    code, _, said = await hq("restore", "--into-new", "--of", "nanny", str(alone))
    assert (code, "no backup of Nanny" in said) == (1, True), said


async def test_a_record_that_its_server_cannot_read_is_named(saved: Saved) -> None:
    unreadable = {"hq": "spec/web-2", "cms": "budget/broken", "nanny": "history/web/7", "walle": "fuse/search"}
    await saved.save(**{server: {key: UNREADABLE} for server, key in unreadable.items()})
    before = await saved.stored()
    code, said = await saved.rehearse()
    assert code == 1
    for title, key in zip(("HQ", "the CMS", "Nanny", "Wall-E"), unreadable.values(), strict=True):
        assert f"\n{title} cannot read {key}: " in said
    whole = "hq: HQ, the CMS, Nanny, Wall-E did not come up whole: mend the records named above, then save again\n"
    assert said.endswith(whole)
    assert await saved.stored() == before


async def test_a_damaged_file_is_refused(saved: Saved) -> None:
    await saved.save()
    saved.file.write_bytes(saved.file.read_bytes()[:-1])
    code, said = await saved.rehearse()
    assert (code, said) == (1, "hq: the backup is truncated after 3 records: it was not written completely\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_rehearsal_leaves_nothing_behind(saved: Saved, number: signal.Signals) -> None:
    await saved.save()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hq.main", "restore", "--into-new", str(saved.file)),
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "TMPDIR": str(saved.temporary),
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients"))),
        },
    )
    assert process.stderr is not None
    await process.stderr.readline()  # it has described the file, and begins
    process.send_signal(number)
    said = (await process.stderr.read()).decode()
    assert (await process.wait(), said.endswith("hq: interrupted\n")) == (130, True), said
    assert list(saved.temporary.iterdir()) == []
