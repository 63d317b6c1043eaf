"""The embedded etcd keeps its data, never outlives its parent, and never takes a stranger for its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from store.embedded import (
    DataDirInUse,
    EmbeddedEtcd,
    EtcdBinary,
    EtcdFailed,
    built_etcd,
    etcd_of_wheel,
    find_etcd,
    free_ports,
)
from tests.support import etcd_http
from tests.support.etcd import OwnCluster, OwnEtcd, SharedEtcd
from tests.support.process_ids import is_gone

# Stands for `hq dev`: starts an etcd, says where it is, and waits to be killed.
PARENT = """
import asyncio, sys
from pathlib import Path
from store.embedded import EmbeddedEtcd, EtcdBinary

async def main():
    binary = EtcdBinary(Path(sys.argv[2]), tuple(map(int, sys.argv[3:6])))
    etcd = EmbeddedEtcd(Path(sys.argv[1]), binary=binary)
    await etcd.start()
    print(etcd.endpoint, etcd.process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


class Parent:
    def __init__(self, data_dir: Path, binary: EtcdBinary) -> None:
        version = map(str, binary.version)
        command = [sys.executable, "-c", PARENT, str(data_dir), str(binary.path), *version]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd())
        assert self.process.stdout is not None
        said = self.process.stdout.readline().split()
        assert said, "the parent did not start an etcd"
        self.endpoint, self.etcd_pid = said[0], int(said[1])

    def kill(self) -> None:
        """SIGKILL; once it is gone, again does nothing."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def start_parent(tmp_path: Path, etcd_binary: EtcdBinary) -> Iterator[Callable[[], Parent]]:
    started: list[Parent] = []

    def start() -> Parent:
        started.append(Parent(tmp_path / "data", etcd_binary))
        return started[-1]

    yield start
    for parent in started:
        parent.kill()


def assert_ends(pid: int, within_s: float = 10) -> None:
    deadline = time.monotonic() + within_s
    while not is_gone(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there after {within_s} s"
        time.sleep(0.02)


async def test_a_restart_keeps_the_data_and_may_change_the_ports(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    etcd_http.put(etcd.endpoint, "/kept", "yes")
    before = etcd.endpoint
    await etcd.stop()
    await etcd.start()
    assert etcd_http.get(etcd.endpoint, "/kept") == "yes"
    assert etcd.endpoint != before


async def test_a_crash_keeps_what_was_answered(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    etcd_http.put(etcd.endpoint, "/kept", "yes")
    await etcd.kill()
    await etcd.start()
    assert etcd_http.get(etcd.endpoint, "/kept") == "yes"


async def test_a_stop_leaves_no_process(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    pid = etcd.process.pid
    guard = psutil.Process(pid).parent()
    await etcd.stop()
    assert guard is not None
    assert is_gone(pid)
    assert not guard.is_running()


def test_a_parent_killed_with_sigkill_leaves_no_etcd(start_parent: Callable[[], Parent]) -> None:
    parent = start_parent()
    parent.kill()
    assert_ends(parent.etcd_pid)


def test_after_sigkill_the_next_start_works_at_once_and_has_the_data(
    start_parent: Callable[[], Parent],
) -> None:
    parent = start_parent()
    etcd_http.put(parent.endpoint, "/kept", "yes")
    parent.kill()
    assert etcd_http.get(start_parent().endpoint, "/kept") == "yes"


@pytest.mark.long
def test_a_hanging_etcd_does_not_outlive_its_parent(start_parent: Callable[[], Parent]) -> None:
    parent = start_parent()
    os.kill(parent.etcd_pid, signal.SIGSTOP)
    parent.kill()
    assert_ends(parent.etcd_pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a child die with its parent")
def test_a_killed_guard_takes_etcd_with_it(start_parent: Callable[[], Parent]) -> None:
    parent = start_parent()
    guard = psutil.Process(parent.etcd_pid).parent()
    assert guard is not None
    guard.kill()
    assert_ends(parent.etcd_pid)


def test_ctrl_c_on_the_terminal_does_not_reach_etcd(start_parent: Callable[[], Parent]) -> None:
    parent = start_parent()
    assert os.getsid(parent.etcd_pid) != os.getsid(parent.process.pid)
    assert os.getpgid(parent.etcd_pid) != os.getpgid(parent.process.pid)


async def test_a_port_taken_by_a_stranger_leads_to_other_ports(
    tmp_path: Path, etcd_binary: EtcdBinary, etcd: SharedEtcd
) -> None:
    stranger_port = int(etcd.endpoint.rpartition(":")[2])  # an etcd too, so that its answers look right
    offered = iter([(stranger_port, free_ports()[1]), (free_ports()[0], stranger_port)])
    own = EmbeddedEtcd(tmp_path, binary=etcd_binary, ports=lambda: next(offered, None) or free_ports())
    await own.start()
    try:
        assert own.endpoint != etcd.endpoint
        etcd_http.put(own.endpoint, etcd.prefix, "mine")
        assert etcd_http.get(etcd.endpoint, etcd.prefix) is None
    finally:
        await own.stop()


async def test_when_no_port_is_ever_free_the_error_says_so(tmp_path: Path, etcd_binary: EtcdBinary) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        taken = stranger.getsockname()[1]
        etcd = EmbeddedEtcd(tmp_path, binary=etcd_binary, ports=lambda: (free_ports()[0], taken))
        with pytest.raises(EtcdFailed, match="address already in use"):
            await etcd.start()


async def test_a_data_directory_in_use_is_refused_in_words(own_etcd: OwnEtcd) -> None:
    first = await own_etcd()
    second = EmbeddedEtcd(first.data_dir, lock_wait_s=0.1)
    with pytest.raises(DataDirInUse, match=rf"in use by another process \(pid {os.getpid()}\): stop it or use"):
        await second.start()
    etcd_http.put(first.endpoint, "/still", "served")


async def test_a_data_directory_that_cannot_be_made_is_refused_in_words(
    tmp_path: Path, etcd_binary: EtcdBinary
) -> None:
    (tmp_path / "file").touch()
    etcd = EmbeddedEtcd(tmp_path / "file" / "data", binary=etcd_binary)
    with pytest.raises(
        EtcdFailed, match=r"cannot store its data in .*file/data \(.*\): choose another directory \(--data\)"
    ):
        await etcd.start()


async def test_data_of_a_newer_etcd_are_refused_in_words(
    tmp_path: Path, etcd34: EtcdBinary, etcd35: EtcdBinary
) -> None:
    newer = EmbeddedEtcd(tmp_path, binary=etcd35)
    await newer.start()
    await newer.stop()
    with pytest.raises(EtcdFailed, match=r"was written by etcd 3\.5"):
        await EmbeddedEtcd(tmp_path, binary=etcd34).start()


async def test_without_a_choice_the_version_of_etcd_follows_from_the_data(tmp_path: Path, etcd35: EtcdBinary) -> None:
    newer = EmbeddedEtcd(tmp_path, binary=etcd35)
    await newer.start()
    await newer.stop()
    again = EmbeddedEtcd(tmp_path)
    await again.start()
    assert again.process.binary.version[:2] >= (3, 5)
    await again.stop()


async def test_an_etcd_that_ends_on_its_own_is_noticed_and_its_log_quoted(own_etcd: OwnEtcd) -> None:
    etcd = await own_etcd()
    etcd.process.signal(signal.SIGKILL)
    reason = await etcd.process.wait_for_exit()
    assert str(etcd.data_dir / "etcd.log") in str(reason)


async def test_settings_for_another_etcd_in_the_environment_are_ignored(
    tmp_path: Path, etcd_binary: EtcdBinary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ETCD_DATA_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("ETCD_FORCE_NEW_CLUSTER", "true")
    etcd = EmbeddedEtcd(tmp_path / "here", binary=etcd_binary)
    await etcd.start()
    await etcd.stop()
    assert not (tmp_path / "elsewhere").exists()


def test_an_etcd_is_found_without_one_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find_etcd() == (built_etcd() or etcd_of_wheel())


def test_an_etcd_that_is_too_old_or_does_not_run_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "etcd"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for script in ("#!/bin/sh\necho etcd Version: 3.3.27\n", "#!/bin/sh\nexit 1\n"):
        fake.write_text(script)
        fake.chmod(0o755)
        assert find_etcd() == (built_etcd() or etcd_of_wheel())


@pytest.mark.long
async def test_a_cluster_survives_its_leader(etcd_cluster: OwnCluster) -> None:
    cluster = await etcd_cluster(3)
    leader = await cluster.leader()
    other = (leader + 1) % 3
    etcd_http.put(cluster.endpoints[other], "/kept", "yes")
    await cluster.kill(leader)
    assert await cluster.leader() != leader
    await cluster.restart(leader)
    assert etcd_http.get(cluster.endpoints[leader], "/kept") == "yes"
