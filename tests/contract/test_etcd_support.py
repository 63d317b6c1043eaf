"""The helpers that other tests build on do what they say."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.error import HTTPError

import pytest

from store.embedded import EmbeddedEtcd
from tests.support import etcd_backup, etcd_http
from tests.support.etcd import OwnCluster, OwnEtcd, SharedEtcd


def test_prefixes_in_the_shared_etcd_are_new_for_every_test(etcd: SharedEtcd) -> None:
    assert etcd_http.get(etcd.endpoint, f"{etcd.prefix}seen") is None
    etcd_http.put(etcd.endpoint, f"{etcd.prefix}seen", "yes")
    assert etcd_http.get(etcd.endpoint, f"{etcd.prefix}seen") == "yes"


async def test_a_restored_etcd_shows_the_past(own_etcd: OwnEtcd, tmp_path: Path) -> None:
    etcd = await own_etcd()
    etcd_http.put(etcd.endpoint, "/word", "then")
    etcd_backup.save(etcd, tmp_path / "snapshot")
    last = etcd_http.put(etcd.endpoint, "/word", "now")
    await etcd.stop()
    etcd_backup.restore(etcd, tmp_path / "snapshot")
    await etcd.start()
    assert etcd_http.get(etcd.endpoint, "/word") == "then"
    assert etcd_http.put(etcd.endpoint, "/other", "") == last


def fill(etcd: EmbeddedEtcd) -> None:
    for number in range(64):
        etcd_http.put(etcd.endpoint, f"/{number}", "x" * 100_000)


async def test_a_small_quota_makes_an_etcd_that_fills_and_still_reads(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd(quota_bytes=1 << 20)
    with pytest.raises(HTTPError) as refused:
        fill(etcd)
    assert "database space exceeded" in refused.value.read().decode()
    assert etcd_http.get(etcd.endpoint, "/0") is not None


async def test_a_paused_member_is_silent_until_resumed(etcd_cluster: OwnCluster) -> None:
    cluster = await etcd_cluster(3)
    paused = (await cluster.leader() + 1) % 3
    cluster.pause(paused)
    with pytest.raises(TimeoutError):
        await asyncio.to_thread(etcd_http.get, cluster.endpoints[paused], "/word", timeout_s=0.3)
    cluster.resume(paused)
    await asyncio.to_thread(etcd_http.put, cluster.endpoints[paused], "/word", "back")


@pytest.mark.long
async def test_a_member_without_its_majority_runs_but_does_not_serve(etcd_cluster: OwnCluster) -> None:
    cluster = await etcd_cluster(3)
    for index in range(3):
        await cluster.stop(index)
    await cluster.restart(0, until_it_serves=False)
    assert cluster.members[0].is_running
    with pytest.raises(OSError, match=r"refused|timed out"):
        await asyncio.to_thread(etcd_http.get, cluster.endpoints[0], "/word", timeout_s=0.3)
    await cluster.restart(1)
    await cluster.members[0].until_it_serves()
