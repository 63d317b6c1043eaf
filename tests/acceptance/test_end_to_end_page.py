"""docs/end-to-end.md, run as written by one shell. Only ports are replaced: tests take free ones."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.console_blocks import commands, normal, printed, replaced
from tests.support.gateway_process import Program
from tests.support.replicas import ReplicaProcess
from tests.support.reserved_port import quiet_port

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "end-to-end.md"
PORTS = ("8070", "8081", "8082", "8083")


def with_ports(text: str, ports: dict[str, str]) -> str:
    return re.sub(r"\b(?:8070|808[123])\b", lambda m: ports[m[0]], text)


async def typed(replica: ReplicaProcess, nanny: Program, folder: Path) -> list[str]:
    """The commands of the page; the examples are copied to `folder` with free ports."""
    ports = {printed: str(quiet_port()) for printed in PORTS}
    for name in ("site.yaml", "site-v2.yaml"):
        (folder / name).write_text(with_ports((ROOT / "examples" / "nanny" / name).read_text(), ports))
    places = {
        "examples/nanny/site": f"{folder}/site",
        "$PWD/.venv/bin": str(Path(sys.executable).parent),
        "127.0.0.1:7071": replica.grpc,
        "NO_PROXY=": f"NANNY_SERVER={nanny.grpc} NO_PROXY=",
        "$(mktemp -d)": str(folder / "w"),
    }
    return [replaced(with_ports(command, ports), places) for command, _ in commands(PAGE)]


@pytest.mark.long
@pytest.mark.timeout(240)  # ten seconds where nobody else computes
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_page_runs_as_written(replica: ReplicaProcess, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    words = ("dev", "--store", "memory", "--location", f"default={replica.grpc}")
    nanny = Program("nanny.main", (*words, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"), tmp_path / "nanny.log")
    try:
        await nanny.start()
        told, errors = await printed(await typed(replica, nanny, tmp_path), tmp_path, replica.grpc, 220)
    finally:
        await nanny.kill()
    for (command, expected), found in zip(commands(PAGE), told, strict=True):
        shown = _without_ids(found.replace(str(tmp_path / "w"), "$W"))
        assert normal(shown) == normal(_without_ids(expected)), (command, told, errors)


def _without_ids(text: str) -> str:
    return re.sub(r"snapshot [0-9a-f]{16}", "snapshot ID", text)
