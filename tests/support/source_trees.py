"""Source trees of other versions, out of the repository."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]


def source_tree(commit: str, tree: Path, name: str = "") -> Path:
    """The tree of a commit, unpacked there. Skips the test where the commit is not known; fails it in CI."""
    archive = subprocess.run(("git", "archive", commit), cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        reason = f"needs the commit{f' of {name}' if name else ''}: git fetch origin {commit}"
        if os.environ.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(tree, filter="data")
    return tree
