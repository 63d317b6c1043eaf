"""docs/end-to-end.md, run as written by one shell. Only ports are replaced: tests take free ones."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.support.console import commands, normal
from tests.support.replicas import ReplicaProcess

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "end-to-end.md"
PORTS = ("8070", "8081", "8082", "8083")
MARK = "=== next"


def with_ports(text: str, ports: dict[str, str]) -> str:
    return re.sub(r"\b(?:8070|808[123])\b", lambda m: ports[m[0]], text)


async def free_ports(count: int) -> list[str]:
    servers = [await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0) for _ in range(count)]
    found = [str(server.sockets[0].getsockname()[1]) for server in servers]
    for server in servers:
        server.close()
    return found


async def script(replica: ReplicaProcess, folder: Path) -> str:
    """The page as one script; the examples are copied to `folder` with free ports."""
    ports = dict(zip(PORTS, await free_ports(len(PORTS)), strict=True))
    for name in ("site.yaml", "site-v2.yaml"):
        (folder / name).write_text(with_ports((ROOT / "examples" / "nanny" / name).read_text(), ports))
    lines = [f"{command}\necho '{MARK}'" for command, _ in commands(PAGE)]
    text = with_ports("\n".join(lines), ports).replace("examples/nanny/site", f"{folder}/site")
    text = text.replace("$PWD/.venv/bin", str(Path(sys.executable).parent)).replace("127.0.0.1:7071", replica.grpc)
    return text.replace("$(mktemp -d)", str(folder / "w"))


@pytest.mark.timeout(240)  # ten seconds where nobody else computes
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_page_runs_as_written(replica: ReplicaProcess, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith("HQ_") and k != "NANNY_CONFIG"}
    path = os.pathsep.join((str(ROOT), str(ROOT / "proto")))
    errors = tmp_path / "stderr"
    with errors.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", await script(replica, tmp_path)),
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env={**env, "PYTHONPATH": path, "HOME": str(tmp_path), "HQ_SERVER": replica.grpc},
            start_new_session=True,  # its own group, so that a failed run leaves nothing behind
        )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 220)
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()
    *printed, _ = out.decode().replace(str(tmp_path / "w"), "$W").split(f"{MARK}\n")
    for (command, expected), found in zip(commands(PAGE), printed, strict=True):
        assert normal(found) == normal(expected), (command, out.decode(), errors.read_text())
