"""docs/discovery.md, run as written. Only ports and the directory are replaced: tests take free ones."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.clients.process import ROOT, environment
from tests.support.etcd import SharedEtcd
from tests.support.replicas import Replicas
from tests.support.reserved_port import quiet_port

PAGE = ROOT / "docs" / "discovery.md"
IN_ANOTHER_SHELL = "# in another shell\n"


class Page:
    """The page's blocks, for one HQ, one free port and one directory."""

    def __init__(self, server: str, port: int, directory: Path) -> None:
        self._server = server
        text = PAGE.read_text()
        text = (
            text.replace("127.0.0.1:7071", server).replace("8091", str(port)).replace(".hq/discovery", str(directory))
        )
        text = text.replace(".venv/bin/", f"{Path(sys.executable).parent}/")
        self.shell = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
        (self.python,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    async def run(self, *command: str) -> str:
        """Run to the end, which must be a good one; what it printed."""
        async with self._process(*command) as process:
            out, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, out.decode()
        return out.decode()

    @asynccontextmanager
    async def in_another_shell(self, block: str) -> AsyncIterator[asyncio.StreamReader]:
        """Run it until the end of this block of code; its output."""
        assert block.startswith(IN_ANOTHER_SHELL)
        async with self._process("bash", "-c", f"exec {block.removeprefix(IN_ANOTHER_SHELL)}") as process:
            assert process.stdout is not None
            yield process.stdout
            process.send_signal(signal.SIGKILL)
            await process.stdout.read()

    @asynccontextmanager
    async def _process(self, *command: str) -> AsyncIterator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env={**environment(self._server), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def said(output: asyncio.StreamReader, word: str) -> str:
    """The next line with this word."""
    async with asyncio.timeout(40):
        while True:
            line = (await output.readline()).decode()
            assert line, f"it ended without saying {word}"
            if word in line:
                return line


@pytest.mark.parametrize("example", ["follow.py", "httpx_transport.py"])
def test_an_example_without_arguments_says_which_it_takes(example: str) -> None:
    command = (sys.executable, f"examples/discovery/{example}")
    done = subprocess.run(
        command, cwd=ROOT, env=environment(""), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"usage: {example} SERVICE PORT")


@pytest.mark.long
@pytest.mark.parametrize("etcd_binary", ["3.5"], indirect=True)
async def test_the_page_runs_as_written(etcd: SharedEtcd, tmp_path: Path) -> None:
    port = quiet_port()
    async with Replicas(tmp_path) as replicas:
        hq = await replicas.start([etcd.endpoint], etcd.prefix)
        page = Page(hq.grpc, port, tmp_path / "state")
        ready, follow, serve, call = page.shell
        assert "created" in await page.run("bash", "-c", ready)
        async with page.in_another_shell(follow) as lines, page.in_another_shell(serve) as served:
            assert "shop-1 r1" in await said(lines, f"+ 127.0.0.1:{port}")
            await said(lines, "1 endpoints, LIVE")
            await said(served, "Serving HTTP")
            assert "import asyncio" in await page.run("bash", "-c", call)
            assert f"127.0.0.1:{port} r1" in await page.run(sys.executable, "-c", page.python)
        await hq.kill()
        async with page.in_another_shell(follow) as lines:
            await said(lines, f"+ 127.0.0.1:{port}")
            await said(lines, "1 endpoints, SAVED")


@pytest.mark.long
def test_an_example_that_cannot_connect_says_so() -> None:
    command = (sys.executable, "examples/discovery/follow.py", "web", "http")
    process = subprocess.Popen(command, cwd=ROOT, env=environment("127.0.0.1:1"), stderr=subprocess.PIPE, text=True)
    try:
        said = process.stderr.readline()  # type: ignore[union-attr]
    finally:
        process.kill()
        process.communicate()
    assert said.startswith("still waiting: after 3 s: nothing is known about web yet; HQ: ")
    assert "127.0.0.1:1" in said
