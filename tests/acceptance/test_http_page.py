"""docs/http.md, done as written: each curl command is run, in order, and answers what the page says."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.console_blocks import replaced
from tests.support.etcd import SharedEtcd
from tests.support.replicas import Replicas

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text()
COMMANDS = re.findall(r"^```\n(curl .*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)
(FOLLOWING,) = re.findall(r"^```\n(printf .*?)\n```$", PAGE, re.DOTALL | re.MULTILINE)


async def run(command: str) -> Any:
    """The answer in JSON."""
    return json.loads(await output(command))


async def output(command: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", command), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, f"{command} exited with {process.returncode}"
    return out


@pytest.mark.long
@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_commands_of_the_page_answer_as_it_says(replicas: Replicas, etcd: SharedEtcd, tmp_path: Path) -> None:
    replica = await replicas.start([etcd.endpoint], etcd.prefix)
    places = {"127.0.0.1:7080": replica.http, "/tmp/begun": str(tmp_path / "begun")}
    *before, delete = [replaced(command, places) for command in COMMANDS]
    created, reporter, reported, strong, ready, by_url, counted, refused = [await run(command) for command in before]
    assert created["instance"]["meta"]["version"]
    assert reporter["uid"] == created["instance"]["meta"]["uid"]
    assert reported["nextReportIn"]
    assert strong["instance"]["meta"]["id"] == "shop-1"
    assert [one["meta"]["id"] for one in ready["instances"]] == ["shop-1"]
    assert ready["sources"][0]["replica"]
    assert [one["meta"]["id"] for one in by_url["instances"]] == ["shop-1"]
    assert counted["groups"] == [{"key": "shop", "total": 1, "ready": 1, "unknown": 0, "notWanted": 0}]
    assert refused["code"] == "invalid_argument"
    assert "instance.meta.id" in refused["message"]
    assert b'"id":"shop-1"' in await output(replaced(FOLLOWING, places))
    assert (await run(delete))["version"]
