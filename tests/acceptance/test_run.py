"""`make run` ends all that it started, however it is ended, and says where the console is once it is there."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import psutil
import pytest

from tests.support.process_ids import has_ended
from tests.support.reserved_port import quiet_port
from tests.support.sample_instances import eventually

ROOT: Final = Path(__file__).resolve().parents[2]
ENV: Final = {name: value for name, value in os.environ.items() if not name.startswith(("HQ_", "MAKE"))}
CONSOLE: Final = re.compile(r"^Console: http://127\.0\.0\.1:(\d+)$", re.MULTILINE)


class Run:
    """A `make run` on free ports."""

    def __init__(self, make: subprocess.Popen[bytes], log: Path) -> None:
        self.make, self._log = make, log

    @property
    def said(self) -> str:
        return self._log.read_text()

    async def until_it_serves(self) -> None:
        await eventually(lambda: "Ctrl-C stops it" in self.said and CONSOLE.search(self.said), 90, f"both: {self.said}")

    def program(self) -> psutil.Process:
        """What make started, the parent of all servers."""
        (program,) = psutil.Process(self.make.pid).children()
        return program

    def processes(self) -> list[psutil.Process]:
        return [*psutil.Process(self.make.pid).children(recursive=True)]


@asynccontextmanager
async def running(directory: Path, **settings: str) -> AsyncIterator[Run]:
    log = directory / "run.log"
    grpc = f"127.0.0.1:{quiet_port()}"
    own = {"HQ_GRPC": grpc, "HQ_HTTP": grpc, "HQ_DATA": str(directory / "data"), "HQ_CONSOLE_HQ": grpc}
    own["HQ_CONSOLE_HTTP"] = "127.0.0.1:0"
    with log.open("wb") as to:
        make = subprocess.Popen(
            ["make", "run"],
            cwd=ROOT,
            env={**ENV, **own, **settings},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=to,
        )
    run = Run(make, log)
    try:
        yield run
    finally:
        for process in run.processes() if make.poll() is None else ():
            process.kill()
        make.kill()
        make.wait()


def by_terminal(number: signal.Signals, run: Run) -> None:
    """Ctrl-C, and a window that is closed: the whole group gets the signal. (make passes only SIGTERM on.)"""
    os.killpg(run.make.pid, number)


def to_make(number: signal.Signals, run: Run) -> None:
    run.make.send_signal(number)


def to_its_program(number: signal.Signals, run: Run) -> None:
    run.program().send_signal(number)


@pytest.mark.long
@pytest.mark.parametrize(
    ("way", "number"),
    [
        (by_terminal, signal.SIGINT),
        (by_terminal, signal.SIGHUP),
        (to_make, signal.SIGTERM),
        (to_make, signal.SIGKILL),
        *((to_its_program, each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)),
    ],
)
async def test_however_make_run_is_ended_no_process_is_left(
    tmp_path: Path, way: Callable[[signal.Signals, Run], None], number: signal.Signals
) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a run of tests under nohup ignores it, and so would this
    async with running(tmp_path) as run:
        await run.until_it_serves()
        all_of_them = run.processes()
        names = " ".join(" ".join(each.cmdline()) for each in all_of_them)
        assert all(part in names for part in ("hq.main", "console.main", "etcd"))
        way(number, run)
        await eventually(lambda: all(map(has_ended, all_of_them)), 30, f"all to end: {run.said}")


@pytest.mark.long
async def test_if_the_consoles_port_is_taken_make_run_says_so_and_ends_everything(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        async with running(tmp_path, HQ_CONSOLE_HTTP=address) as run:
            code = await asyncio.to_thread(run.make.wait, 60)
            assert code != 0
            assert f"cannot listen on {address}: " in run.said
            assert "(choose another address with --http or HQ_CONSOLE_HTTP)" in run.said
            assert not CONSOLE.search(run.said)


@pytest.mark.long
async def test_a_recorder_is_started_on_request_and_the_console_asks_it(tmp_path: Path) -> None:
    hq, recorder = (f"127.0.0.1:{quiet_port()}" for _ in range(2))
    own = {"HQ_GRPC": hq, "HQ_HTTP": hq, "HQ_CONSOLE_HQ": hq, "HQ_RECORDER_LOCATION": f"default={hq}"}
    own |= {"HQ_RECORDER_GRPC": recorder, "HQ_RECORDER_HTTP": recorder, "HQ_RECORDER_DIR": str(tmp_path / "record")}
    async with running(tmp_path, RECORDER="1", **own) as run:
        await run.until_it_serves()
        found = CONSOLE.search(run.said)
        assert found is not None
        async with httpx.AsyncClient(trust_env=False) as browser:

            async def is_heard() -> bool:
                page = (await browser.get(f"http://127.0.0.1:{found[1]}/services/web")).text
                return "What happened before" in page and "does not answer" not in page and "is connected" not in page

            await eventually(is_heard, 60, "the recorder")
        assert (tmp_path / "record").is_dir()


@pytest.mark.parametrize(
    "words",
    [
        ("console.main", "serve"),
        ("gateways.main", "dns", "--hq", "127.0.0.1:1", "--all-services", "--dns", "127.0.0.1:0"),
        ("gateways.main", "consul", "--hq", "127.0.0.1:1", "--all-services"),
    ],
    ids=lambda words: words[1] if words[0].startswith("gateways") else "console",
)
def test_a_busy_port_is_told_with_the_commands_own_flag(tmp_path: Path, words: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        path = os.pathsep.join(str(ROOT / part) for part in ("", "proto", "clients"))
        done = subprocess.run(
            [sys.executable, "-m", *words, "--http", address],
            env={**ENV, "PYTHONPATH": path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert f"cannot listen on {address}: " in done.stderr
    assert "(choose another address with --http or HQ_" in done.stderr
