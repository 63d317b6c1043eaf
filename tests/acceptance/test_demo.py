"""`make demo` without a terminal: it starts, shows what discovery sees, takes orders, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.process_ids import has_ended
from tests.support.sample_instances import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
ENV = {
    **{k: v for k, v in os.environ.items() if not k.startswith("HQ_")},
    "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proto"), str(ROOT / "clients"))),
    "PYTHONUNBUFFERED": "1",
}
ALL_READY = " ".join(f"{service} 20/20" for service in ("web", "api", "cart", "mail", "auth"))


class Demo:
    """A running demo."""

    def __init__(self, process: asyncio.subprocess.Process, data: Path, out: Path) -> None:
        self.process, self.data, self._out = process, data, out

    def output(self) -> str:
        return self._out.read_text()

    async def shows(self, pattern: str, timeout_s: float = 60.0) -> None:
        """Wait until a line of the output is like this."""
        await eventually(lambda: re.search(pattern, self.output()), timeout_s, what=f"{pattern}\n{self.output()}")

    def children(self) -> list[psutil.Process]:
        """Every process that it has started, and those that these have."""
        return psutil.Process(self.process.pid).children(recursive=True)

    async def ends(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        async with asyncio.timeout(60):
            return await self.process.wait()


@asynccontextmanager
async def demo(tmp_path: Path, *command: str) -> AsyncIterator[Demo]:
    """`command`: of another module that is started alike; default: the demo in plain lines."""
    data, out = tmp_path / "demo", tmp_path / "out"
    with out.open("wb") as to:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *(command or ("tools.demo", "--plain")), "--data", str(data)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=to,
            stderr=to,
            env=ENV,
            cwd=ROOT,
        )
    try:
        yield Demo(process, data, out)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def order(data: Path, *words: str) -> tuple[int, str]:
    """The second command."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.demo", "order", "--data", str(data), *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=ENV,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


@pytest.mark.long
async def test_discovery_sees_all_instances_ready_and_what_is_ordered_and_nothing_stays(tmp_path: Path) -> None:
    async with demo(tmp_path) as running:
        for location in ("east", "north", "west"):
            await running.shows(rf"{location} +replicas 2/2 fresh +{ALL_READY}\n")
        assert "nanny activate r2" in (await order(running.data, "deploy", "web"))[1]
        await running.shows(r"deploy r2 of web: east: 20 updated", 100.0)
        assert await order(running.data, "silence", "west", "10%") == (
            0,
            "silenced 1 of 10 nodes of west, 10 agents are silent now\n",
        )
        assert await order(running.data, "kill-replica", "east") == (0, "killed replica east-1\n")
        await running.shows(rf"east +replicas 1/2 fresh +{ALL_READY}\n")
        assert (await order(running.data, "kill-replica", "east", "1"))[0] == 1
        assert "there are kill-replica, " in (await order(running.data, "dance"))[1]
        await running.shows(r"became not ready \(HeartbeatTimeout\): .*west \d")
        await running.shows(r"west +replicas 2/2 fresh +web 18/20 .*; 10 of 100 agents silent\n")
        children = running.children()
        assert len(children) > 15
        assert await running.ends(signal.SIGTERM) == 0
        assert [child for child in children if not has_ended(child)] == []
        assert not running.data.exists()


async def test_ctrl_c_during_the_start_ends_in_order(tmp_path: Path) -> None:
    async with demo(tmp_path) as running:
        await running.shows("starting three etcds")
        await eventually(lambda: len(running.children()) > 3, what="the first processes")
        children = running.children()
        assert await running.ends(signal.SIGINT) == 0, running.output()
        await eventually(lambda: all(has_ended(child) for child in children), what="nothing is left")
        assert not running.data.exists()


@pytest.mark.long
async def test_sigkill_leaves_no_process_behind(tmp_path: Path) -> None:
    async with demo(tmp_path) as running:
        await running.shows("the federation gateway serves")
        children = running.children()
        await running.ends(signal.SIGKILL)
        await eventually(lambda: all(has_ended(child) for child in children), what="nothing is left")
    code, out = await order(running.data, "show")
    assert code == 1
    assert "no demo runs" in out
