"""`hq dev` as a newcomer uses it: it starts, says what to try, stops in order, and keeps the data."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from store.embedded import find_etcd
from tests.support.sample_instances import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
ENV = {
    **{k: v for k, v in os.environ.items() if not k.startswith("HQ_")},
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'proto'}",
}


class Dev:
    """A running `hq dev`."""

    def __init__(self, process: asyncio.subprocess.Process, out: Path) -> None:
        self.process, self._out = process, out

    def output(self) -> str:
        return self._out.read_text()

    async def serves(self) -> list[str]:
        """The commands that it prints once it serves."""
        await eventually(lambda: "Ctrl-C stops it" in self.output(), timeout_s=60, what="the welcome")
        found = re.search(r"Try in another shell:\n(.*?)\n\n", self.output(), re.DOTALL)
        assert found is not None
        return [line.strip() for line in found[1].splitlines()]

    async def ends(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        async with asyncio.timeout(60):
            return await self.process.wait()

    def etcd_endpoint(self) -> str:
        found = re.search(r"etcd at (127\.0\.0\.1:\d+)", self.output())
        assert found is not None
        return found[1]


@asynccontextmanager
async def dev(data: Path, *flags: str) -> AsyncIterator[Dev]:
    out = data.with_name(f"{data.name}-{len(list(data.parent.glob('*.out')))}.out")
    with out.open("wb") as to:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hq.main", "dev", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"),
            *("--data", str(data), *flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=to,
            stderr=to,
            env=ENV,
            cwd=ROOT,
        )
    try:
        yield Dev(process, out)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def run(command: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=ENV,
        cwd=ROOT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def answers(endpoint: str) -> bool:
    host, _, port = endpoint.partition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
async def test_the_printed_commands_work_as_printed_and_the_data_outlive_a_stop(
    tmp_path: Path, number: signal.Signals
) -> None:
    async with dev(tmp_path / "data") as first:
        outputs = []
        for command in await first.serves():
            code, out = await run(command)
            assert code == 0, f"{command}\n{out}"
            outputs.append(out)
        assert "web-1" in outputs[-1]
        assert await first.ends(number) == 0
        assert not await answers(first.etcd_endpoint())
    async with dev(tmp_path / "data") as second:
        (find,) = [command for command in await second.serves() if " find " in command]
        assert "web-1" in (await run(find))[1]


@pytest.mark.long
async def test_after_sigkill_no_etcd_remains_and_the_next_start_works(tmp_path: Path) -> None:
    async with dev(tmp_path / "data") as first:
        apply, *_ = await first.serves()
        assert (await run(apply))[0] == 0
        await first.ends(signal.SIGKILL)

        async def gone() -> bool:
            return not await answers(first.etcd_endpoint())

        await eventually(gone, what="no etcd remains")
    async with dev(tmp_path / "data") as second:
        (find,) = [command for command in await second.serves() if " find " in command]
        assert "web-2" in (await run(find))[1]


@pytest.mark.long
async def test_hq_dev_runs_in_memory_without_any_etcd(tmp_path: Path) -> None:
    async with dev(tmp_path / "data", "--store", "memory") as replica:
        for command in await replica.serves():
            assert (await run(command))[0] == 0
        assert not (tmp_path / "data").exists()
        assert await replica.ends(signal.SIGTERM) == 0


@pytest.mark.long
@pytest.mark.parametrize("flag", ["--grpc", "--http"])
async def test_an_address_that_others_can_reach_needs_the_flag_insecure(tmp_path: Path, flag: str) -> None:
    serve = f"{sys.executable} -m hq.main serve --etcd 127.0.0.1:1"
    code, out = await run(f"{serve} {flag} 0.0.0.0:0")
    assert code == 2
    assert "--insecure" in out


@pytest.mark.long
@pytest.mark.parametrize("flag", ["--grpc", "--http"])
async def test_a_busy_port_is_told_in_one_line_with_the_flag_and_the_variable_that_chose_it(flag: str) -> None:
    other = "--http" if flag == "--grpc" else "--grpc"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, out = await run(
            f"{sys.executable} -m hq.main dev --store memory {flag} {address} {other} 127.0.0.1:0 --log-level error"
        )
    variable = f"HQ_{flag.removeprefix('--').upper()}"
    assert code == 1
    (line,) = out.splitlines()
    assert line.startswith(f"hq: cannot listen on {address}: ")
    assert f"(choose another address with {flag} or {variable})" in line


@pytest.mark.long
async def test_an_old_etcd_is_said_to_be_for_trying_only(tmp_path: Path) -> None:
    async with dev(tmp_path / "data") as replica:
        await replica.serves()
        lines = [line for line in replica.output().splitlines() if "For evaluation only" in line]
    assert len(lines) == (1 if find_etcd().note else 0)
