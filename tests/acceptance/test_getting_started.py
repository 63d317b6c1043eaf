"""docs/getting-started.md, run as written by one shell: create, follow, report, fall silent, ask why, come back."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.console_blocks import commands, normal, printed, replaced
from tests.support.etcd import SharedEtcd
from tests.support.replicas import Replicas

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "getting-started.md"
README = (ROOT / "README.md").read_text()
# A time, a span, a replica's made-up name.
CHANGING = re.compile(r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d|\b\d+ ?(?:ms|s)\b|\b[\w-]+-[0-9a-f]{8}\b")


def still(text: str) -> list[str]:
    """Without what is another one each time."""
    return normal(CHANGING.sub("…", text))


def test_the_walk_in_the_readme_is_a_part_of_the_page() -> None:
    walk = README.partition("## A walkthrough")[2].partition("## ")[0]
    typed = [line for block in re.findall(r"```\n(.*?)```", walk, re.DOTALL) for line in block.splitlines()]
    page = PAGE.read_text()
    assert len(typed) == 4
    assert [line for line in typed if f"$ {line.removeprefix('.venv/bin/')}\n" not in page] == []


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_page_runs_as_written(replicas: Replicas, etcd: SharedEtcd, tmp_path: Path) -> None:
    replica = await replicas.start([etcd.endpoint], etcd.prefix, "--liveness-timeout", "20s")
    (tmp_path / "w").mkdir()
    bin_ = str(Path(sys.executable).parent)
    places = {"$PWD/.venv/bin": bin_, "127.0.0.1:7080": replica.http, "$(mktemp -d)": str(tmp_path / "w")}
    typed = [replaced(command, places) for command, _ in commands(PAGE)]
    told, errors = await printed(typed, tmp_path, replica.grpc, 270)
    for (command, expected), found in zip(commands(PAGE), told, strict=True):
        assert still(found) == still(expected), (command, told, errors)
