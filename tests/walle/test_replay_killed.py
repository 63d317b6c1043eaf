"""Processes of Wall-E that die, with a recorder beside them: what the fuses decided is recorded, and decided again."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import yaml
from google.protobuf.duration_pb2 import Duration

from hqcli.exits import Exit
from recorder.servers import FusesSource, ServerProcesses
from tests.recorder.test_decisions import recording
from tests.support.gateway_process import ROOT
from tests.support.walle.running import LastingStore, Running, running
from walle.fuses.limits import parse_limit
from wallepb.v1 import service_pb2 as pb
from wallepb.v1.project_pb2 import Cms, Fuse, Project


async def replay(*words: str) -> tuple[int | None, str]:
    """Exit code and all output of `walle replay`."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "walle.main", "replay", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in ("", "proto", "clients"))},
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    return process.returncode, out.decode()


def fuse_of(walle: Running) -> Fuse:
    """The fuse of web."""
    return walle.server.automaton.fuses.get("web") or Fuse()


async def fails(walle: Running, host: str) -> None:
    """Its check fails until a limit is used, or the fuse trips."""
    await walle.report(host, "ssh")
    await walle.until(
        lambda: any(mark.host == host for mark in fuse_of(walle).mark) or fuse_of(walle).healing.off,
        f"something is decided about {host}",
    )


@pytest.mark.long
async def test_decisions_of_fuses_are_recorded_over_a_dead_leader_and_replayed(tmp_path: Path) -> None:
    store = LastingStore()
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(running(store, name="walle-1"))
        second = await stack.enter_async_context(running(store, name="walle-2"))
        limits = {"ssh": parse_limit(["1d:2"])}
        await first.project(
            Project(id="web", cms=[Cms(url="default", version="v1.4", max_busy_hosts=9)], limits=limits)
        )
        for number in range(3):
            await first.host(f"h{number}")
        addresses = [one.server.listening.result().grpc for one in (first, second)]
        history = await stack.enter_async_context(recording(tmp_path, FusesSource(ServerProcesses(addresses))))
        await wait_for_replay(history.address, "0 uses of limits, 0 trips: all as recorded\n")
        await fails(first, "h0")
        await wait_for_replay(history.address, "2 uses of limits, 0 trips: all as recorded\n")
        await first.kill()
        controller = second.server.controller
        await second.until(lambda: controller.is_acting, "the other process leads")
        await fails(second, "h1")
        await fails(second, "h2")
        assert fuse_of(second).switching[0].host == "h2"
        order = pb.SwitchAutomationRequest(project="web", on=True, reason="looked", credits={"ssh": 1})
        order.credit_time.CopyFrom(Duration(seconds=3_600))
        await second.call(order)
        await second.until(lambda: any(mark.by_credit for mark in fuse_of(second).mark), "a credit pays")
        await wait_for_replay(history.address, "6 uses of limits, 1 trips: all as recorded\n")
        others = tmp_path / "others.yaml"
        others.write_text(yaml.safe_dump({"web": {"ssh": ["1d:1"]}}))
        code, out = await replay("--recorder", history.address, "--limits", str(others))
        assert code == 0, out
        assert re.search(r"^web +healing +ssh 1d:1 +h1 .* no +yes$", out, re.MULTILINE), out
        others.write_text(yaml.safe_dump({"wbe": {"ssh": ["1d:1"]}}))
        code, out = await replay("--recorder", history.address, "--limits", str(others))
        assert "wbe.ssh: nothing on record uses this limit" in out, (code, out)


async def test_a_global_limit_with_an_unknown_name_is_refused(tmp_path: Path) -> None:
    others = tmp_path / "others.yaml"
    others.write_text(yaml.safe_dump({"global": {"ssh": ["1d:1"]}}))
    code, out = await replay("--recorder", "127.0.0.1:1", "--limits", str(others))
    assert code == Exit.USAGE, out
    assert "global: ssh: write limits of max_rebooted_hosts, " in out


async def wait_for_replay(recorder: str, wanted: str) -> None:
    """Until it has all that happened; nothing of it ever differs."""
    async with asyncio.timeout(60):
        code, out = await replay("--recorder", recorder)
        while out != wanted:
            assert code in (Exit.OK, Exit.NOT_FOUND), out
            code, out = await replay("--recorder", recorder)
