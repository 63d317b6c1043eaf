"""The source tree of the last release, which its processes are started from with this version's environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.etcd import binary_of
from tests.support.source_trees import source_tree
from tools.check_compatible import ROOT, newest


class Versions(NamedTuple):
    """Source trees: of the version that is there first, and of the one that is started beside it."""

    first: Path
    second: Path


@pytest.fixture(scope="session")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the newest release in RELEASES.md."""
    version, commit = newest((ROOT / "RELEASES.md").read_text())
    return source_tree(commit, tmp_path_factory.mktemp("release") / version, f"release {version}")


@pytest.fixture(params=["upgrade", "way back"])
def versions(request: pytest.FixtureRequest, last_release: Path) -> Versions:
    """Both orders."""
    both = Versions(last_release, ROOT)
    return both if request.param == "upgrade" else Versions(*reversed(both))


@pytest.fixture(scope="session")
def etcd_binary() -> Any:
    """One version: the store is the same for both releases."""
    return binary_of("3.5")
