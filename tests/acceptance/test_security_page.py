"""docs/security.md, done as written: a private CA, certificates, tokens, a policy, a replica, and calls to it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.support.etcd import SharedEtcd
from tests.support.sample_instances import eventually

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text()
CHAPTER = PAGE[PAGE.index("## Deploy it with a private CA") : PAGE.index("## Deploy it with SPIFFE")]
BLOCKS = re.findall(r"^```sh\n(.*?)^```", CHAPTER, re.MULTILINE | re.DOTALL)
PREPARING = [block for block in BLOCKS if "127.0.0.1:7071" not in block]
SERVING, CALLING = (block for block in BLOCKS if "127.0.0.1:7071" in block)
[POLICY] = re.findall(r"^```yaml\n(.*?)^```", CHAPTER, re.MULTILINE | re.DOTALL)
LISTENING = re.compile(r"listening: gRPC (\S+?), HTTP (\S+?),? .*?certificates (\S+)")


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HQ_")}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {
        **kept,
        "PATH": path,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients"))),
    }


async def run(block: str, folder: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-e", "-c", block),
        cwd=folder,
        env=environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 90)
    assert process.returncode == 0, f"{block}\n{out.decode()}"
    return out.decode()


@asynccontextmanager
async def serving(folder: Path, etcd: SharedEtcd) -> AsyncIterator[dict[str, str]]:
    """The replica; addresses of the page by those that it has."""
    command = SERVING.replace("127.0.0.1:2379", etcd.endpoint).strip() + f" --prefix {etcd.prefix}"
    command = re.sub(r"127\.0\.0\.1:70\d\d", "127.0.0.1:0", command)
    log = folder / "serve.log"
    with log.open("wb") as to:
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", f"exec {command}"), cwd=folder, env=environment(), stdout=to, stderr=to
        )
    try:
        await eventually(lambda: LISTENING.search(log.read_text()), timeout_s=60, what="the replica to listen")
        found = LISTENING.search(log.read_text())
        assert found is not None
        yield dict(zip(("127.0.0.1:7071", "127.0.0.1:7080", "127.0.0.1:7073"), found.groups(), strict=True))
    finally:
        with suppress(ProcessLookupError):  # it ended
            process.terminate()
        await asyncio.wait_for(process.wait(), 30)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_commands_of_the_page_make_a_replica_that_knows_its_callers(tmp_path: Path, etcd: SharedEtcd) -> None:
    for block in PREPARING:
        await run(block, tmp_path)
    (tmp_path / "policy.yaml").write_text(POLICY)
    async with serving(tmp_path, etcd) as addresses:
        calling = CALLING
        for written, real in addresses.items():
            calling = calling.replace(written, real)
        shown = await run(calling, tmp_path)
        assert '"sub": "ops/ada"' in shown
        assert "guard" in shown.lower()
        stranger = calling.splitlines()[-1].replace("node-1", "node-2") + " || echo denied"
        assert "denied" in await run(stranger, tmp_path)
    [verifying] = re.findall(r"^```sh\n(hq audit verify .*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert "intact" in await run(verifying, tmp_path)
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600
    written = (tmp_path / "audit.jsonl").read_text()
    assert '"deny"' in written
    assert "spiffe://hq.example/agent/node-1" in written
