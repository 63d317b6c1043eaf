"""`hq restore --into-new`: a backup is restored into a throw-away etcd, and its servers read it there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from cmspb.storage.v1 import ledger_pb2
from hq.keys import HqKeys
from hqpb.storage.v1 import storage_pb2
from hqpb.v1 import instance_pb2
from store.etcd import EtcdConfig, EtcdStore
from store.port import Record, Write
from tests.acceptance.test_backup import ONE, ROOT, hq
from tests.support.etcd import SharedEtcd

pytestmark = [pytest.mark.timeout(240), pytest.mark.long, ONE]
META = instance_pb2.InstanceMeta(id="web-1", uid=1)
HQ_RECORDS = {
    "spec/web-1": storage_pb2.SpecRecord(write_id=1, meta=META.SerializeToString()).SerializeToString(),
    "status/web-1": storage_pb2.StatusRecord(uid=1).SerializeToString(),
}
CMS_RECORDS = {"task/reboot": ledger_pb2.Task().SerializeToString()}
UNREADABLE = b"\xff\xff\xff"


class Saved:
    """Records of HQ and of its neighbour, the CMS, on one etcd, and their backup."""

    def __init__(self, etcd: SharedEtcd, tmp_path: Path) -> None:
        self.prefixes = {"HQ_PREFIX": f"{etcd.prefix}hq/", "CMS_PREFIX": f"{etcd.prefix}cms/"}
        others = {f"{name}_PREFIX": f"{etcd.prefix}{name}/" for name in ("NANNY", "WALLE")}
        self._variables: dict[str, Any] = {**self.prefixes, **others}
        self._endpoint = etcd.endpoint
        self._all = HqKeys(etcd.prefix)
        self.file, self.temporary = tmp_path / "backup", tmp_path / "temporary"
        self.temporary.mkdir()

    async def save(self, hq_records: dict[str, bytes], cms_records: dict[str, bytes]) -> None:
        epoch = storage_pb2.EpochRecord(epoch="0000000000000001").SerializeToString()
        puts = []
        for prefix, records in zip(self.prefixes.values(), (hq_records, cms_records), strict=True):
            puts += [((prefix + key).encode(), value) for key, value in ({"epoch": epoch} | records).items()]
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


async def test_each_server_in_the_file_comes_up_and_the_store_stays_as_it_is(saved: Saved) -> None:
    await saved.save(HQ_RECORDS, CMS_RECORDS)
    before = await saved.stored()
    code, said = await saved.rehearse()
    assert code == 0, said
    assert "\nHQ came up with its 2 records: restored in " in said
    assert "\nthe CMS came up with its 1 records: restored in " in said
    assert await saved.stored() == before

    code, said = await saved.rehearse("--of", "cms")
    assert (code, "HQ" in said, "the CMS came up" in said) == (0, False, True), said
    code, said = await saved.rehearse("--of", "nanny")
    assert (code, "no backup of Nanny" in said) == (1, True), said


async def test_a_record_that_its_server_cannot_read_is_named(saved: Saved) -> None:
    await saved.save(HQ_RECORDS | {"spec/web-2": UNREADABLE}, CMS_RECORDS | {"budget/broken": UNREADABLE})
    before = await saved.stored()
    code, said = await saved.rehearse()
    assert code == 1
    assert "\nHQ cannot read spec/web-2: " in said
    assert "\nthe CMS cannot read budget/broken: " in said
    assert said.endswith("hq: HQ, the CMS did not come up whole: mend the records named above, then save again\n")
    assert await saved.stored() == before


async def test_a_damaged_file_is_refused(saved: Saved) -> None:
    await saved.save(HQ_RECORDS, CMS_RECORDS)
    saved.file.write_bytes(saved.file.read_bytes()[:-1])
    code, said = await saved.rehearse()
    assert (code, said) == (1, "hq: the backup is truncated after 1 records: it was not written completely\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_interrupted_it_leaves_nothing(saved: Saved, number: signal.Signals) -> None:
    await saved.save(HQ_RECORDS, CMS_RECORDS)
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
